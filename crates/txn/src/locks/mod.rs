//! Row locks: who may change a key, and who waits for whom.
//!
//! Requests for a key queue first in, first out. A request that would close a cycle of waiting
//! owners is refused, so the requester dies. Waiting itself is not done here: a queued
//! request is a [`Ticket`] that turns granted, and its owner's [`Waiter`] is woken. Every
//! cycle is seen by the request that closes it, because an owner waits for one key at a time
//! and requests that must queue are looked at one after another.

//!
//! Locks of large transactions have no entries while nobody else asks for them: [`packed`].

mod entry;
mod packed;

use manxdb_core::check::deep;
use std::collections::HashMap;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use manxdb_storage::Version;
use parking_lot::Mutex;

use self::entry::Entry;
use self::packed::PackedLocks;
use crate::error::TxnError;
use crate::keys::RunBuilder;
use crate::model::{LockKey, TxnId};
use crate::waiter::Waiter;

/// What a lock keeps others from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Others may share it, none may have it exclusively.
    Shared,
    /// Nobody else may have it.
    Exclusive,
}

/// A request in a queue.
pub struct Ticket {
    owner: TxnId,
    key: LockKey,
    strength: Strength,
    granted: AtomicBool,
    waiter: Arc<dyn Waiter>,
}

impl Ticket {
    /// Whether the lock is the owner's now.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        self.granted.load(Ordering::Acquire)
    }

    /// The key asked for.
    #[must_use]
    pub fn key(&self) -> &LockKey {
        &self.key
    }

    /// The strength asked for.
    #[must_use]
    pub fn strength(&self) -> Strength {
        self.strength
    }
}

/// What became of a request.
pub enum Request {
    /// The lock is the owner's.
    Granted,
    /// The owner must wait until the ticket is granted, or [`LockTable::cancel`] it.
    Queued(Arc<Ticket>),
}

type Shard = HashMap<LockKey, Entry>;

/// Locks of one commit path, by key.
pub struct LockTable {
    shards: Vec<Mutex<Shard>>,
    /// Locks without entries. Looked at under the shard of a key, never before.
    packed: PackedLocks,
    hasher: RandomState,
    /// The queued request of each waiting owner. Taken before a shard, never after.
    waiting: Mutex<HashMap<TxnId, Arc<Ticket>>>,
}

/// Enough that sessions on a handful of cores rarely meet on a shard's mutex.
const SHARDS: usize = 32;
const _: () = assert!(
    SHARDS.is_power_of_two(),
    "the low bits of a hash choose a shard"
);

impl Default for LockTable {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            packed: PackedLocks::default(),
            hasher: RandomState::new(),
            waiting: Mutex::default(),
        }
    }
}

impl LockTable {
    /// Takes the lock if that needs no waiting; whether `owner` has it now.
    pub fn try_acquire(&self, owner: TxnId, key: &LockKey, strength: Strength) -> bool {
        let mut shard = self.shard(key).lock();
        if let Some(entry) = shard.get_mut(key) {
            return entry.try_grant(owner, strength);
        }
        let (entry, is_granted) = match self.packed.unpack(key) {
            None => (Entry::held_by(owner, strength), true),
            Some(mut entry) => {
                let is_granted = entry.try_grant(owner, strength);
                (entry, is_granted)
            }
        };
        let other = shard.insert(Arc::clone(key), entry);
        assert!(other.is_none(), "a key has one entry");
        is_granted
    }

    /// Takes the lock or queues for it; `waiter` is woken when a queued request is granted.
    ///
    /// # Errors
    /// [`TxnError::Deadlock`] when waiting would close a cycle; nothing is queued then.
    pub fn acquire(
        &self,
        owner: TxnId,
        key: &LockKey,
        strength: Strength,
        waiter: &Arc<dyn Waiter>,
    ) -> Result<Request, TxnError> {
        if self.try_acquire(owner, key, strength) {
            return Ok(Request::Granted);
        }
        let mut waiting = self.waiting.lock();
        let ticket = Arc::new(Ticket {
            owner,
            key: Arc::clone(key),
            strength,
            granted: AtomicBool::new(false),
            waiter: Arc::clone(waiter),
        });
        {
            let mut shard = self.shard(key).lock();
            let entry = shard.entry(Arc::clone(key));
            let entry = entry.or_insert_with(|| self.packed.unpack(key).unwrap_or_default());
            if entry.try_grant(owner, strength) {
                return Ok(Request::Granted);
            }
            entry.enqueue(Arc::clone(&ticket));
            if deep() {
                entry.check();
            }
        }
        let other = waiting.insert(owner, Arc::clone(&ticket));
        // Else a cycle through the other one would not be seen.
        assert!(other.is_none(), "an owner waits for one key at a time");
        if self.closes_cycle(&waiting, &ticket) {
            waiting.remove(&owner);
            drop(waiting);
            self.leave_queue(&ticket);
            return Err(TxnError::Deadlock);
        }
        Ok(Request::Queued(ticket))
    }

    /// Whether `owner` holds `key` at least as strongly.
    #[must_use]
    pub fn holds(&self, owner: TxnId, key: &[u8], strength: Strength) -> bool {
        let shard = self.shard(key).lock();
        let held = match shard.get(key) {
            Some(entry) => entry.held_strength(owner),
            None => self.packed.held_strength(owner, key),
        };
        held.is_some_and(|held| held >= strength)
    }

    /// Ends the wait for a ticket, granted or not; whether the lock is the owner's.
    pub fn cancel(&self, ticket: &Arc<Ticket>) -> bool {
        let waited = self.waiting.lock().remove(&ticket.owner);
        assert!(
            waited.is_none_or(|waited| Arc::ptr_eq(&waited, ticket)),
            "an owner waits for one key at a time"
        );
        if !ticket.is_granted() {
            self.leave_queue(ticket);
        }
        ticket.is_granted()
    }

    /// Gives back locks of `owner` and grants them to those next in line.
    pub fn release(&self, owner: TxnId, keys: impl IntoIterator<Item = LockKey>) {
        for key in keys {
            self.change(&key, |entry| entry.remove_holder(owner));
        }
    }

    /// Packs locks that `owner` holds, so that they take few bytes. Those that others share or wait
    /// for stay as they are, and are given back here.
    pub fn pack(&self, owner: TxnId, mut keys: Vec<LockKey>) -> Vec<LockKey> {
        keys.sort_unstable();
        keys.dedup();
        let mut exclusive = RunBuilder::new(Version::ZERO);
        let mut shared = RunBuilder::new(Version::ZERO);
        // A key that is in no run keeps its entry, also when it is held alone a moment later.
        let mut left = Vec::new();
        keys.retain(|key| {
            let strength = Self::held_alone(&self.shard(key).lock(), owner, key);
            match strength {
                Some(Strength::Exclusive) => exclusive.push(key, Version::ZERO),
                Some(Strength::Shared) => shared.push(key, Version::ZERO),
                None => left.push(key.clone()),
            }
            strength.is_some()
        });
        // Before an entry goes: who misses it finds the run.
        self.packed.add(owner, exclusive.finish(), shared.finish());
        keys.retain(|key| {
            let mut shard = self.shard(key).lock();
            let is_alone = Self::held_alone(&shard, owner, key).is_some();
            if is_alone {
                shard.remove(key);
            }
            assert!(
                !deep()
                    || shard.contains_key(key)
                    || self.packed.held_strength(owner, key).is_some(),
                "a lock is in the table or packed"
            );
            shard.contains_key(key)
        });
        keys.append(&mut left);
        keys
    }

    fn held_alone(shard: &Shard, owner: TxnId, key: &LockKey) -> Option<Strength> {
        shard.get(key)?.held_alone(owner)
    }

    /// Gives back all locks of `owner` that were packed.
    pub fn release_packed(&self, owner: TxnId) {
        let unpacked = self.packed.remove(owner);
        self.release(owner, unpacked);
    }

    /// Bytes that packed locks take.
    #[must_use]
    pub fn packed_bytes(&self) -> usize {
        self.packed.size_bytes()
    }

    /// Keys that anybody holds or waits for; those of large transactions that others have asked for
    /// twice.
    #[must_use]
    pub fn len(&self) -> usize {
        let entries = self.shards.iter().map(|shard| shard.lock().len());
        entries.sum::<usize>() + self.packed.len()
    }

    /// Whether nobody holds a lock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn leave_queue(&self, ticket: &Arc<Ticket>) {
        self.change(&ticket.key, |entry| entry.dequeue(ticket));
    }

    /// Changes an entry, then grants what the change made possible.
    fn change(&self, key: &LockKey, change: impl FnOnce(&mut Entry)) {
        let granted = {
            let mut shard = self.shard(key).lock();
            let Some(entry) = shard.get_mut(key) else {
                return;
            };
            change(entry);
            let granted = entry.grant_next();
            if deep() {
                entry.check();
            }
            if entry.is_unused() {
                shard.remove(key);
            }
            granted
        };
        for ticket in granted {
            ticket.waiter.wake();
        }
    }

    /// Whether the new `ticket` makes its owner wait, over any number of others, for itself.
    fn closes_cycle(&self, waiting: &HashMap<TxnId, Arc<Ticket>>, ticket: &Arc<Ticket>) -> bool {
        let mut seen = HashSet::new();
        let mut to_visit = vec![Arc::clone(ticket)];
        while let Some(next) = to_visit.pop() {
            for blocker in self.blockers(&next) {
                if blocker == ticket.owner {
                    return true;
                }
                if seen.insert(blocker) {
                    to_visit.extend(waiting.get(&blocker).cloned());
                }
            }
        }
        false
    }

    fn blockers(&self, ticket: &Arc<Ticket>) -> Vec<TxnId> {
        let shard = self.shard(&ticket.key).lock();
        shard
            .get(&ticket.key)
            .map_or_else(Vec::new, |entry| entry.blockers(ticket))
    }

    fn shard(&self, key: &[u8]) -> &Mutex<Shard> {
        #[allow(clippy::cast_possible_truncation)] // Only the low bits choose a shard.
        let hash = self.hasher.hash_one(key) as usize;
        &self.shards[hash % SHARDS]
    }
}

#[cfg(test)]
mod tests;
