//! What decides a run, and what is kept of it.

use serde::{Deserialize, Serialize};

use super::super::trial::{Durability, Load, Measure, System, Trial as Served, Work};
use crate::lab::fill::Quotas;

/// Who compacts the server's store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compactions {
    /// The server itself.
    Local,
    /// A control plane's worker.
    Pooled,
}

impl Compactions {
    /// In the order in which they take turns.
    pub const ALL: [Self; 2] = [Self::Local, Self::Pooled];

    /// In figures and tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Local => "local compactions",
            Self::Pooled => "pooled compactions",
        }
    }
}

/// Shares of a core that processes are held to, where the machine lets us.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shares {
    /// The server's.
    pub server: f64,
    /// The worker's.
    pub worker: f64,
}

/// One server over its store, and all that is asked of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Who compacts.
    pub compactions: Compactions,
    /// Shares of a core; without them nobody is held to any.
    pub shares: Option<Shares>,
    /// What is asked for, one after the other.
    pub works: Vec<Work>,
    /// Whether all keys are there before.
    pub is_filled: bool,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Keys, or fields of the hash.
    pub keys: u32,
    /// Commands of each work.
    pub commands: u32,
    /// Connections, with one command each at a time.
    pub clients: u32,
    /// Memory for keys and values, MiB.
    pub memory_mb: u32,
    /// Size of a memtable, MiB.
    pub write_buffer_mb: u32,
    /// Compactions of fewer MiB are the server's own.
    pub min_mb: u32,
    /// Repetition.
    pub seed: u64,
}

impl Trial {
    /// What redis-benchmark is asked for.
    pub fn load(&self) -> Load {
        Load {
            clients: self.clients,
            pipeline: 1,
            keys: self.keys,
            commands: self.commands,
        }
    }

    /// The server as other experiments know it.
    pub fn served(&self) -> Served {
        Served {
            system: System::Manxdb,
            durability: Durability::Async,
            clients: self.clients,
            pipeline: 1,
            keys: self.keys,
            share: 1,
            seed: self.seed,
        }
    }

    /// How often the memory for keys and values goes into all values.
    pub fn times_memory(&self) -> f64 {
        let values = f64::from(self.keys) * f64::from(self.value_bytes);
        values / f64::from(self.memory_mb) / f64::from(1_u32 << 20)
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What INFO tells.
    pub version: String,
    /// What held processes to their shares of a core.
    pub quotas: Quotas,
    /// One of each work.
    pub measures: Vec<Measure>,
    /// Errors that were replied.
    pub errors: u64,
    /// Keys, or fields of the hash, in the end.
    pub found: u64,
    /// Values that left memory,
    pub evicted: u64,
    /// those that came back,
    pub loaded: u64,
    /// and those that are not in memory in the end.
    pub outside: u64,
    /// Bytes of memory that keys and values take in the end, as INFO tells.
    pub memory: u64,
    /// From the last reply until nothing was left to compact, in seconds.
    pub drain_seconds: f64,
    /// CPU seconds of the server in the loads and until nothing was left to compact,
    pub server_cpu: f64,
    /// and of the worker and the control plane.
    pub pool_cpu: f64,
    /// Compactions that the worker did,
    pub installed: u64,
    /// and those that it was to do and the server did.
    pub came_home: u64,
}

impl Outcome {
    /// A number of a work; none is no number.
    pub fn number(&self, work: Work, number: fn(&Measure) -> f64) -> f64 {
        let found = self.measures.iter().find(|one| one.work == work);
        found.map_or(f64::NAN, number)
    }
}
