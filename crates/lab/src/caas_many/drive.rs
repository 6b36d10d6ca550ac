//! Databases and slots around the cores: what they ask, run and are told.

use std::collections::BTreeMap;

use manxdb_core::{Nanos, NodeId, Random, RequestId};
use manxdb_jobs::client::{Answer, Ask};
use manxdb_jobs::control::report::{JobLine, JobPhase};
use manxdb_jobs::job::{AttemptId, DatabaseId, Facts, LocalReason, Spec};
use manxdb_jobs::message::{Ended, OutputVerdict};
use manxdb_jobs::node::{Node, NodeAnswer, NodeAsk};
use manxdb_jobs::worker::{Given, SlotAsk};
use manxdb_sim::{Driver, Outside, SimTime};

use super::Trial;
use super::database::{Database, Limits, Next};
use super::home::Home;
use super::measured::{Job, Measured, State};
use super::pool::{CONTROL, Pool, database, worker};
use super::tree::Shape;
use super::writes::{Habit, Writes};

const MIB: u64 = 1 << 20;

/// Bytes a second at which a memtable is written out.
const FLUSH_SPEED: u64 = 256 * MIB;
/// Until a slot has opened a database and begins to compact.
const OPENING: Nanos = Nanos::from_millis(50);
/// Between two words of a database about its level 0.
const PRESSURE: Nanos = Nanos::from_secs(2);
/// The smallest and the largest database at the start, in MiB; sizes are spread evenly over the
/// logarithm.
const SIZES: (f64, f64) = (1_024.0, 16_384.0);
/// Compactions at a time: of a database with a pool, of one without.
const AT_A_TIME: (usize, usize) = (5, 1);

/// The store's settings.
const SHAPE: Shape = Shape {
    memtable: 64 * MIB,
    file: 64 * MIB,
    level0_trigger: 4,
    level0_stop: 36,
    base: 256 * MIB,
    ratio: 10,
};

/// What a wake-up is about.
#[derive(Debug, Clone, Copy)]
enum Wake {
    Arrival(usize),
    Wrote(usize),
    Flushed(usize),
    Home(usize, u32),
    Slot(u64),
    Pressure(usize),
}

impl Wake {
    fn key(self) -> u64 {
        let of = |kind: u64, database: usize, more: u32| {
            kind << 60 | (database as u64) << 32 | u64::from(more)
        };
        match self {
            Self::Arrival(database) => of(0, database, 0),
            Self::Wrote(database) => of(1, database, 0),
            Self::Flushed(database) => of(2, database, 0),
            Self::Home(database, generation) => of(3, database, generation),
            Self::Pressure(database) => of(4, database, 0),
            Self::Slot(run) => 5 << 60 | run,
        }
    }

    fn of(key: u64) -> Self {
        let database = usize::try_from(key >> 32 & 0x0fff_ffff).unwrap_or(usize::MAX);
        match key >> 60 {
            0 => Self::Arrival(database),
            1 => Self::Wrote(database),
            2 => Self::Flushed(database),
            3 => Self::Home(database, u32::try_from(key & 0xffff_ffff).unwrap_or(0)),
            4 => Self::Pressure(database),
            _ => Self::Slot(key & !(0xf << 60)),
        }
    }
}

/// What a slot runs.
#[derive(Debug)]
struct Run {
    node: NodeId,
    attempt: AttemptId,
    watch: RequestId,
    job: usize,
    since: SimTime,
}

/// All databases and slots.
pub(super) struct Load {
    trial: Trial,
    /// Writes arrive until then.
    until: SimTime,
    databases: Vec<Database>,
    /// Whether a database has something to say about its level 0, and says it again and again.
    tells: Vec<bool>,
    jobs: Vec<Job>,
    /// Jobs asked for and not answered, by request.
    asked: BTreeMap<RequestId, usize>,
    runs: BTreeMap<u64, Run>,
    watches: BTreeMap<RequestId, u64>,
    run_count: u64,
    pub measured: Measured,
    /// Written by then, of each database.
    written: Option<Vec<u64>>,
    problem: Option<String>,
}

impl Load {
    pub fn new(trial: &Trial) -> Self {
        let until = SimTime::from_secs(u64::from(trial.minutes) * 60);
        let all = trial.databases as usize;
        Self {
            trial: trial.clone(),
            until,
            databases: (0..all).map(|place| build(trial, place, until)).collect(),
            tells: vec![false; all],
            jobs: Vec::new(),
            asked: BTreeMap::new(),
            runs: BTreeMap::new(),
            watches: BTreeMap::new(),
            run_count: 0,
            measured: Measured::new(trial, until),
            written: None,
            problem: None,
        }
    }

    fn has_pool(&self) -> bool {
        self.trial.who.policy().is_some()
    }

    /// What each database wrote while writes arrived, and how long its writes waited in all.
    pub fn databases(&self, now: SimTime) -> Vec<(u64, Nanos)> {
        let databases = self.databases.iter().enumerate();
        let written = |place: usize, one: &Database| match &self.written {
            Some(written) => written.get(place).copied().unwrap_or(0),
            None => one.ingested(),
        };
        databases
            .map(|(place, one)| (written(place, one), one.stalled(now)))
            .collect()
    }

    /// The end of the time in which writes arrive: notes what was written in it.
    pub fn note_written(&mut self) {
        let written = self.databases.iter().map(Database::ingested);
        self.written = Some(written.collect());
    }

    /// Whether databases from a place on have nothing left to do.
    pub fn are_done(&self, from: usize, now: SimTime) -> bool {
        now >= self.until && self.databases[from..].iter().all(|one| one.is_done(now))
    }

    /// That every byte is somewhere and every job has ended, or has not, but once.
    pub fn check(&self) -> Result<(), String> {
        for (place, database) in self.databases.iter().enumerate() {
            let what = database.check();
            what.map_err(|what| format!("database {place}: {what}"))?;
        }
        self.problem.clone().map_or(Ok(()), Err)
    }

    /// Jobs that have not ended.
    pub fn open(&self) -> usize {
        let over = |job: &&Job| job.state != State::Over;
        self.jobs.iter().filter(over).count()
    }

    /// Lets a database do what it can, and asks for the compactions that it wants.
    fn go_on(&mut self, outside: &mut Outside<'_, Pool>, place: usize) {
        let now = outside.now();
        for next in self.databases[place].go_on(now) {
            let (at, wake) = match next {
                Next::Wrote(at) => (at, Wake::Wrote(place)),
                Next::Flushed(at) => (at, Wake::Flushed(place)),
            };
            outside.wake_at(at, wake.key());
        }
        while let Some(wanted) = self.databases[place].compact(now) {
            let job = Job {
                database: place,
                compaction: wanted.number,
                start: wanted.start,
                bytes: wanted.bytes,
                asked: now,
                state: State::Waiting,
            };
            let facts = Facts {
                start_level: u8::try_from(wanted.start).unwrap_or(u8::MAX),
                output_level: u8::try_from(wanted.output).unwrap_or(u8::MAX),
                bytes: wanted.bytes,
                score: i64::try_from(wanted.score).unwrap_or(i64::MAX),
                ..Facts::default()
            };
            self.ask(outside, job, facts);
        }
    }

    fn ask(&mut self, outside: &mut Outside<'_, Pool>, job: Job, facts: Facts) {
        let place = self.jobs.len();
        let node = database(&self.trial, job.database);
        self.jobs.push(job);
        if !self.has_pool() {
            self.begin_at_home(outside, place);
            return;
        }
        let input = (place as u64).to_be_bytes().to_vec().into();
        let spec = Spec { facts, input };
        let request = outside.request(node, NodeAsk::Client(Ask::Compact(spec)));
        self.asked.insert(request, place);
    }

    fn begin_at_home(&mut self, outside: &mut Outside<'_, Pool>, place: usize) {
        let now = outside.now();
        let job = &mut self.jobs[place];
        if job.state == State::Waiting {
            self.measured.began(now, job);
        }
        job.state = State::AtHome;
        let (database, bytes) = (job.database, job.bytes);
        self.databases[database].home.add(now, place, bytes);
        self.foresee_home(outside, database);
    }

    fn foresee_home(&mut self, outside: &mut Outside<'_, Pool>, database: usize) {
        if let Some((at, generation)) = self.databases[database].home.next() {
            outside.wake_at(at, Wake::Home(database, generation).key());
        }
    }

    /// A job is done, wherever: what it was part of may be installed.
    fn over(&mut self, outside: &mut Outside<'_, Pool>, place: usize) {
        let job = &mut self.jobs[place];
        if job.state == State::Over {
            self.problem = Some(format!("job {place} ended twice"));
            return;
        }
        job.state = State::Over;
        self.measured.done(outside.now(), job);
        let (database, compaction) = (job.database, job.compaction);
        self.databases[database].compacted(compaction);
        self.go_on(outside, database);
        self.tell_pressure(outside, database);
    }

    /// Tells the service about level 0, when there is something to tell.
    fn tell_pressure(&mut self, outside: &mut Outside<'_, Pool>, place: usize) {
        if !self.has_pool() {
            return;
        }
        let pressure = self.databases[place].pressure(outside.now());
        let node = database(&self.trial, place);
        outside.request(node, NodeAsk::Client(Ask::Pressure(pressure)));
        let has_more = pressure.files > 0 || pressure.files_hour > 0;
        if has_more && !self.tells[place] {
            self.tells[place] = true;
            outside.wake_at(outside.now() + PRESSURE, Wake::Pressure(place).key());
        }
    }

    fn answer(&mut self, outside: &mut Outside<'_, Pool>, id: RequestId, answer: Answer) {
        let Some(place) = self.asked.remove(&id) else {
            self.problem = Some(format!("{answer:?} for nobody"));
            return;
        };
        match answer {
            Answer::Done { attempt, result } => {
                let job = &self.jobs[place];
                if job_of(&result) != Some(place) {
                    self.problem = Some(format!("{attempt} has the result of another job"));
                }
                let settled = Ask::Settled {
                    attempt,
                    verdict: OutputVerdict::Installed,
                };
                let node = database(&self.trial, job.database);
                outside.request(node, NodeAsk::Client(settled));
                self.over(outside, place);
            }
            Answer::Local(reason) => {
                self.look_at_bounce(outside, place, reason);
                self.measured.went_home(&self.jobs[place], reason);
                self.begin_at_home(outside, place);
            }
        }
    }

    /// Whether what relieves level 0 was sent home before something deeper of its database.
    fn look_at_bounce(&mut self, outside: &Outside<'_, Pool>, place: usize, reason: LocalReason) {
        let job = &self.jobs[place];
        if reason != LocalReason::Overloaded || job.start > 0 {
            return;
        }
        let Some(Node::Control(control)) = outside.core(CONTROL) else {
            return;
        };
        let id = DatabaseId(u64::from(database(&self.trial, job.database).0));
        let deeper = |line: &JobLine| {
            line.job.database == id && line.facts.start_level > 0 && line.phase == JobPhase::Waiting
        };
        self.measured.bounced_first += u64::from(control.report().jobs.iter().any(deeper));
    }

    fn slot(&mut self, outside: &mut Outside<'_, Pool>, node: NodeId, id: RequestId, given: Given) {
        match given {
            Given::Run(attempt, spec) => self.run(outside, node, attempt, &spec),
            Given::Stop => {
                let run = self.watches.remove(&id);
                if let Some(run) = run.and_then(|run| self.runs.remove(&run)) {
                    let job = &self.jobs[run.job];
                    self.measured.worked(outside.now(), job, run.since);
                    outside.request(node, NodeAsk::Slot(SlotAsk::Next));
                }
            }
            Given::Over | Given::Drained => {}
        }
    }

    fn run(
        &mut self,
        outside: &mut Outside<'_, Pool>,
        node: NodeId,
        attempt: AttemptId,
        spec: &Spec,
    ) {
        let now = outside.now();
        let Some(place) = job_of(&spec.input).filter(|place| *place < self.jobs.len()) else {
            self.problem = Some(format!("{attempt} has no job"));
            return;
        };
        let job = &mut self.jobs[place];
        // One that was taken back meanwhile is stopped in a moment.
        if job.state == State::Waiting {
            job.state = State::Running;
            self.measured.began(now, job);
        }
        let watch = outside.request(node, NodeAsk::Slot(SlotAsk::Watch(attempt)));
        self.run_count += 1;
        let (number, speed) = (self.run_count, u128::from(self.trial.slot_speed) << 20);
        let nanos = u128::from(job.bytes) * 1_000_000_000 / speed.max(1);
        let takes = OPENING + Nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2));
        let run = Run {
            node,
            attempt,
            watch,
            job: place,
            since: now,
        };
        self.watches.insert(watch, number);
        self.runs.insert(number, run);
        outside.wake_at(now + takes, Wake::Slot(number).key());
    }

    fn run_ends(&mut self, outside: &mut Outside<'_, Pool>, number: u64) {
        let Some(run) = self.runs.remove(&number) else {
            return; // it was stopped
        };
        self.watches.remove(&run.watch);
        let job = &self.jobs[run.job];
        self.measured.worked(outside.now(), job, run.since);
        let result = (run.job as u64).to_be_bytes().to_vec().into();
        let ended = SlotAsk::Ended(run.attempt, Ended::Finished(result));
        outside.request(run.node, NodeAsk::Slot(ended));
        outside.request(run.node, NodeAsk::Slot(SlotAsk::Next));
    }

    fn arrival(&mut self, outside: &mut Outside<'_, Pool>, place: usize) {
        self.databases[place].writes.arrive();
        self.expect_arrival(outside, place);
        self.go_on(outside, place);
    }

    fn expect_arrival(&mut self, outside: &mut Outside<'_, Pool>, place: usize) {
        if let Some(at) = self.databases[place].writes.next_arrival(outside.now()) {
            outside.wake_at(at, Wake::Arrival(place).key());
        }
    }
}

/// The number of a job in what travels with it.
fn job_of(bytes: &[u8]) -> Option<usize> {
    let number = u64::from_be_bytes(bytes.try_into().ok()?);
    usize::try_from(number).ok()
}

fn build(trial: &Trial, place: usize, until: SimTime) -> Database {
    let mut random = Random::stream(trial.seed, &[place as u64]);
    let size = SIZES.0 * (SIZES.1 / SIZES.0).powf(random.unit());
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 16 GiB at most
    let size = (size as u64) * MIB;
    let home = Home::new(u64::from(trial.home_speed) * MIB);
    let is_greedy = place < trial.greedy as usize;
    let habit = if is_greedy {
        Habit::Steady
    } else {
        Habit::Bursts {
            gap: trial.gap.into(),
            bytes: f64::from(trial.burst) * f64::from(1 << 20),
        }
    };
    let speed = if is_greedy {
        trial.mean_speed()
    } else {
        u64::from(trial.write_speed) * MIB
    };
    let (with_pool, without) = AT_A_TIME;
    let has_pool = trial.who.policy().is_some();
    let rewrites = match (is_greedy, has_pool) {
        (true, true) => trial.asks as usize,
        (true, false) => without.min(trial.asks as usize),
        (false, _) => 0,
    };
    let limits = Limits {
        compactions: if has_pool { with_pool } else { without },
        rewrites,
        flush_speed: FLUSH_SPEED,
    };
    let writes = Writes::new(habit, speed, until, random);
    Database::new(SHAPE, size, writes, home, limits)
}

impl Driver<Pool> for Load {
    fn begin(&mut self, outside: &mut Outside<'_, Pool>) {
        if self.has_pool() {
            for place in 0..self.trial.workers {
                for _ in 0..self.trial.slots {
                    outside.request(worker(place), NodeAsk::Slot(SlotAsk::Next));
                }
            }
        }
        for place in 0..self.databases.len() {
            self.expect_arrival(outside, place);
            self.go_on(outside, place);
        }
    }

    fn reply(
        &mut self,
        outside: &mut Outside<'_, Pool>,
        node: NodeId,
        id: RequestId,
        body: NodeAnswer,
    ) {
        match body {
            NodeAnswer::Slot(given) => self.slot(outside, node, id, given),
            NodeAnswer::Client(answer) => self.answer(outside, id, answer),
            NodeAnswer::Report(_) => {}
        }
    }

    fn wake(&mut self, outside: &mut Outside<'_, Pool>, key: u64) {
        match Wake::of(key) {
            Wake::Arrival(place) => self.arrival(outside, place),
            Wake::Wrote(place) => {
                self.databases[place].wrote();
                self.go_on(outside, place);
            }
            Wake::Flushed(place) => {
                self.databases[place].flushed(outside.now());
                self.go_on(outside, place);
                self.tell_pressure(outside, place);
            }
            Wake::Home(place, generation) => {
                let ended = self.databases[place].home.end(outside.now(), generation);
                if let Some(job) = ended {
                    self.over(outside, job);
                    self.foresee_home(outside, place);
                }
            }
            Wake::Slot(run) => self.run_ends(outside, run),
            Wake::Pressure(place) => {
                self.tells[place] = false;
                self.tell_pressure(outside, place);
            }
        }
    }
}
