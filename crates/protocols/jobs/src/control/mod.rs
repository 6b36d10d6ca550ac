//! The control plane: jobs, leases, attempts, refusals.
//!
//! A job waits, is leased to a worker as an attempt, and has a result, which the control plane
//! keeps until the database reports that it is installed. Then the job is removed. Every change is
//! a [`Record`], and no message about a change is sent before its record is on disk ([`outbox`]),
//! so a restarted control plane continues from everything that it had announced.
//!
//! The control plane measures all time spans on its own clock. Leases decide only which worker does
//! the work: a clock that jumps makes attempts lost or late, never a wrong result, because a result
//! counts only while its attempt is the job's current one.

mod assignments;
mod check;
pub mod choice;
mod databases;
mod go_local;
mod jobs;
mod outbox;
pub mod report;
mod shares;
mod workers;

use manxdb_core::check::ensure;
use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::{Actions, Core, Digest, Event, EventOf, LocalTime, NodeId, Random};

use self::assignments::Assignments;
use self::databases::Session;
use self::jobs::{Job, State};
use self::outbox::Outbox;
pub use self::report::Report;
use self::workers::Worker;
use crate::job::{AttemptId, DatabaseId, JobId, LocalReason, SessionId, WorkerId};
use crate::message::Message;
use crate::options::{Options, Policy};
use crate::record::{Durable, Reached, Record};

/// The control plane.
#[derive(Debug)]
pub struct Control {
    options: Options,
    random: Random,
    jobs: BTreeMap<JobId, Job>,
    sessions: BTreeMap<DatabaseId, Session>,
    workers: BTreeMap<WorkerId, Worker>,
    banned: BTreeSet<WorkerId>,
    /// Results refused by databases, of workers that are not banned.
    strikes: BTreeMap<WorkerId, u32>,
    /// Work given out so far by the fair clock, in milliseconds of one worker for weight 1.
    fair_clock: u64,
    /// Ticks by which the accounts have decayed, including those under control planes before this
    /// one.
    beats: u64,
    /// Where each database has one worker: which.
    assignments: Assignments,
    /// CaaS-LSM's scheduler does nothing until then.
    rests_until: LocalTime,
    /// Whether a job may have a place now that had none when places were last given.
    has_news: bool,
    /// When the first job that is put off may be tried again.
    due: LocalTime,
    outbox: Outbox,
    counts: Counts,
    began: LocalTime,
}

/// Counters since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Jobs taken.
    pub taken: u64,
    /// Results recorded.
    pub done: u64,
    /// Attempts whose worker sent no beat in time.
    pub lost: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Ends of attempts that were not the present one any more.
    pub late: u64,
    /// Results that databases refused.
    pub refused: u64,
    /// Jobs sent back to their databases, by reason.
    pub local: BTreeMap<LocalReason, u64>,
}

/// Time to look for expired leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick;

/// Where a step's changes go.
struct Step<'a> {
    now: LocalTime,
    out: &'a mut Actions<Control>,
}

impl Control {
    /// A control plane over what its store has. `seed` makes the tokens of attempts: never the
    /// same twice.
    #[must_use]
    pub fn new(options: Options, seed: u64, durable: Durable) -> Self {
        let mut control = Self {
            options,
            random: Random::new(seed),
            jobs: BTreeMap::new(),
            sessions: BTreeMap::new(),
            workers: BTreeMap::new(),
            banned: durable.banned,
            strikes: BTreeMap::new(),
            fair_clock: 0,
            beats: 0,
            assignments: Assignments::default(),
            rests_until: LocalTime::default(),
            has_news: true,
            due: LocalTime::default(),
            outbox: Outbox::default(),
            counts: Counts::default(),
            began: LocalTime::default(),
        };
        for (id, stored) in durable.jobs {
            control.jobs.insert(id, Job::restored(stored));
        }
        control.restore(&durable.accounts);
        control
    }

    /// The state of the pool.
    #[must_use]
    pub fn report(&self) -> Report {
        report::of(self)
    }

    /// Peers that sent a message.
    pub fn peers(&self) -> impl Iterator<Item = NodeId> {
        let databases = self.sessions.values().filter_map(|one| one.peer);
        databases.chain(self.workers.values().map(|one| one.peer))
    }

    /// Records that it has written: the token of the last.
    pub(crate) fn records(&self) -> u64 {
        self.outbox.tokens()
    }

    /// Counters since the start.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Restarts all time spans after a restart: no worker is declared lost for the time in which
    /// the control plane was down.
    fn start(&mut self, step: &mut Step<'_>) {
        let now = step.now;
        self.began = now;
        for job in self.jobs.values_mut() {
            job.since = now;
            if let State::Leased { until, .. } = &mut job.state {
                *until = now + self.options.lease;
            }
        }
        // The ban may be all that was written of what followed it.
        for worker in self.banned.clone() {
            self.lose_all(now, worker);
        }
        let databases: BTreeMap<DatabaseId, SessionId> = self
            .jobs
            .keys()
            .map(|job| (job.database, job.session))
            .collect();
        for (database, session) in databases {
            self.open(database, session, now);
        }
        for session in self.sessions.values_mut() {
            session.is_expected(now);
        }
        step.out.set_timer(self.options.beat, Tick);
    }

    fn hear(&mut self, step: &mut Step<'_>, from: NodeId, message: Message) {
        match message {
            Message::Alive(alive) => self.hear_alive(step, from, &alive),
            Message::Submit { job, spec } => self.hear_submit(step, job, spec),
            Message::Withdraw { job } => {
                if self.is_present(job) {
                    self.end(job);
                }
            }
            Message::Beat(beat) => self.hear_beat(step, from, &beat),
            Message::Ended {
                worker,
                attempt,
                end,
            } => self.hear_ended(step, from, worker, attempt, end),
            Message::Heard { .. }
            | Message::Taken { .. }
            | Message::Begun { .. }
            | Message::Unknown { .. }
            | Message::Done { .. }
            | Message::GoLocal { .. }
            | Message::Run { .. }
            | Message::Kept { .. }
            | Message::Stop { .. }
            | Message::Recorded { .. }
            | Message::NotLeader { .. } => {} // nobody says this to a control plane
        }
    }

    fn tick(&mut self, step: &mut Step<'_>) {
        self.forget_databases(step.now);
        self.forget();
        self.expire_leases(step);
        self.send_home_what_fits_nowhere(step);
        self.send_home_what_is_too_much(step.now);
        // Whatever was thought to make no difference waits for one beat at most.
        self.has_news = true;
        step.out.set_timer(self.options.beat, Tick);
    }

    /// Gives waiting jobs to workers with room, if anything happened that makes a difference: most
    /// steps are words of databases and workers that say nothing new.
    fn place(&mut self, step: &mut Step<'_>) {
        if !self.has_news && step.now < self.due {
            return;
        }
        self.give_places(step);
        self.has_news = false;
        let put_off = self.jobs.values().filter(|job| job.is_waiting());
        let later = put_off.map(|job| job.not_before);
        let due = later.filter(|due| *due > step.now).min();
        self.due = due.unwrap_or(LocalTime(u64::MAX));
    }

    fn give_places(&mut self, step: &mut Step<'_>) {
        if self.options.policy == Policy::Static {
            self.assign();
        }
        while let Some(choice) = choice::next(self, step.now) {
            match choice {
                choice::Choice::Run(job, worker) => self.lease(step.now, job, worker),
                choice::Choice::GoLocal(job, reason) => self.go_local(job, reason),
                choice::Choice::Later(job, pause) => {
                    if let Some(job) = self.jobs.get_mut(&job) {
                        job.not_before = step.now + pause;
                        job.deferred += 1;
                    }
                    self.rests_until = step.now + pause;
                }
            }
        }
    }

    /// Gives every database that asks a worker of its own.
    fn assign(&mut self) {
        self.assignments.update(&self.workers);
        for (id, job) in self.jobs.iter().filter(|(_, job)| job.is_waiting()) {
            self.assignments.give(id.database, job.spec.facts.zone);
        }
    }

    #[cfg(feature = "mutants")]
    fn is_mutant(&self, mutant: crate::mutants::Mutant) -> bool {
        self.options.mutant == Some(mutant)
    }

    fn record(&mut self, record: Record) {
        self.outbox.record(record);
    }

    fn tell_database(&mut self, database: DatabaseId, message: Message) {
        if let Some(peer) = self.sessions.get(&database).and_then(|one| one.peer) {
            self.outbox.send(peer, message);
        }
    }

    fn tell_worker(&mut self, worker: WorkerId, message: Message) {
        if let Some(worker) = self.workers.get(&worker) {
            self.outbox.send(worker.peer, message);
        }
    }
}

impl Core for Control {
    type Message = Message;
    type Timer = Tick;
    /// Operators ask for the state of the pool.
    type Request = ();
    type Reply = Report;
    type Record = Record;

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        let mut step = Step { now, out };
        match event {
            Event::Start => self.start(&mut step),
            Event::Message { from, body } => self.hear(&mut step, from, body),
            Event::Timer(Tick) => self.tick(&mut step),
            Event::Request { id, body: () } => step.out.reply(id, self.report()),
            Event::Persisted(token) => self.outbox.persisted(token, step.out),
        }
        self.place(&mut step);
        self.outbox.flush(step.out);
    }

    fn check(&self) -> Result<(), String> {
        for (id, job) in &self.jobs {
            ensure(self.sessions.contains_key(&id.database), || {
                format!("the database of job {id} is there")
            })?;
            job.check(*id, self.options.policy)?;
            let State::Leased {
                attempt, worker, ..
            } = &job.state
            else {
                continue;
            };
            ensure(!self.banned.contains(worker), || {
                format!("attempt {attempt} is that of a worker that is banned")
            })?;
            let knows = |worker: &Worker| worker.leased.contains_key(attempt);
            ensure(self.workers.get(worker).is_none_or(knows), || {
                format!("attempt {attempt} is missing at its worker")
            })?;
        }
        for worker in self.workers.keys() {
            ensure(!self.banned.contains(worker), || {
                format!("worker {} is banned, and gets jobs", worker.0)
            })?;
        }
        for session in self.sessions.values() {
            session.check()?;
        }
        for worker in self.strikes.keys() {
            ensure(!self.banned.contains(worker), || {
                format!(
                    "refusals count against worker {}, which is banned",
                    worker.0
                )
            })?;
        }
        let strikes_max = self.options.strikes_max;
        ensure(
            self.strikes.values().all(|strikes| *strikes < strikes_max),
            || format!("{strikes_max} refusals ban a worker"),
        )?;
        self.check_counts()?;
        self.assignments.check()?;
        self.outbox.check()?;
        for (id, worker) in &self.workers {
            worker.check(*id, &self.jobs)?;
        }
        Ok(())
    }

    fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for (id, job) in &self.jobs {
            digest.number(id.database.0);
            digest.number(id.session.0);
            digest.number(id.number);
            digest.number(job.digest());
        }
        for id in self.workers.keys().chain(&self.banned) {
            digest.number(id.0);
        }
        digest.value()
    }
}

impl From<Reached> for State {
    fn from(reached: Reached) -> Self {
        match reached {
            Reached::Waiting => Self::Waiting,
            Reached::Leased(attempt, worker) => Self::Leased {
                attempt,
                worker,
                until: LocalTime::default(),
            },
            Reached::Result(attempt, worker, result) => Self::Done {
                attempt,
                worker,
                result,
            },
        }
    }
}

/// The worker of a leased attempt, if it is the job's present one.
fn leased_to(job: Option<&Job>, attempt: AttemptId) -> Option<WorkerId> {
    match job.map(|job| &job.state) {
        Some(State::Leased {
            attempt: present,
            worker,
            ..
        }) if *present == attempt => Some(*worker),
        _ => None,
    }
}
