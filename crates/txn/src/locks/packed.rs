//! Locks of large transactions, packed: some eight bytes each, where an entry of the table takes 150.
//!
//! A lock that is held by one owner alone and waited for by nobody need not have an entry: its key is
//! in a run of its owner's. Whoever asks for a key that has no entry looks there too, and makes an
//! entry of what it finds, where it may queue as for any lock. So what an entry says is all that is
//! true of its key, and a key without one is held as the runs say.
//!
//! All that looks at a key is done under the mutex of its shard, which also guards that entry: a run is
//! published before the entries go that it stands for, so nobody finds neither.

use std::sync::atomic::{AtomicUsize, Ordering};

use manxdb_storage::Version;
use parking_lot::{Mutex, RwLock};

use super::Strength;
use super::entry::Entry;
use crate::keys::KeyRun;
use crate::model::{LockKey, TxnId};

/// A run has more than so many times the keys of the next.
const RUN_FACTOR: usize = 4;

/// Packed locks of all owners.
#[derive(Default)]
pub(super) struct PackedLocks {
    owners: RwLock<Vec<Owned>>,
    /// Owners, for who need not look at them.
    count: AtomicUsize,
}

/// Packed locks of one owner.
struct Owned {
    owner: TxnId,
    exclusive: Vec<KeyRun>,
    shared: Vec<KeyRun>,
    /// Keys that were given an entry again.
    unpacked: Mutex<Vec<LockKey>>,
}

impl Owned {
    fn strength(&self, key: &[u8]) -> Option<Strength> {
        let has = |runs: &[KeyRun]| runs.iter().any(|run| run.find(key).is_some());
        if has(&self.exclusive) {
            return Some(Strength::Exclusive);
        }
        has(&self.shared).then_some(Strength::Shared)
    }

    fn runs(&self) -> impl Iterator<Item = &KeyRun> {
        self.exclusive.iter().chain(&self.shared)
    }
}

impl PackedLocks {
    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// The entry of a key that has none, with those who hold it packed; `None` when nobody does.
    pub(super) fn unpack(&self, key: &LockKey) -> Option<Entry> {
        if self.is_empty() {
            return None;
        }
        let mut entry = None;
        for owned in self.owners.read().iter() {
            if let Some(strength) = owned.strength(key) {
                let entry = entry.get_or_insert_with(Entry::default);
                let is_granted = entry.try_grant(owned.owner, strength);
                assert!(is_granted, "packed locks do not exclude each other");
                owned.unpacked.lock().push(LockKey::clone(key));
            }
        }
        entry
    }

    /// How strongly `owner` holds a key that has no entry.
    pub(super) fn held_strength(&self, owner: TxnId, key: &[u8]) -> Option<Strength> {
        if self.is_empty() {
            return None;
        }
        let owners = self.owners.read();
        let owned = owners.iter().find(|owned| owned.owner == owner)?;
        owned.strength(key)
    }

    /// Notes locks of `owner`, which have entries still.
    pub(super) fn add(&self, owner: TxnId, exclusive: KeyRun, shared: KeyRun) {
        let mut owners = self.owners.write();
        let place = owners.iter().position(|owned| owned.owner == owner);
        let place = place.unwrap_or_else(|| {
            owners.push(Owned {
                owner,
                exclusive: Vec::new(),
                shared: Vec::new(),
                unpacked: Mutex::default(),
            });
            owners.len() - 1
        });
        let owned = &mut owners[place];
        assert_eq!(owned.owner, owner, "an owner's locks are noted as its own");
        push(&mut owned.exclusive, exclusive);
        push(&mut owned.shared, shared);
        self.count.store(owners.len(), Ordering::Release);
    }

    /// Forgets the locks of `owner`; those of them that have an entry.
    pub(super) fn remove(&self, owner: TxnId) -> Vec<LockKey> {
        let mut owners = self.owners.write();
        let Some(place) = owners.iter().position(|owned| owned.owner == owner) else {
            return Vec::new();
        };
        let owned = owners.swap_remove(place);
        self.count.store(owners.len(), Ordering::Release);
        assert!(
            owners.iter().all(|other| other.owner != owner),
            "an owner's locks are in one place"
        );
        owned.unpacked.into_inner()
    }

    /// Locks, those that have an entry again among them.
    pub(super) fn len(&self) -> usize {
        let owners = self.owners.read();
        owners.iter().flat_map(Owned::runs).map(KeyRun::len).sum()
    }

    /// Bytes they take.
    pub(super) fn size_bytes(&self) -> usize {
        let owners = self.owners.read();
        let runs = owners.iter().flat_map(Owned::runs);
        runs.map(KeyRun::size_bytes).sum()
    }
}

/// Adds a run, merged with those that are not much larger.
fn push(runs: &mut Vec<KeyRun>, mut run: KeyRun) {
    if run.is_empty() {
        return;
    }
    while let Some(before) = runs.pop() {
        if before.len() > RUN_FACTOR * run.len() {
            runs.push(before);
            break;
        }
        run = before.merge(&run, Version::max);
    }
    runs.push(run);
    assert!(
        runs.is_sorted_by(|one, next| one.len() > RUN_FACTOR * next.len()),
        "a lock is found in few runs"
    );
}
