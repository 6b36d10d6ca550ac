//! What became of a database's compactions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use manxdb_jobs::job::LocalReason;

/// Jobs by how they ended, and what they cost.
#[derive(Debug, Default)]
pub struct Counts {
    /// Asked for by RocksDB: each ends as one of the others.
    pub asked: AtomicU64,
    /// Jobs whose outputs of a worker were installed,
    pub installed: AtomicU64,
    /// bytes of their inputs,
    pub input_bytes: AtomicU64,
    /// and of their outputs.
    pub output_bytes: AtomicU64,
    /// Bytes put into an object store for jobs.
    pub put: AtomicU64,
    /// Bytes of outputs fetched from there.
    pub fetched: AtomicU64,
    /// Microseconds that compaction threads waited for the pool, whatever came of it.
    pub wait_micros: AtomicU64,
    /// Microseconds that compaction threads read outputs of workers to check them.
    pub verify_micros: AtomicU64,
    /// Jobs that RocksDB did itself, by the place of the reason in [`LocalReason::ALL`].
    local: [AtomicU64; LocalReason::ALL.len()],
}

impl Counts {
    /// A job is done by RocksDB itself.
    pub fn stays_home(&self, reason: LocalReason) {
        if let Some(count) = self.place(reason) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Outputs of a worker were installed.
    pub fn installed(&self, input_bytes: u64, output_bytes: u64) {
        self.installed.fetch_add(1, Ordering::Relaxed);
        self.input_bytes.fetch_add(input_bytes, Ordering::Relaxed);
        self.output_bytes.fetch_add(output_bytes, Ordering::Relaxed);
    }

    /// A thread waited.
    pub fn waited(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.wait_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Outputs were read and checked, whatever came of it.
    pub fn verified(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.verify_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Jobs that RocksDB did itself for this reason.
    #[must_use]
    pub fn local(&self, reason: LocalReason) -> u64 {
        let count = self.place(reason);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    fn place(&self, reason: LocalReason) -> Option<&AtomicU64> {
        let place = LocalReason::ALL.iter().position(|one| *one == reason)?;
        self.local.get(place)
    }
}
