//! Locks of a transaction, and reads under them.

use manxdb_core::check::deep;
use std::sync::Arc;

use manxdb_storage::{Direction, KeyRange};

use super::page::{covered, cut_behind};
use super::{Patience, Transaction};
use crate::error::TxnError;
use crate::locks::{Request, Strength};
use crate::model::LockKey;
use crate::model::{IsolationLevel, Page, Snapshot};
use crate::waiter::resolve;

/// Times a locking read looks again because others committed under it. With row locks a second
/// look is enough, so the limit is reached only under a stream of inserts into the range.
pub(super) const LOOKS_MAX: usize = 64;

/// Locks one transaction may hold, some eight bytes each when they are packed.
pub const LOCKS_MAX: usize = 4_000_000;

/// Locks after which those of a transaction are packed.
const LOOSE_LOCKS: usize = 16_384;

/// Locks of a transaction, so that they are given back.
#[derive(Default)]
pub(super) struct HeldLocks {
    /// Keys that have entries of the table, in the order in which they were locked; one that was
    /// first shared, then exclusive, twice.
    pub(super) loose: Vec<LockKey>,
    /// Number of those that have none.
    packed: usize,
    /// Loose ones that others share or wait for, as of the last packing.
    contended: usize,
}

impl HeldLocks {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.loose.len() + self.packed
    }
}

/// Locks that a transaction may hold to have them given back early. A larger one holds up others
/// with its statements, not with its sync, and the list would be held twice.
const EARLY_RELEASE_MAX: usize = 10_000;
const _: () = assert!(
    EARLY_RELEASE_MAX < LOOSE_LOCKS,
    "who has packed locks has too many to give them back early"
);

impl Transaction {
    /// Makes the lock on `key` this transaction's; false when it is skipped.
    pub(super) fn lock(
        &self,
        key: &[u8],
        strength: Strength,
        patience: Patience,
    ) -> Result<bool, TxnError> {
        let Some(table) = self.path.locks() else {
            return Ok(true);
        };
        #[cfg(feature = "mutants")]
        if self.mutants.get().skip_locks {
            return Ok(true);
        }
        let is_waiting = self.inner.borrow().pending.is_some();
        if !is_waiting && table.holds(self.id, key, strength) {
            return Ok(true);
        }
        if self.inner.borrow().held.len() >= LOCKS_MAX {
            return Err(TxnError::TooManyLocks { limit: LOCKS_MAX });
        }
        let key: LockKey = key.into();
        let granted = match patience {
            Patience::Wait => self.wait_for_lock(&key, strength)?,
            Patience::NoWait if table.try_acquire(self.id, &key, strength) => true,
            Patience::NoWait => return Err(TxnError::LockNotAvailable),
            Patience::Skip => table.try_acquire(self.id, &key, strength),
        };
        if granted {
            if deep() {
                assert!(
                    table.holds(self.id, &key, strength),
                    "who is granted a lock has it"
                );
            }
            self.hold(key);
        }
        Ok(granted)
    }

    /// Notes a lock that was granted.
    fn hold(&self, key: LockKey) {
        let mut inner = self.inner.borrow_mut();
        let held = &mut inner.held;
        held.loose.push(key);
        if held.loose.len() < held.contended + LOOSE_LOCKS {
            return;
        }
        let Some(table) = self.path.locks() else {
            return;
        };
        let before = held.len();
        held.packed += held.loose.len();
        held.loose = table.pack(self.id, std::mem::take(&mut held.loose));
        held.packed -= held.loose.len();
        held.contended = held.loose.len();
        assert_eq!(held.len(), before, "a lock that is packed is held");
    }

    fn wait_for_lock(&self, key: &LockKey, strength: Strength) -> Result<bool, TxnError> {
        let Some(table) = self.path.locks() else {
            return Ok(true);
        };
        let ticket = match self.take_pending(key, strength) {
            Some(ticket) => ticket,
            None => match table.acquire(self.id, key, strength, &self.waiter) {
                Ok(Request::Granted) => return Ok(true),
                Ok(Request::Queued(ticket)) => ticket,
                Err(failure) => return Err(self.doom(failure)),
            },
        };
        let mut waited = self.waiter.wait(&|| ticket.is_granted());
        while waited.is_ok() && !ticket.is_granted() {
            waited = self.waiter.wait(&|| ticket.is_granted());
        }
        match waited {
            Ok(()) => {
                let is_granted = table.cancel(&ticket);
                assert!(is_granted, "who has waited for a lock to the end has it");
                Ok(is_granted)
            }
            Err(TxnError::WouldWait) => {
                let other = self.inner.borrow_mut().pending.replace(ticket);
                assert!(
                    other.is_none(),
                    "a transaction waits for one lock at a time"
                );
                Err(TxnError::WouldWait)
            }
            // Granted in the last moment: hold it, so that it is released at the end.
            Err(failure) => {
                if table.cancel(&ticket) {
                    self.hold(Arc::clone(key));
                }
                Err(failure)
            }
        }
    }

    /// The request a polled call left behind, if this is the same call again.
    fn take_pending(&self, key: &LockKey, strength: Strength) -> Option<Arc<crate::locks::Ticket>> {
        let ticket = self.inner.borrow_mut().pending.take()?;
        if ticket.key() == key && ticket.strength() == strength {
            return Some(ticket);
        }
        // Another call than the one that waited. What was granted meanwhile is held to the end,
        // as after a wait that was interrupted; giving it back would give back a weaker lock on
        // the same key too.
        if self.path.locks().is_some_and(|table| table.cancel(&ticket)) {
            self.hold(Arc::clone(ticket.key()));
        }
        None
    }

    /// Locks that the path may give back as soon as the commit has its place; they are given back
    /// again at the end, which does nothing then.
    pub(super) fn locks_to_give_back(&self) -> Vec<LockKey> {
        let inner = self.inner.borrow();
        if inner.held.len() > EARLY_RELEASE_MAX {
            return Vec::new();
        }
        assert_eq!(inner.held.packed, 0, "packed locks are given back together");
        inner.held.loose.clone()
    }

    /// Gives everything back.
    pub(super) fn release_locks(&self) {
        let (pending, mut held) = {
            let mut inner = self.inner.borrow_mut();
            (inner.pending.take(), std::mem::take(&mut inner.held))
        };
        let Some(table) = self.path.locks() else {
            return;
        };
        if let Some(ticket) = pending
            && table.cancel(&ticket)
        {
            held.loose.push(Arc::clone(ticket.key()));
        }
        let last = held.loose.last().filter(|_| deep()).map(Arc::clone);
        // Some were packed, or all turned out to be shared: the table knows this owner.
        if held.packed + held.contended > 0 {
            table.release_packed(self.id);
        }
        table.release(self.id, held.loose);
        assert!(
            last.is_none_or(|last| !table.holds(self.id, &last, Strength::Shared)),
            "a lock that is given back is another's to take"
        );
    }

    /// Whether `key` is this transaction's as strongly as that, where there are locks.
    pub(super) fn is_locked(&self, key: &[u8], strength: Strength) -> bool {
        #[cfg(feature = "mutants")]
        if self.mutants.get().skip_locks {
            return true;
        }
        let table = self.path.locks();
        table.is_none_or(|table| table.holds(self.id, key, strength))
    }

    /// Reads `key` under a lock, at the newest state the level allows.
    pub(super) fn get_locked(
        &self,
        key: &[u8],
        strength: Strength,
        patience: Patience,
    ) -> Result<Option<Vec<u8>>, TxnError> {
        if !self.lock(key, strength, patience)? {
            return Ok(None);
        }
        for _ in 0..LOOKS_MAX {
            let at = self.locking_view()?;
            if self.reads_must_be_newest() && self.key_changed(key, &at)? {
                self.advance()?;
                continue;
            }
            let value = resolve(self.path.get(at.version, key), &self.waiter)?;
            self.inner.borrow_mut().recorded.point(key, &at);
            return Ok(value);
        }
        Err(self.lost("a locked key kept changing"))
    }

    /// Reads a page, locking each row of it.
    pub(super) fn scan_locked(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
        strength: Strength,
        patience: Patience,
    ) -> Result<Page, TxnError> {
        for _ in 0..LOOKS_MAX {
            let at = self.locking_view()?;
            let mut wanted = |key: &[u8]| match patience {
                Patience::Skip => self.lock(key, strength, patience),
                Patience::Wait | Patience::NoWait => Ok(true),
            };
            let page = self.merged_page(&at, range, direction, limit, &mut wanted)?;
            for (key, _) in &page {
                if self.inner.borrow().visible_writes().get(key).is_none() {
                    self.lock(key, strength, patience)?;
                }
            }
            let seen = covered(range, direction, limit, &page);
            if self.page_changed(&page, &seen, patience, &at)? {
                if self.isolation == IsolationLevel::Serializable {
                    self.advance()?;
                }
                continue;
            }
            let is_locked = |(key, _): &(Vec<u8>, Vec<u8>)| self.is_locked(key, strength);
            assert!(
                !deep() || page.iter().all(is_locked),
                "a row that a locking read gives is locked"
            );
            self.record_locked(&page, seen, direction, patience, &at);
            return Ok(page);
        }
        Err(self.lost("a locked range kept changing"))
    }

    /// Whether locking a page must look again: its rows changed before they were locked, or,
    /// where the whole range will be validated, anything in it.
    fn page_changed(
        &self,
        page: &Page,
        seen: &KeyRange,
        patience: Patience,
        at: &Snapshot,
    ) -> Result<bool, TxnError> {
        let is_serializable = self.isolation == IsolationLevel::Serializable;
        if is_serializable && !self.reads_must_be_newest() {
            return Ok(false);
        }
        if self.newest()?.version == at.version {
            return Ok(false);
        }
        if self.validates_ranges(patience) {
            let reply = self.path.changed_since(seen, at.version);
            return resolve(reply, &self.waiter);
        }
        for (key, _) in page {
            if self.key_changed(key, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn record_locked(
        &self,
        page: &Page,
        seen: KeyRange,
        direction: Direction,
        patience: Patience,
        at: &Snapshot,
    ) {
        let mut inner = self.inner.borrow_mut();
        if self.validates_ranges(patience) {
            inner.recorded.range(seen, direction, at);
            return;
        }
        for (key, _) in page {
            inner.recorded.point(key, at);
        }
    }

    /// SKIP LOCKED asks for whatever is free, so it promises nothing about the range.
    pub(super) fn validates_ranges(&self, patience: Patience) -> bool {
        self.isolation != IsolationLevel::ReadCommitted && patience != Patience::Skip
    }

    /// A SERIALIZABLE transaction that will write must have read the newest state; one declared
    /// read-only stays where its snapshot is.
    fn reads_must_be_newest(&self) -> bool {
        self.isolation == IsolationLevel::Serializable && !self.inner.borrow().read_only
    }

    pub(super) fn key_changed(&self, key: &[u8], at: &Snapshot) -> Result<bool, TxnError> {
        let reply = self.path.key_changed_since(key, at.version);
        resolve(reply, &self.waiter)
    }

    /// Where a locking read looks: SERIALIZABLE reads everything at one snapshot, the others
    /// the newest committed state.
    pub(super) fn locking_view(&self) -> Result<Snapshot, TxnError> {
        match self.isolation {
            IsolationLevel::Serializable => self.view(),
            IsolationLevel::ReadCommitted | IsolationLevel::RepeatableRead => self.newest_ordered(),
        }
    }

    /// Moves a SERIALIZABLE transaction to the newest snapshot, if all it has read is still true
    /// there; so a transaction that waited for a lock before it read goes on unharmed.
    pub(super) fn advance(&self) -> Result<(), TxnError> {
        match self.still_true() {
            Ok(snapshot) => {
                self.looked_at(&snapshot);
                let mut inner = self.inner.borrow_mut();
                inner.recorded.move_to(&snapshot);
                inner.snapshot = Some(snapshot);
                Ok(())
            }
            Err(failure) => Err(self.doom(failure)),
        }
    }

    pub(super) fn lost(&self, what: &str) -> TxnError {
        self.doom(TxnError::Conflict { what: what.into() })
    }
}

/// Cuts what a page has delivered from its range, for the next page of the same scan.
#[must_use]
pub fn rest_behind(range: &KeyRange, last_key: &[u8], direction: Direction) -> KeyRange {
    let mut rest = range.clone();
    cut_behind(&mut rest, last_key, direction);
    rest
}
