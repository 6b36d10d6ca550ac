//! Who has had how much of the pool, and what that leaves to whom.
//!
//! The fair clock ([`choice`](super::choice)) forgets at once: who asks for more than there is for
//! hours stands in line beside who asks for the first time today, and with a thousand databases
//! those few hold half of all slots whenever somebody else has a burst. So what each database was
//! given is remembered here (half of it after half an hour), and three things follow:
//!
//! - Who was given less than [`EQUAL`] times what the others were, on average, is equal to all of
//!   them; who was given more waits behind them, further behind with each doubling.
//! - Who was given more leaves a part of the pool free, so that a burst of another finds slots and
//!   not jobs of many seconds that nobody interrupts.
//! - Nobody runs more than [`SHARE_MAX`] times its share of the slots at a time while others wait.
//!
//! Weights count in all three.
//!
//! An account is written with each attempt that is given out, so a control plane that starts again,
//! or another one that leads, goes on with what its predecessor knew. Memories fade by the beats of
//! whoever leads: while nobody does, and from the last attempt until the end, none are counted.

use std::collections::BTreeMap;

use manxdb_core::{LocalTime, Nanos};

use super::choice::predicted_millis;
use super::jobs::{Job, State};
use super::{Control, Session};
use crate::job::{DatabaseId, JobId, WorkerId};
use crate::record::Account;

/// Slots that a database may have while others wait, as a multiple of its share.
const SHARE_MAX: u64 = 2;
/// Work that a database may have been given, as a multiple of what others were on average, and
/// be equal to them.
const EQUAL: u64 = 8;
/// Work that anybody may have been given and be equal to all others, in milliseconds of one worker.
const LITTLE: u64 = 120_000;
/// One of so many slots that do not wait for level 0 is kept free by who was given more than others.
const KEPT_FREE: u64 = 8;
/// After how long work that was given counts for 1/e of what it was; for half after half an hour.
/// Counted in ticks: a clock that jumps makes nobody forget.
const MEMORY: Nanos = Nanos::from_secs(2_600);

/// How far behind others a database stands: 0 is equal to them, each step was given twice as much.
pub(super) type Rank = u32;

/// How the slots of a pool, and its work of late, are spread over databases.
#[derive(Debug)]
pub(super) struct Crowd {
    running: BTreeMap<DatabaseId, u64>,
    /// Databases that wait, and their weights together.
    waits: usize,
    weights: u64,
    slots: u64,
    /// Slots for what does not relieve level 0: all, and free ones.
    deep: u64,
    deep_free: u64,
    /// Work that all databases together were given lately, by weight, and how many they are.
    lately: u64,
    databases: u64,
}

impl Crowd {
    pub fn of(control: &Control) -> Self {
        let mut running: BTreeMap<DatabaseId, u64> = BTreeMap::new();
        let mut deep_at: BTreeMap<WorkerId, u64> = BTreeMap::new();
        let mut waiting = BTreeMap::new();
        for (id, job) in &control.jobs {
            match &job.state {
                State::Leased { worker, .. } => {
                    *running.entry(id.database).or_default() += 1;
                    if !relieves(job) {
                        *deep_at.entry(*worker).or_default() += 1;
                    }
                }
                State::Waiting => {
                    waiting.insert(id.database, weight_of(control, id.database));
                }
                State::Done { .. } => {}
            }
        }
        let mut crowd = Self {
            running,
            waits: waiting.len(),
            weights: waiting.values().sum(),
            slots: 0,
            deep: 0,
            deep_free: 0,
            lately: 0,
            databases: control.sessions.len() as u64,
        };
        for (id, worker) in &control.workers {
            let all = deep_slots(worker.slots());
            let taken = deep_at.get(id).copied().unwrap_or(0);
            crowd.slots += u64::from(worker.slots());
            crowd.deep += all;
            crowd.deep_free += all.saturating_sub(taken).min(worker.free().into());
        }
        for session in control.sessions.values() {
            crowd.lately = crowd.lately.saturating_add(session.lately);
        }
        crowd
    }

    /// How far behind others a database stands for what it was given.
    pub fn rank(&self, control: &Control, database: DatabaseId) -> Rank {
        #[cfg(feature = "mutants")]
        if control.is_mutant(crate::mutants::Mutant::NoFairShares) {
            return 0;
        }
        let Some(session) = control.sessions.get(&database) else {
            return 0;
        };
        let others = self.lately.saturating_sub(session.lately);
        let average = others / self.databases.saturating_sub(1).max(1);
        let equal = average.saturating_mul(EQUAL).max(LITTLE);
        (session.lately / equal)
            .checked_ilog2()
            .map_or(0, |doublings| doublings + 1)
    }

    /// Whether there is a slot that a job of this rank may take, if any worker is right for it.
    pub fn has_room(&self, job: &Job, rank: Rank) -> bool {
        let kept = if rank > 0 { self.deep / KEPT_FREE } else { 0 };
        relieves(job) || self.deep_free > kept
    }

    /// Whether a database has more slots than its share while others wait.
    pub fn is_over_share(&self, control: &Control, job: JobId) -> bool {
        #[cfg(feature = "mutants")]
        if control.is_mutant(crate::mutants::Mutant::NoFairShares) {
            return false;
        }
        let has = self.running.get(&job.database).copied().unwrap_or(0);
        let weight = weight_of(control, job.database);
        let product = |one: u64, other: u64| u128::from(one) * u128::from(other);
        let share = product(SHARE_MAX * self.slots, weight).max(self.weights.into());
        self.waits > 1 && product(has, self.weights) >= share
    }
}

impl Session {
    /// Notes work that it was given, in milliseconds of one worker by weight.
    pub(super) fn was_given(&mut self, millis: u64) {
        self.lately = self.lately.saturating_add(millis);
    }

    /// Forgets a little of it, each time that so much time has passed.
    pub(super) fn forget(&mut self, passed: Nanos) {
        let part = (MEMORY.0 / passed.0.max(1)).max(1);
        self.lately -= self.lately.div_ceil(part);
    }
}

impl Control {
    /// Takes over what was written of databases: they are there until it is clear that they are not.
    pub(super) fn restore(&mut self, accounts: &BTreeMap<DatabaseId, Account>) {
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::ForgetsAccounts) {
            return;
        }
        let newest = |number: fn(&Account) -> u64| accounts.values().map(number).max();
        self.fair_clock = newest(|account| account.clock).unwrap_or(0);
        self.beats = newest(|account| account.beats).unwrap_or(0);
        for (database, account) in accounts {
            let mut session = Session::new(account.session, None, LocalTime::default());
            session.used = account.used;
            session.lately = account.lately;
            session.has_account = true;
            for _ in account.beats..self.beats {
                if session.lately == 0 {
                    break; // as it stays, however long ago that was
                }
                session.forget(self.options.beat);
            }
            self.sessions.insert(*database, session);
        }
    }

    /// Lets memories of all databases fade by one beat.
    pub(super) fn forget(&mut self) {
        self.beats = self.beats.saturating_add(1);
        for session in self.sessions.values_mut() {
            session.forget(self.options.beat);
        }
    }

    /// Charges a job to its database by the fair clock; what is to be written of that.
    pub(super) fn charge(&mut self, id: JobId, to: WorkerId) -> Account {
        let found = self.jobs.get(&id).zip(self.workers.get(&to));
        let millis = found.map_or(0, |(job, worker)| predicted_millis(self, job, worker));
        let Some(session) = self.sessions.get_mut(&id.database) else {
            return Account::default(); // cannot be: jobs go with the session of their database
        };
        // Who had nothing to do for a while does not save up time.
        let start = session.used.max(self.fair_clock);
        let charged = millis.max(1) / u64::from(session.weight);
        session.used = start.saturating_add(charged).saturating_add(1);
        session.was_given(charged);
        session.has_account = true;
        self.fair_clock = start;
        Account {
            session: session.id,
            used: session.used,
            lately: session.lately,
            clock: start,
            beats: self.beats,
        }
    }
}

/// The weight of a database.
pub(super) fn weight_of(control: &Control, database: DatabaseId) -> u64 {
    let session = control.sessions.get(&database);
    u64::from(session.map_or(1, |session| session.weight))
}

/// Whether a job starts on level 0.
pub(super) fn relieves(job: &Job) -> bool {
    job.spec.facts.start_level == 0
}

/// Slots of a worker that anything may take: where there are several, the last one is for what
/// relieves level 0.
pub(super) fn deep_slots(slots: u32) -> u64 {
    u64::from(slots.saturating_sub(u32::from(slots > 1)))
}
