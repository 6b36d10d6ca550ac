//! Databases: which are connected, which jobs they wait for, how near they are to a write stall.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_core::check::ensure;
use manxdb_core::{LocalTime, NodeId};

use super::jobs::State;
use super::{Control, Step};
use crate::job::{DatabaseId, JobId, Pressure, SessionId};
use crate::message::{Alive, Message};
use crate::record::Record;

/// A database that is open.
#[derive(Debug)]
pub(super) struct Session {
    pub id: SessionId,
    /// Peer that its last message came from; `None`: no message since the control plane started.
    pub peer: Option<NodeId>,
    /// The session before it, whose messages may still arrive.
    former: Option<SessionId>,
    heard: LocalTime,
    beat: u64,
    pub weight: u32,
    pub pressure: Pressure,
    /// Jobs below `next` that are not among these are over.
    waiting: BTreeSet<u64>,
    next: u64,
    /// Worker time that it received, by the fair clock: milliseconds of one worker, divided by its
    /// weight.
    pub used: u64,
    /// The same with exponential decay.
    pub lately: u64,
    /// Whether the store has an account of it.
    pub has_account: bool,
}

impl Session {
    pub fn new(id: SessionId, former: Option<SessionId>, now: LocalTime) -> Self {
        Self {
            id,
            peer: None,
            former,
            heard: now,
            beat: 0,
            weight: 1,
            pressure: Pressure::default(),
            waiting: BTreeSet::new(),
            next: 0,
            used: 0,
            lately: 0,
            has_account: false,
        }
    }

    /// What is true of a database between two steps.
    pub fn check(&self) -> Result<(), String> {
        ensure(self.weight > 0, || {
            "a database counts for something".to_owned()
        })?;
        ensure(self.lately <= self.used, || {
            let (lately, used) = (self.lately, self.used);
            format!("a database received {lately} lately, of {used} in all")
        })?;
        ensure(self.lately == 0 || self.has_account, || {
            let lately = self.lately;
            format!("a database received {lately} lately, which no store knows")
        })?;
        ensure(self.peer.is_some() == (self.beat > 0), || {
            let (peer, beat) = (self.peer, self.beat);
            format!("the session whose last beat is {beat} was heard from {peer:?}")
        })?;
        ensure(self.former != Some(self.id), || {
            format!("session {:?} comes after itself", self.id)
        })
    }

    /// Its silence counts from now on.
    pub fn is_expected(&mut self, now: LocalTime) {
        self.heard = now;
    }
}

impl Control {
    /// Whether a job is one of a database's present session.
    pub(super) fn is_present(&self, job: JobId) -> bool {
        let session = self.sessions.get(&job.database);
        session.is_some_and(|session| session.id == job.session && session.peer.is_some())
    }

    /// Whether the database said that it does not wait for it any more.
    pub(super) fn is_over(&self, job: JobId) -> bool {
        let session = self.sessions.get(&job.database);
        session.is_some_and(|one| job.number < one.next && !one.waiting.contains(&job.number))
    }

    /// Records the session of a database; the account of earlier sessions stays with the database.
    pub(super) fn open(&mut self, database: DatabaseId, id: SessionId, now: LocalTime) {
        let known = self.sessions.get(&database);
        if known.is_some_and(|known| known.id == id) {
            return;
        }
        let mut session = Session::new(id, known.map(|known| known.id), now);
        session.used = self.fair_clock;
        if let Some(known) = known {
            session.used = session.used.max(known.used);
            session.lately = known.lately;
            session.has_account = known.has_account;
        }
        self.sessions.insert(database, session);
    }

    pub(super) fn hear_alive(&mut self, step: &mut Step<'_>, from: NodeId, alive: &Alive) {
        let known = self.sessions.get(&alive.database);
        if known.and_then(|one| one.former) == Some(alive.session) {
            return; // it is over
        }
        self.open(alive.database, alive.session, step.now);
        let Some(session) = self.sessions.get_mut(&alive.database) else {
            return; // just inserted
        };
        if alive.beat <= session.beat {
            return; // an old one
        }
        session.peer = Some(from);
        session.heard = step.now;
        session.beat = alive.beat;
        session.weight = alive.weight.max(1);
        session.pressure = alive.pressure;
        session.waiting = alive.waiting.iter().copied().collect();
        session.next = alive.next;
        for (attempt, verdict) in &alive.settled {
            let job = attempt.job;
            if (job.database, job.session) == (alive.database, alive.session) {
                self.settle(*attempt, *verdict);
            }
        }
        self.end_what_nobody_waits_for(alive);
        self.answer_what_is_waited_for(alive);
        self.tell_database(alive.database, Message::Heard { beat: alive.beat });
    }

    fn end_what_nobody_waits_for(&mut self, alive: &Alive) {
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::KeepsJobsOfTheDead) {
            return;
        }
        let of_database = self.jobs_of(alive);
        let over = of_database.filter(|job| job.session != alive.session || self.is_over(*job));
        let over: Vec<JobId> = over.collect();
        for job in over {
            self.end(job);
        }
    }

    fn answer_what_is_waited_for(&mut self, alive: &Alive) {
        for number in alive.waiting.iter().copied() {
            let job = JobId {
                database: alive.database,
                session: alive.session,
                number,
            };
            let word = match self.jobs.get(&job).map(|job| &job.state) {
                #[cfg(feature = "mutants")]
                None if self.is_mutant(crate::mutants::Mutant::NeverMends) => continue,
                None => Message::Unknown { job },
                Some(State::Done {
                    attempt, result, ..
                }) => Message::Done {
                    attempt: *attempt,
                    result: Arc::clone(result),
                },
                Some(State::Waiting | State::Leased { .. }) => continue,
            };
            self.tell_database(alive.database, word);
        }
    }

    fn jobs_of(&self, alive: &Alive) -> impl Iterator<Item = JobId> {
        let first = JobId {
            database: alive.database,
            ..JobId::default()
        };
        let range = self.jobs.range(first..);
        let database = alive.database;
        range
            .map(|(job, _)| *job)
            .take_while(move |job| job.database == database)
    }

    /// Databases that are gone want nothing more.
    pub(super) fn forget_databases(&mut self, now: LocalTime) {
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::KeepsJobsOfTheDead) {
            return;
        }
        let patience = self.options.session;
        let gone: Vec<_> = self
            .sessions
            .iter()
            .filter(|(_, session)| now.since(session.heard) > patience)
            .map(|(database, _)| *database)
            .collect();
        for database in gone {
            let jobs: Vec<JobId> = self
                .jobs
                .keys()
                .copied()
                .filter(|job| job.database == database)
                .collect();
            for job in jobs {
                self.end(job);
            }
            let session = self.sessions.remove(&database);
            if session.is_some_and(|session| session.has_account) {
                self.record(Record::Gone { database });
            }
        }
    }
}
