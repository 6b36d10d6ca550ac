//! What became of a database's compactions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use manxdb_jobs::job::LocalReason;

/// Jobs by how they ended, and their cost.
#[derive(Debug, Default)]
pub struct Counts {
    /// Asked for by RocksDB: each ends as one of the others.
    pub asked: AtomicU64,
    /// Jobs whose outputs by a worker were installed,
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

/// A database's numbers, by name and labels; `waiting` jobs are handed out and not over.
#[must_use]
pub(super) fn of_database(counts: &Counts, waiting: usize) -> Vec<(String, u64)> {
    let name = |what: &str| format!("manxdb_compaction_{what}");
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let mut numbers = vec![
        (name("remote_waiting"), waiting as u64),
        (name("remote_installed_total"), load(&counts.installed)),
        (name("remote_input_bytes_total"), load(&counts.input_bytes)),
        (
            name("remote_output_bytes_total"),
            load(&counts.output_bytes),
        ),
        (name("remote_put_bytes_total"), load(&counts.put)),
        (name("remote_fetched_bytes_total"), load(&counts.fetched)),
        (
            name("remote_wait_microseconds_total"),
            load(&counts.wait_micros),
        ),
        (
            name("remote_verify_microseconds_total"),
            load(&counts.verify_micros),
        ),
    ];
    numbers.extend(LocalReason::ALL.map(|reason| {
        let labels = format!("local_total{{reason=\"{}\"}}", reason.word());
        (name(&labels), counts.local(reason))
    }));
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_says_why_it_compacted_itself() {
        let counts = Counts::default();
        counts.stays_home(LocalReason::Away);
        counts.stays_home(LocalReason::Away);
        let numbers = of_database(&counts, 3);
        let number = |name: &str| numbers.iter().find(|(one, _)| one == name).unwrap().1;
        assert_eq!(number("manxdb_compaction_remote_waiting"), 3);
        assert_eq!(number("manxdb_compaction_local_total{reason=\"away\"}"), 2);
        assert_eq!(number("manxdb_compaction_local_total{reason=\"small\"}"), 0);
    }
}
