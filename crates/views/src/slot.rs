//! One key of a view: being filled, or filled.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use manxdb_storage::Version;

use crate::contents::{Contents, Unsuited};

/// Bytes that a key takes beside what it holds, about.
pub(crate) const KEY_BYTES: usize = 160;
/// Changes that wait for the end of a fill; with more, the fill is given up.
pub(crate) const WAITING_MAX: usize = 10_000;

pub(crate) enum Slot<C: Contents> {
    Filling(Filling<C>),
    Filled(Filled<C>),
}

/// A key that a reader is computing.
pub(crate) struct Filling<C: Contents> {
    /// Which fill; another may follow one that was given up.
    pub ticket: u64,
    /// Changes that arrived meanwhile, in commit order.
    pub waiting: Vec<(Version, C::Change)>,
}

/// A key that can be read.
pub(crate) struct Filled<C: Contents> {
    /// With all changes applied.
    pub contents: C,
    /// Readers of older snapshots are not served.
    pub since: Version,
    /// Changes above `since`, in commit order, for readers below them.
    recent: VecDeque<(Version, C::Change)>,
    recent_bytes: usize,
    /// Read since eviction last looked.
    used: AtomicBool,
}

impl<C: Contents> Filled<C> {
    pub fn new(contents: C, at: Version) -> Self {
        Self {
            contents,
            since: at,
            recent: VecDeque::new(),
            recent_bytes: 0,
            used: AtomicBool::new(false),
        }
    }

    pub fn size_bytes(&self) -> usize {
        KEY_BYTES + self.contents.size_bytes() + self.recent_bytes
    }

    /// Changes that are kept for readers of older snapshots.
    pub fn changes(&self) -> impl Iterator<Item = &C::Change> {
        self.recent.iter().map(|(_, change)| change)
    }

    /// Applies the change of a commit and lets go of changes that every reader has seen.
    pub fn apply(
        &mut self,
        version: Version,
        change: C::Change,
        oldest: Version,
    ) -> Result<(), Unsuited> {
        if version <= self.since {
            // The fill read it.
            return Ok(());
        }
        self.contents.apply(&change)?;
        let last = self.recent.back().map(|(last, _)| *last);
        assert!(
            last.is_none_or(|last| last < version) || cfg!(feature = "mutants"),
            "changes of a key are kept in commit order"
        );
        self.recent_bytes += C::change_bytes(&change);
        self.recent.push_back((version, change));
        self.forget_up_to(oldest);
        Ok(())
    }

    fn forget_up_to(&mut self, oldest: Version) {
        let is_seen = |(version, _): &(Version, C::Change)| *version <= oldest;
        while self.recent.front().is_some_and(is_seen) {
            let Some((version, change)) = self.recent.pop_front() else {
                break;
            };
            self.recent_bytes = self.recent_bytes.saturating_sub(C::change_bytes(&change));
            assert!(version >= self.since, "changes stand above what was filled");
            self.since = version;
        }
        assert!(
            !self.recent.is_empty() || self.recent_bytes == 0,
            "bytes are counted of what is kept"
        );
    }

    /// What a reader at `at` sees.
    pub fn read<R>(&self, at: Version, read: impl FnOnce(&C) -> R) -> Option<R> {
        if at < self.since {
            return None;
        }
        self.used.store(true, Ordering::Relaxed);
        if self.recent.back().is_none_or(|(last, _)| *last <= at) {
            return Some(read(&self.contents));
        }
        let mut then = self.contents.clone();
        let later = self.recent.iter().rev();
        for (version, change) in later.take_while(|(version, _)| *version > at) {
            assert!(*version > self.since, "only what was applied is undone");
            then.undo(change).ok()?;
        }
        Some(read(&then))
    }

    #[cfg(feature = "mutants")]
    pub fn newest<R>(&self, read: impl FnOnce(&C) -> R) -> R {
        read(&self.contents)
    }

    /// Whether it was read since this was last asked.
    pub fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }
}
