//! Reads that stand although their key was written: what was used of the value is the same.
//!
//! A plain SELECT of one column of a row need not fail because another column changed. A read may
//! say what it uses of a value ([`UsedPart`]). When validation finds the key written, the
//! transaction takes a new snapshot at which all other reads still hold, compares there what it
//! used, and goes on at that snapshot: equal to a transaction that began then.

use std::sync::Arc;

use manxdb_storage::Version;

use super::Transaction;
use crate::error::TxnError;
use crate::model::Snapshot;
use crate::waiter::resolve;

/// What a reader uses of a value.
pub trait UsedPart: Send + Sync {
    /// Whether it finds the same in both values of `key`. What cannot be told is not the same.
    fn same(&self, key: &[u8], old: &[u8], new: &[u8]) -> bool;
}

/// Those who read one key, each with what it uses.
pub(super) type Used = Vec<Arc<dyn UsedPart>>;

/// Readers of one key that are told apart; with more, all of the value counts as used.
pub(super) const USED_MAX: usize = 8;

/// Times a commit is tried again because what it used is still the same.
pub(super) const COMMIT_TRIES: u32 = 16;

/// Bytes of writes up to which a commit keeps them for another try.
pub(super) const KEPT_BYTES_MAX: usize = 1 << 20;

impl Transaction {
    /// A snapshot at which all that was read is still true, or as good as true: of values whose
    /// key was written, the used part is the same.
    pub(super) fn still_true(&self) -> Result<Snapshot, TxnError> {
        let reads = self.inner.borrow().recorded.to_read_set();
        let conflict = match resolve(self.path.refresh(&reads), &self.waiter) {
            Err(conflict @ TxnError::Conflict { .. }) => conflict,
            other => return other,
        };
        if !self.inner.borrow().recorded.has_partly_used() {
            return Err(conflict);
        }
        // Where the others are true; what has been written there of these is told apart below.
        let whole = self.inner.borrow().recorded.wholly_used();
        let at = resolve(self.path.refresh(&whole), &self.waiter)?;
        let partly = self.inner.borrow().recorded.partly_used();
        for (key, then, used) in partly {
            if self.key_changed_at(&key, then)? && !self.is_same(&key, then, &at, &used)? {
                return Err(conflict);
            }
        }
        Ok(at)
    }

    fn key_changed_at(&self, key: &[u8], then: Version) -> Result<bool, TxnError> {
        resolve(self.path.key_changed_since(key, then), &self.waiter)
    }

    fn is_same(
        &self,
        key: &[u8],
        then: Version,
        at: &Snapshot,
        used: &Used,
    ) -> Result<bool, TxnError> {
        #[cfg(feature = "mutants")]
        if self.mutants.get().trust_used_parts {
            return Ok(true);
        }
        let old = resolve(self.path.get(then, key), &self.waiter)?;
        let new = resolve(self.path.get(at.version, key), &self.waiter)?;
        Ok(match (old, new) {
            (Some(old), Some(new)) => used.iter().all(|used| used.same(key, &old, &new)),
            (None, None) => true,
            _ => false,
        })
    }
}
