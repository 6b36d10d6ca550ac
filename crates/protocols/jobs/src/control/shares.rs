//! Accounts: how much of the pool each database received, and the rank that follows.
//!
//! The fair clock ([`choice`](super::choice)) has no memory: a database that asks for more than the
//! pool has for hours ranks beside one that asks for the first time today. With a thousand
//! databases, a few greedy ones would hold half of all slots whenever another database has a burst.
//! So an account remembers what each database received (half of it after half an hour), with three
//! consequences:
//!
//! - A database that received less than [`EQUAL`] times the average of the others ranks equal to
//!   them; one that received more waits behind them, further behind with each doubling.
//! - A database that received more leaves a part of the pool free, so that a burst of another finds
//!   free slots instead of running jobs, which are not preempted.
//! - No database runs more than [`SHARE_MAX`] times its share of the slots at a time while others
//!   wait.
//!
//! Weights count in all three.
//!
//! The control plane writes an account with each lease, so a restarted control plane or a new
//! leader continues with its predecessor's accounts. Accounts decay by the ticks of the leader:
//! they do not decay while there is no leader, or from the last lease until the control plane ends.

use std::collections::BTreeMap;

use manxdb_core::{LocalTime, Nanos};

use super::choice::predicted_millis;
use super::jobs::{Job, State};
use super::{Control, Session};
use crate::job::{DatabaseId, JobId, WorkerId};
use crate::record::Account;

/// Slots that a database may have while others wait, as a multiple of its share.
const SHARE_MAX: u64 = 2;
/// A database ranks equal to the others until its account exceeds this multiple of their average.
const EQUAL: u64 = 8;
/// Work that anybody may have been given and be equal to all others, in milliseconds of one worker.
const LITTLE: u64 = 120_000;
/// A database that received more than the others leaves one of this many slots free, except for
/// jobs that start on level 0.
const KEPT_FREE: u64 = 8;
const _: () = assert!(
    SHARE_MAX > 0 && EQUAL > 0 && KEPT_FREE > 0,
    "no database is kept from all slots by its share"
);
/// Time constant of the decay: an account falls to 1/e in this time, and to half in half an hour.
/// Counted in ticks, so a clock that jumps does not change accounts.
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
        assert!(
            crowd.deep_free <= crowd.deep && crowd.deep <= crowd.slots,
            "free slots are some of all: {} {} {}",
            crowd.deep_free,
            crowd.deep,
            crowd.slots
        );
        assert!(
            crowd.weights >= crowd.waits as u64,
            "each database that waits counts for something"
        );
        assert!(
            crowd.waits <= control.sessions.len(),
            "what waits is wanted by a database that is there: {} of {}",
            crowd.waits,
            control.sessions.len()
        );
        for session in control.sessions.values() {
            crowd.lately = crowd.lately.saturating_add(session.lately);
        }
        crowd
    }

    /// How many ranks a database stands behind the others because of its account.
    pub fn rank(&self, control: &Control, database: DatabaseId) -> Rank {
        #[cfg(feature = "mutants")]
        if control.is_mutant(crate::mutants::Mutant::NoFairShares) {
            return 0;
        }
        let Some(session) = control.sessions.get(&database) else {
            return 0;
        };
        assert!(
            session.lately <= self.lately,
            "all databases were given what one was: {} of {}",
            session.lately,
            self.lately
        );
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
        assert!(
            self.lately.div_ceil(part) <= self.lately,
            "no more is forgotten than there is"
        );
        self.lately -= self.lately.div_ceil(part);
    }
}

impl Control {
    /// Takes over accounts from the store; their databases count as connected until their sessions
    /// time out.
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

    /// Charges a job to its database by the fair clock; returns the account to be written.
    pub(super) fn charge(&mut self, id: JobId, to: WorkerId) -> Account {
        let found = self.jobs.get(&id).zip(self.workers.get(&to));
        let millis = found.map_or(0, |(job, worker)| predicted_millis(self, job, worker));
        assert!(
            self.sessions.contains_key(&id.database),
            "a job goes with the session of its database: no account of {id} is written"
        );
        let Some(session) = self.sessions.get_mut(&id.database) else {
            return Account::default(); // cannot be: jobs go with the session of their database
        };
        // An idle database does not accumulate credit.
        let start = session.used.max(self.fair_clock);
        assert!(session.weight > 0, "a database counts for something");
        let charged = millis.max(1) / u64::from(session.weight);
        session.used = start.saturating_add(charged).saturating_add(1);
        session.was_given(charged);
        session.has_account = true;
        assert!(start >= self.fair_clock, "the fair clock does not go back");
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
