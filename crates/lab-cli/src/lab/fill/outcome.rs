//! What is kept of a run.

use serde::{Deserialize, Serialize};

use super::cgroup::Quotas;

/// What is kept of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What held processes to their share of a core.
    pub quotas: Quotas,
    /// What each database saw.
    pub databases: Vec<Filled>,
    /// CPU seconds of all workers, from when they were up until the last database was drained,
    pub worker_cpu: f64,
    /// and of the control plane.
    pub control_cpu: f64,
    /// Bytes that workers fetched from object stores and put there.
    #[serde(default)]
    pub worker_moved: u64,
}

/// What one database saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Filled {
    /// Puts.
    pub puts: u64,
    /// From the first put to the last.
    pub seconds: f64,
    /// Microseconds of a put: mean, median, 99th and 99.9th percentile, the longest.
    pub mean_us: f64,
    /// The median.
    pub p50_us: f64,
    /// 99 % took less.
    pub p99_us: f64,
    /// 99.9 % took less.
    pub p999_us: f64,
    /// The longest.
    pub max_us: f64,
    /// Seconds that writes were slowed down or stopped, as RocksDB counts them.
    pub stall_seconds: f64,
    /// From the last put until nothing was left to compact.
    pub drain_seconds: f64,
    /// CPU seconds of the process in the load,
    pub load_cpu: f64,
    /// and in the drain.
    pub drain_cpu: f64,
    /// Bytes that flushes wrote.
    pub flush_bytes: u64,
    /// Bytes that compactions of this process read and wrote.
    pub compacted_bytes: u64,
    /// Compactions that workers did,
    pub installed: u64,
    /// bytes of their inputs and outputs,
    pub moved_bytes: u64,
    /// bytes put into an object store for them, and fetched from it,
    #[serde(default)]
    pub stored_bytes: u64,
    /// those that stayed because they were small,
    pub small: u64,
    /// and those that came back for any other reason.
    pub came_home: u64,
    /// Entries that were found, each as it was put,
    pub entries: u64,
    /// and the CRC-32 of all of them.
    pub content_hash: String,
}

impl Outcome {
    /// Puts a second of all databases together, until the last of them had put everything.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn ops(&self) -> f64 {
        let puts: u64 = self.databases.iter().map(|one| one.puts).sum();
        puts as f64 / self.worst(|one| one.seconds).max(1e-9)
    }

    /// The same, until nothing was left to compact: what can go on for ever.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn sustained(&self) -> f64 {
        let puts: u64 = self.databases.iter().map(|one| one.puts).sum();
        puts as f64 / self.worst(|one| one.seconds + one.drain_seconds).max(1e-9)
    }

    /// The worst of all databases.
    pub fn worst(&self, number: impl Fn(&Filled) -> f64) -> f64 {
        self.databases.iter().map(number).fold(0.0, f64::max)
    }

    /// The sum over all databases.
    pub fn sum(&self, number: impl Fn(&Filled) -> f64) -> f64 {
        self.databases.iter().map(number).sum()
    }

    /// Mean microseconds of a put, over all databases.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn mean_us(&self) -> f64 {
        let puts = self.sum(|one| one.puts as f64);
        self.sum(|one| one.mean_us * one.puts as f64) / puts.max(1.0)
    }

    /// MiB that databases and workers put into object stores and fetched from them.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn stored_mib(&self) -> f64 {
        let bytes = self.sum(|one| one.stored_bytes as f64) + self.worker_moved as f64;
        bytes / f64::from(1 << 20)
    }

    /// CPU seconds of the databases.
    pub fn database_cpu(&self) -> f64 {
        self.sum(|one| one.load_cpu + one.drain_cpu)
    }

    /// CPU seconds of all processes.
    pub fn total_cpu(&self) -> f64 {
        self.database_cpu() + self.worker_cpu + self.control_cpu
    }

    /// MiB that a compaction by a worker read and wrote; 0 when there was none.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn moved_mib(&self) -> f64 {
        let jobs = self.sum(|one| one.installed as f64);
        self.sum(|one| one.moved_bytes as f64) / jobs.max(1.0) / f64::from(1 << 20)
    }
}
