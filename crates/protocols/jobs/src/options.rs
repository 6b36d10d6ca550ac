//! Patience, limits and the way jobs are chosen.

use manxdb_core::Nanos;

/// Which job next, on which worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// Ours: stalls first, fair shares, shortest first, placement by predicted time.
    #[default]
    Manxdb,
    /// As CaaS-LSM's public code does it: level, then score; the worker with the fewest tasks, and
    /// a second's sleep when that is full; an overloaded queue sends home the job that it has just
    /// popped, its best.
    CaasLevel,
    /// The order of arrival, on a worker drawn at random (Nebula-Random-Sche).
    Random,
    /// Each database has one worker for ever, which gets its jobs at once, and nothing is tried
    /// twice (Disaggre-RocksDB). Such a worker wants as many slots as its databases have
    /// background jobs.
    Static,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 4] = [
        Policy::Manxdb,
        Policy::CaasLevel,
        Policy::Random,
        Policy::Static,
    ];

    /// What people call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Manxdb => "manxdb",
            Self::CaasLevel => "caas-level",
            Self::Random => "random",
            Self::Static => "static",
        }
    }
}

/// Of a pool. All spans are of the control plane's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How jobs are chosen.
    pub policy: Policy,
    /// How often databases and workers say that they are there.
    pub beat: Nanos,
    /// A worker that sends no beat for this long loses its attempts.
    pub lease: Nanos,
    /// A database not heard of for this long wants nothing more.
    pub session: Nanos,
    /// A job waits this long for a worker that fits to appear.
    pub patience: Nanos,
    /// Attempts at a job that may fail or be lost.
    pub attempts_max: u32,
    /// Pause before a failed attempt is followed by another; grows with each.
    pub pause: Nanos,
    /// Jobs that may wait per slot of the pool; more are sent back to their databases.
    pub waiting_each_slot: usize,
    /// Results refused by databases after which a worker gets nothing more.
    pub strikes_max: u32,
    /// Largest description and largest result, in bytes: what the store can hold.
    pub description_max: usize,
    /// Memory that a job needs beside its share of buffers, in bytes.
    pub job_memory: u64,
    /// Bytes a second between zones, for predicting how long a job takes there.
    pub zone_bytes_second: u64,
    /// A defect to plant.
    #[cfg(feature = "mutants")]
    pub mutant: Option<crate::mutants::Mutant>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: Policy::Manxdb,
            beat: Nanos::from_millis(500),
            lease: Nanos::from_secs(5),
            session: Nanos::from_secs(10),
            patience: Nanos::from_secs(3),
            attempts_max: 3,
            pause: Nanos::from_millis(200),
            waiting_each_slot: 4,
            strikes_max: 1,
            description_max: usize::MAX,
            job_memory: 64 << 20,
            zone_bytes_second: 50 << 20,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}
