//! How commands were completed.

use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_curp::{ClientAnswer, Completion};

/// Counts of a client since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Completed by all witnesses: one round trip.
    pub fast: u64,
    /// Answered by the master alone, without a change: one, or two when a key was not synced.
    pub reads: u64,
    /// Synced by the master before it answered, because of a conflict, or recorded nowhere: two.
    pub conflicts: u64,
    /// Synced because a witness refused or was slow: two or three.
    pub synced: u64,
    /// Commands whose outcome is unknown.
    pub unknown: u64,
    /// Attempts after the first, all commands together.
    pub retries: u64,
    /// Commands under way now.
    pub waiting: u64,
    /// Connections that a proxy serves now.
    pub clients: u64,
}

impl ClientCounts {
    /// All of them by name, counts first.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("fast", self.fast),
            ("reads", self.reads),
            ("conflicts", self.conflicts),
            ("synced", self.synced),
            ("unknown", self.unknown),
            ("retries", self.retries),
            ("waiting", self.waiting),
            ("clients", self.clients),
        ]
    }

    /// All of them as INFO shows them.
    #[must_use]
    pub fn lines(&self) -> Vec<(String, String)> {
        let named = self.named().into_iter();
        named
            .map(|(name, count)| (format!("curp_{name}"), count.to_string()))
            .collect()
    }
}

/// Counts that other threads may look at.
#[derive(Debug, Default)]
pub struct ClientMeter {
    fast: AtomicU64,
    reads: AtomicU64,
    conflicts: AtomicU64,
    synced: AtomicU64,
    unknown: AtomicU64,
    retries: AtomicU64,
    waiting: AtomicU64,
    clients: AtomicU64,
}

impl ClientMeter {
    pub(crate) fn count(&self, answer: &ClientAnswer, is_read: bool) {
        assert!(answer.attempts > 0, "what was answered was asked");
        let retries = u64::from(answer.attempts - 1);
        self.retries.fetch_add(retries, Ordering::Relaxed);
        let counter = match answer.answer {
            Some((_, Completion::Fast)) => &self.fast,
            Some((_, Completion::AtMaster)) if is_read => &self.reads,
            Some((_, Completion::AtMaster)) => &self.conflicts,
            Some((_, Completion::Sync)) => &self.synced,
            None => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Shows how many commands are under way, and for how many connections.
    pub fn set(&self, waiting: usize, clients: usize) {
        self.waiting.store(waiting as u64, Ordering::Relaxed);
        self.clients.store(clients as u64, Ordering::Relaxed);
    }

    /// What it shows now.
    #[must_use]
    pub fn counts(&self) -> ClientCounts {
        let shown = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ClientCounts {
            fast: shown(&self.fast),
            reads: shown(&self.reads),
            conflicts: shown(&self.conflicts),
            synced: shown(&self.synced),
            unknown: shown(&self.unknown),
            retries: shown(&self.retries),
            waiting: shown(&self.waiting),
            clients: shown(&self.clients),
        }
    }
}
