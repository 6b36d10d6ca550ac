//! What decides a run: databases, workers, what each may use, and who compacts.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Who compacts, and who decides that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every database itself.
    Local,
    /// One worker for each database, called and waited for (Disaggre-RocksDB).
    Static,
    /// A worker drawn at random, jobs in the order of arrival (Nebula-Random-Sche).
    Random,
    /// CaaS-LSM's published order, and the worker with the fewest jobs.
    CaasLevel,
    /// Ours.
    Manxdb,
}

impl Mode {
    /// All of them, in the order of tables.
    pub const ALL: [Mode; 5] = [
        Mode::Local,
        Mode::Static,
        Mode::Random,
        Mode::CaasLevel,
        Mode::Manxdb,
    ];

    /// In figures and reports; of those with a control plane also its policy on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Static => "static",
            Self::Random => "random",
            Self::CaasLevel => "caas-level",
            Self::Manxdb => "manxdb",
        }
    }

    /// Whether databases wait for workers whatever it takes and give everything away, as those of
    /// published systems do.
    pub fn is_published(self) -> bool {
        matches!(self, Self::Static | Self::Random | Self::CaasLevel)
    }

    /// Jobs of one worker at a time: all that its databases have where each calls its own, five in
    /// CaaS-LSM, fewer in ours, where a slot for level 0 is kept and the rest waits in order.
    pub fn slots(self, background_jobs: u32) -> u32 {
        match self {
            Self::Local | Self::Static => background_jobs,
            Self::Random | Self::CaasLevel => 5,
            Self::Manxdb => 3,
        }
    }
}

/// A process and what it may use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Share of one core; enforced where the machine lets us.
    pub cpus: f64,
    /// Where it is.
    pub zone: u16,
}

/// A database, and how much is put there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Database {
    /// Where it runs.
    // The kept results call it so.
    #[serde(rename = "seat")]
    pub placement: Placement,
    /// Puts of each of its threads.
    pub puts: u32,
}

/// Where databases and workers meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// One directory, which all reach at once.
    #[default]
    Directory,
    /// Objects in every zone. A database puts its own where it is; to workers of another zone each
    /// request takes the delay between zones, and so does its answer.
    Objects,
}

/// How databases are set up and loaded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Threads that put.
    pub threads: u32,
    /// Size of a value in bytes; keys have 16.
    pub value_bytes: u32,
    /// Flushes and compactions at a time.
    pub background_jobs: u32,
    /// Size of a memtable in KiB.
    pub memtable_kb: u32,
    /// Size of a sorted file in KiB.
    pub file_kb: u32,
    /// Size of level 1 in KiB.
    pub level1_kb: u32,
    /// In RocksDB's words.
    pub compression: Compression,
    /// Compactions of fewer MiB stay at home (in ours; published systems give all away).
    pub min_mb: u32,
}

/// How sorted files are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// On the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Who compacts.
    pub mode: Mode,
    /// The databases, loaded at one time.
    pub databases: Vec<Database>,
    /// The workers; none where databases compact.
    pub workers: Vec<Placement>,
    /// What a message takes from one zone to another, in milliseconds. The control plane is in
    /// zone 0.
    pub delay_ms: u32,
    /// Where databases and workers meet.
    #[serde(default)]
    pub storage: Storage,
    /// How databases are set up and loaded.
    pub shape: Shape,
    /// Equal seeds put equal values under equal keys.
    pub seed: u64,
}

impl Trial {
    /// Puts of all databases.
    pub fn puts(&self) -> u64 {
        let puts = self.databases.iter().map(|one| u64::from(one.puts));
        puts.sum::<u64>() * u64::from(self.shape.threads)
    }

    /// Where anybody is.
    pub fn zones(&self) -> BTreeSet<u16> {
        let databases = self.databases.iter().map(|one| one.placement.zone);
        let workers = self.workers.iter().map(|one| one.zone);
        databases.chain(workers).collect()
    }
}
