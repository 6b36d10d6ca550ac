//! What a log archiver has done since it began, for people.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// A number that only goes up.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// So many more.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// How many.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a log archiver has done since it began.
#[derive(Debug, Default)]
pub struct ArchiverStats {
    /// It has the turn of the directory, which it keeps for as long as it lives.
    pub is_at_work: AtomicBool,
    /// Bytes of batches that it has written, once more after a failure.
    pub bytes: Count,
    /// How often files were synced.
    pub syncs: Count,
    /// Checkpoints that it has made.
    pub checkpoints: Count,
    /// How often something was in its way: files or memory servers.
    pub failures: Count,
    /// Gaps that it has found in what is on disk.
    pub gaps: Count,
    /// What is in its way just now, in one line; empty while nothing is.
    trouble: Mutex<String>,
}

impl ArchiverStats {
    /// What is in its way just now; nothing, if it is empty.
    #[must_use]
    pub fn trouble(&self) -> String {
        self.trouble.lock().clone()
    }

    /// Says what is in its way.
    pub(super) fn set_trouble(&self, what: &str) {
        what.clone_into(&mut self.trouble.lock());
    }
}
