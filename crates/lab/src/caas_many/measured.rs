//! Counts what happens to jobs and slots.

use manxdb_core::Nanos;
use manxdb_jobs::job::LocalReason;
use manxdb_sim::{Latencies, SimTime};

use super::Trial;
use super::outcome::{CaasOutcome, Group};
use crate::trial::{Spread, millis, round};

/// A job as it was asked for.
#[derive(Debug, Clone)]
pub(super) struct Job {
    /// Its database, by place,
    pub database: usize,
    /// its number there, and
    pub compaction: u64,
    /// its level.
    pub start: usize,
    /// Bytes of its inputs.
    pub bytes: u64,
    pub asked: SimTime,
    pub state: State,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// A slot has not begun it, as far as it is known.
    Waiting,
    /// A slot has begun it.
    Running,
    /// The database's own machine has.
    AtHome,
    /// It is done.
    Over,
}

/// Counts of one group of databases.
#[derive(Debug, Default)]
struct Counts {
    jobs: u64,
    home: u64,
    home_level0: u64,
    home_overloaded: u64,
    home_hedge: u64,
    queue: Latencies,
    queue_level0: Latencies,
    /// Time of slots that worked for them while writes arrived.
    worked: Nanos,
}

/// How long a database's jobs took.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    /// As long as they would have taken in slots that are free.
    ideal: f64,
    took: f64,
}

/// Everything that is counted in a run.
#[derive(Debug)]
pub(super) struct Measured {
    greedy: usize,
    slot_bytes: f64,
    until: SimTime,
    groups: [Counts; 2],
    paces: Vec<Pace>,
    pub bounced_first: u64,
}

impl Measured {
    pub fn new(trial: &Trial, until: SimTime) -> Self {
        Self {
            greedy: trial.greedy as usize,
            slot_bytes: f64::from(trial.slot_speed) * f64::from(1 << 20),
            until,
            groups: [Counts::default(), Counts::default()],
            paces: vec![Pace::default(); trial.databases as usize],
            bounced_first: 0,
        }
    }

    fn group(&mut self, database: usize) -> &mut Counts {
        &mut self.groups[usize::from(database < self.greedy)]
    }

    /// A job leaves the line: a slot or the own machine begins it.
    pub fn began(&mut self, now: SimTime, job: &Job) {
        let waited = now.since(job.asked);
        let group = self.group(job.database);
        group.jobs += 1;
        group.queue.add(waited);
        if job.start == 0 {
            group.queue_level0.add(waited);
        }
    }

    /// A job was sent home by the pool, or taken back.
    pub fn went_home(&mut self, job: &Job, reason: LocalReason) {
        let group = self.group(job.database);
        group.home += 1;
        group.home_level0 += u64::from(job.start == 0);
        group.home_overloaded += u64::from(reason == LocalReason::Overloaded);
        group.home_hedge += u64::from(reason == LocalReason::Hedge);
    }

    /// A slot worked for a job from `since` until now.
    pub fn worked(&mut self, now: SimTime, job: &Job, since: SimTime) {
        let until = self.until.min(now);
        self.group(job.database).worked += until.since(since);
    }

    /// A job is done.
    #[allow(clippy::cast_precision_loss)] // bytes of a job are far below 2^53
    pub fn done(&mut self, now: SimTime, job: &Job) {
        let pace = &mut self.paces[job.database];
        pace.ideal += job.bytes as f64 / self.slot_bytes;
        pace.took += now.since(job.asked).as_millis_f64() / 1e3;
    }

    /// Jain's index over the databases that are not greedy.
    #[allow(clippy::cast_precision_loss)] // a few thousand databases
    fn jain(&self) -> f64 {
        let paces = self.paces.iter().skip(self.greedy);
        let paces = paces.filter(|pace| pace.took > 0.0);
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for pace in paces {
            let share = pace.ideal / pace.took;
            count += 1.0;
            sum += share;
            squares += share * share;
        }
        if squares == 0.0 {
            return 1.0;
        }
        sum * sum / (count * squares)
    }

    /// The numbers. `databases` says of each how much it wrote and how long its writes waited.
    pub fn outcome(mut self, trial: &Trial, databases: &[(u64, Nanos)]) -> CaasOutcome {
        let worked: f64 = self.groups.iter().map(|group| seconds(group.worked)).sum();
        let slots = f64::from(trial.workers * trial.slots);
        let jain = round(self.jain(), 4);
        let (greedy, others) = databases.split_at(self.greedy.min(databases.len()));
        let [of_others, of_greedy] = &mut self.groups;
        CaasOutcome {
            others: group(of_others, others, worked),
            greedy: group(of_greedy, greedy, worked),
            busy: round(worked / (slots * f64::from(trial.minutes) * 60.0), 4),
            jain,
            drain: None,
            bounced_first: self.bounced_first,
            events: 0,
        }
    }
}

fn group(counts: &mut Counts, databases: &[(u64, Nanos)], worked: f64) -> Group {
    let written: u64 = databases.iter().map(|(bytes, _)| *bytes).sum();
    let stalls = || databases.iter().map(|(_, stalled)| seconds(*stalled));
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let written = round(written as f64 / f64::from(1 << 20), 0);
    Group {
        written,
        stalled: round(stalls().sum(), 3),
        stalled_worst: round(stalls().fold(0.0, f64::max), 3),
        jobs: counts.jobs,
        home: counts.home,
        home_level0: counts.home_level0,
        home_overloaded: counts.home_overloaded,
        home_hedge: counts.home_hedge,
        queue: Spread::of(&mut counts.queue),
        queue_level0: Spread::of(&mut counts.queue_level0),
        share: round(seconds(counts.worked) / worked.max(f64::MIN_POSITIVE), 4),
    }
}

/// A span in seconds, to the millisecond.
pub(super) fn seconds(span: Nanos) -> f64 {
    round(millis(span) / 1e3, 3)
}
