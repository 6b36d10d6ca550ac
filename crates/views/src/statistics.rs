//! Counters of a view.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a view holds and has done since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ViewStatistics {
    /// Keys that are filled.
    pub keys: usize,
    /// Bytes of keys, contents and kept changes, about.
    pub bytes: usize,
    /// Reads answered by the view.
    pub hits: u64,
    /// Reads that ran the base plan, or filled their key with it.
    pub misses: u64,
    /// Keys dropped for room, or because a change did not fit them.
    pub evictions: u64,
    /// Changes of contents that were applied.
    pub changes: u64,
}

impl std::ops::Add for ViewStatistics {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            keys: self.keys + other.keys,
            bytes: self.bytes + other.bytes,
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            evictions: self.evictions + other.evictions,
            changes: self.changes + other.changes,
        }
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    pub evictions: AtomicU64,
    pub changes: AtomicU64,
}

impl Counters {
    pub fn count(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    pub fn shown(&self) -> ViewStatistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ViewStatistics {
            hits: read(&self.hits),
            misses: read(&self.misses),
            evictions: read(&self.evictions),
            changes: read(&self.changes),
            ..ViewStatistics::default()
        }
    }
}
