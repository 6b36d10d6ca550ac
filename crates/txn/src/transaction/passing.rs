//! Locking reads that lock only what their reader wants.
//!
//! A row is looked at before it is locked: one that the reader refuses, as a committed state has
//! it, is passed by and stays free for others. One that it wants is locked, and looked at again
//! when it was changed meanwhile. At REPEATABLE READ the gaps between the rows of a range are
//! validated at commit, and so are the rows that were locked, but none that were passed by; at
//! SERIALIZABLE everything read is, so rows are locked before they are looked at, which keeps
//! writers waiting instead of making this transaction fail.

use std::ops::Bound;

use manxdb_core::check::deep;
use manxdb_storage::{Direction, KeyRange};

use super::locking::LOOKS_MAX;
use super::page::cut_behind;
use super::{Patience, ReadMode, Strength, Transaction};
use crate::error::TxnError;
use crate::model::{IsolationLevel, Page, Snapshot};
use crate::waiter::resolve;

/// Rows that one REPEATABLE READ transaction may pass by, each of which cuts a range in two that is
/// validated at commit. Rows past it are locked as if they were wanted.
const PASSED_MAX: usize = 50_000;

/// What a reader says of an entry of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It is wanted, and with it the row of this key, to which it leads.
    Wanted(Option<Vec<u8>>),
    /// It is not.
    Passed,
}

/// The committed state that is being looked at, under the transaction's own writes.
pub struct View<'a> {
    txn: &'a Transaction,
    at: &'a Snapshot,
}

impl View<'_> {
    /// The value of `key`. Nothing is recorded or locked.
    ///
    /// # Errors
    /// Those of asking the path.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, TxnError> {
        if let Some(own) = self.txn.inner.borrow().visible_writes().get(key) {
            return Ok(own.map(<[u8]>::to_vec));
        }
        let reply = self.txn.path.get(self.at.version, key);
        resolve(reply, &self.txn.waiter)
    }
}

/// Looks at an entry: its key and its value.
pub type LookAt<'a> = dyn FnMut(&View<'_>, &[u8], &[u8]) -> Result<Look, TxnError> + 'a;

/// How far one call goes.
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    /// Entries looked at, at most.
    pub entries: usize,
    /// Wanted entries after which it stops.
    pub wanted: usize,
}

/// A page of wanted entries, which are locked.
#[derive(Debug)]
pub struct WantedPage {
    /// The entries in walking order.
    pub entries: Page,
    /// What is left of the range; `None`: nothing.
    pub rest: Option<KeyRange>,
}

/// What a look at a page has found.
#[derive(Default)]
struct Found {
    entries: Page,
    /// Rows that the entries lead to.
    rows: Vec<Vec<u8>>,
    /// Keys that were passed by and are not locked, in walking order.
    passed: Vec<Vec<u8>>,
    /// The last key looked at, when the range goes on behind it.
    last: Option<Vec<u8>>,
}

impl Transaction {
    /// Whether reads in `mode` lock only what is wanted: see [`Transaction::scan_wanted`].
    #[must_use]
    pub fn passes_rows_by(&self, mode: ReadMode) -> bool {
        mode.locks() && self.isolation != IsolationLevel::Serializable
    }

    /// As [`Transaction::scan`] in a mode that locks, but only entries for which `look` says so
    /// are locked and given. `look` may be asked of an entry more than once.
    ///
    /// # Errors
    /// As [`Transaction::get`], and what `look` answers.
    pub fn scan_wanted(
        &self,
        range: &KeyRange,
        direction: Direction,
        reach: Reach,
        mode: ReadMode,
        look: &mut LookAt<'_>,
    ) -> Result<WantedPage, TxnError> {
        self.check_usable()?;
        assert!(reach.entries > 0 && reach.wanted > 0, "a page has room");
        let Some(lock) = mode.lock().filter(|_| self.passes_rows_by(mode)) else {
            return Err(TxnError::Unknown("a read that passes no row by".into()));
        };
        for _ in 0..LOOKS_MAX {
            let at = self.locking_view()?;
            let found = self.look_at_page(&at, range, direction, reach, lock, look)?;
            let mut seen = range.clone();
            let mut rest = None;
            if let Some(last) = &found.last {
                end_at(&mut seen, last, direction);
                let mut behind = range.clone();
                cut_behind(&mut behind, last, direction);
                rest = Some(behind);
            }
            let gaps = if self.validates_ranges(lock.1) {
                between(seen, &found.passed, direction)
            } else {
                Vec::new()
            };
            if self.found_changed(&found, &gaps, &at)? {
                continue;
            }
            let is_locked = |(key, _): &(Vec<u8>, Vec<u8>)| self.is_locked(key, lock.0);
            assert!(
                !deep() || found.entries.iter().all(is_locked),
                "what is wanted is locked, whatever was passed by"
            );
            let mut inner = self.inner.borrow_mut();
            if !gaps.is_empty() {
                inner.passed += found.passed.len();
            }
            for gap in gaps {
                inner.recorded.range(gap, direction, &at);
            }
            for key in found.entries.iter().map(|(key, _)| key).chain(&found.rows) {
                inner.recorded.point(key, &at);
            }
            return Ok(WantedPage {
                entries: found.entries,
                rest,
            });
        }
        Err(self.lost("a locked range kept changing"))
    }

    /// As [`Transaction::get`] in a mode that locks, but a row for which `look` says that it is
    /// passed by is neither locked nor given.
    ///
    /// # Errors
    /// As [`Transaction::scan_wanted`].
    pub fn get_wanted(
        &self,
        key: &[u8],
        mode: ReadMode,
        look: &mut LookAt<'_>,
    ) -> Result<Option<Vec<u8>>, TxnError> {
        self.check_usable()?;
        let Some((strength, patience)) = mode.lock().filter(|_| self.passes_rows_by(mode)) else {
            return self.get(key, mode);
        };
        if let Some(own) = self.inner.borrow().visible_writes().get(key) {
            return Ok(own.map(<[u8]>::to_vec));
        }
        for _ in 0..LOOKS_MAX {
            let at = self.locking_view()?;
            let view = View { txn: self, at: &at };
            let value = view.get(key)?;
            let row = match value.as_deref().map(|value| look(&view, key, value)) {
                None => None,
                Some(Ok(Look::Wanted(row))) => row,
                Some(Ok(Look::Passed)) => return Ok(None),
                Some(Err(failure)) => return Err(failure),
            };
            let mut changed = false;
            for key in std::iter::once(key).chain(row.as_deref()) {
                if !self.lock_unwritten(key, strength, patience)? {
                    return Ok(None);
                }
                changed |= self.key_changed(key, &at)?;
            }
            if changed {
                continue;
            }
            self.inner.borrow_mut().recorded.point(key, &at);
            return Ok(value);
        }
        Err(self.lost("a locked key kept changing"))
    }

    fn look_at_page(
        &self,
        at: &Snapshot,
        range: &KeyRange,
        direction: Direction,
        reach: Reach,
        (strength, patience): (Strength, Patience),
        look: &mut LookAt<'_>,
    ) -> Result<Found, TxnError> {
        let page = self.merged_page(at, range, direction, reach.entries, &mut |_| Ok(true))?;
        let is_full = page.len() >= reach.entries;
        let view = View { txn: self, at };
        let mut found = Found::default();
        let mut looked_at = None;
        for (key, value) in page {
            match look(&view, &key, &value)? {
                Look::Wanted(row) => {
                    let mut locked = self.lock_unwritten(&key, strength, patience)?;
                    if let Some(row) = row.filter(|_| locked) {
                        locked = self.lock_unwritten(&row, strength, patience)?;
                        found.rows.push(row);
                    }
                    if locked {
                        found.entries.push((key.clone(), value));
                    }
                }
                Look::Passed if self.may_pass(found.passed.len()) => {
                    found.passed.push(key.clone());
                }
                Look::Passed => {
                    self.lock_unwritten(&key, strength, patience)?;
                }
            }
            looked_at = Some(key);
            if found.entries.len() >= reach.wanted {
                found.last = looked_at;
                return Ok(found);
            }
        }
        assert!(
            found.entries.len() < reach.wanted,
            "it stops when it has what is wanted"
        );
        found.last = looked_at.filter(|_| is_full);
        Ok(found)
    }

    /// Whether another row may be passed by, after `now` in this call.
    fn may_pass(&self, now: usize) -> bool {
        self.isolation != IsolationLevel::RepeatableRead
            || self.inner.borrow().passed + now < PASSED_MAX
    }

    /// What this transaction has written is its own already.
    fn lock_unwritten(
        &self,
        key: &[u8],
        strength: Strength,
        patience: Patience,
    ) -> Result<bool, TxnError> {
        if self.inner.borrow().visible_writes().get(key).is_some() {
            return Ok(true);
        }
        self.lock(key, strength, patience)
    }

    /// Whether what was found is another by now that it is locked.
    fn found_changed(
        &self,
        found: &Found,
        gaps: &[KeyRange],
        at: &Snapshot,
    ) -> Result<bool, TxnError> {
        if self.newest()?.version == at.version {
            return Ok(false);
        }
        for gap in gaps {
            let reply = self.path.changed_since(gap, at.version);
            if resolve(reply, &self.waiter)? {
                return Ok(true);
            }
        }
        for key in found.entries.iter().map(|(key, _)| key).chain(&found.rows) {
            if self.key_changed(key, at)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Ends `range` at `key`, which belongs to it.
fn end_at(range: &mut KeyRange, key: &[u8], direction: Direction) {
    let through = Bound::Included(key.to_vec());
    match direction {
        Direction::Forward => range.end = through,
        Direction::Reverse => range.start = through,
    }
}

/// The parts of `range` that `passed` keys, which are in walking order, leave of it.
fn between(mut range: KeyRange, passed: &[Vec<u8>], direction: Direction) -> Vec<KeyRange> {
    let mut parts = Vec::with_capacity(passed.len() + 1);
    for key in passed {
        let before = Bound::Excluded(key.clone());
        let mut part = range.clone();
        match direction {
            Direction::Forward => part.end = before,
            Direction::Reverse => part.start = before,
        }
        parts.push(part);
        cut_behind(&mut range, key, direction);
    }
    parts.push(range);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part_holds(parts: &[KeyRange], key: &[u8]) -> bool {
        parts.iter().any(|part| part.contains(key))
    }

    #[test]
    fn gaps_hold_all_of_a_range_but_the_keys_that_were_passed_by() {
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut passed = vec![b"tb".to_vec(), b"td".to_vec()];
            if direction == Direction::Reverse {
                passed.reverse();
            }
            let parts = between(KeyRange::prefix(b"t"), &passed, direction);
            for inside in [&b"t"[..], b"ta", b"tb1", b"tc", b"te"] {
                assert!(part_holds(&parts, inside), "{direction:?} {inside:?}");
            }
            for outside in [&b"tb"[..], b"td", b"u"] {
                assert!(!part_holds(&parts, outside), "{direction:?} {outside:?}");
            }
        }
    }
}
