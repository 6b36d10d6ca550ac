//! What decides a run, and what is kept of it.

use serde::{Deserialize, Serialize};

/// Who answers witnesses' datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// A process.
    User,
    /// An XDP program behind the driver.
    XdpGeneric,
    /// An XDP program in the driver.
    Xdp,
}

impl Carrier {
    /// On the command line, and for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::XdpGeneric => "xdp-generic",
            Self::Xdp => "xdp",
        }
    }
}

/// What serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// One server of the same program without backups and witnesses (f = 0).
    Unreplicated,
    /// CURP: its client records at all witnesses.
    Curp {
        /// Backups, and as many witnesses.
        faults: u32,
        /// Who answers for witnesses.
        carrier: Carrier,
    },
    /// The same cluster without its witnesses: the master syncs before it answers.
    Synced {
        /// Backups.
        faults: u32,
    },
    /// redis-server with `appendfsync always`.
    RedisAlways,
}

impl System {
    /// One backup, one witness, in a process.
    pub const CURP: Self = Self::Curp {
        faults: 1,
        carrier: Carrier::User,
    };
    /// One backup, which each command waits for.
    pub const SYNCED: Self = Self::Synced { faults: 1 };

    /// For people.
    pub fn title(self) -> String {
        match self {
            Self::Unreplicated => "unreplicated".to_owned(),
            Self::Curp { faults, carrier } => format!("CURP f={faults} {}", carrier.name()),
            Self::Synced { faults } => format!("synced f={faults}"),
            Self::RedisAlways => "Redis 7.0 AOF always".to_owned(),
        }
    }

    /// Backups, and witnesses if it has any.
    pub fn faults(self) -> u32 {
        match self {
            Self::Curp { faults, .. } | Self::Synced { faults } => faults,
            _ => 0,
        }
    }

    /// Whether it is redis-server.
    pub fn is_redis(self) -> bool {
        self == Self::RedisAlways
    }

    /// Whether its client records at witnesses.
    pub fn records(self) -> bool {
        matches!(self, Self::Curp { .. })
    }
}

/// What clients ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// SET of a key drawn evenly.
    Set,
    /// YCSB A: half reads, half updates, of keys by Zipf.
    YcsbA,
    /// YCSB B: 95 % reads.
    YcsbB,
}

impl Load {
    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Set => "SET",
            Self::YcsbA => "YCSB A",
            Self::YcsbB => "YCSB B",
        }
    }

    /// The share of reads.
    pub fn reads(self) -> f64 {
        match self {
            Self::Set => 0.0,
            Self::YcsbA => 0.5,
            Self::YcsbB => 0.95,
        }
    }
}

/// One cluster, or one redis-server, and what is asked of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What serves.
    pub system: System,
    /// Emulated way from one process to another, in microseconds.
    pub lan_us: u32,
    /// One after the other.
    pub loads: Vec<Load>,
    /// Exponent of Zipf's distribution, in hundredths.
    pub theta: u32,
    /// Commands under way at any time.
    pub clients: u32,
    /// Commands of each load that are measured.
    pub commands: u32,
    /// Keys to draw from.
    pub keys: u32,
    /// Repetition.
    pub seed: u64,
}

/// How commands were completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ways {
    /// By all witnesses: one round trip.
    pub fast: u64,
    /// Reads, answered by the master.
    pub reads: u64,
    /// Synced by the master before it answered.
    pub conflicts: u64,
    /// Synced because a witness refused or was slow.
    pub synced: u64,
    /// Nobody knows.
    pub unknown: u64,
    /// Attempts after the first.
    pub retries: u64,
}

impl Ways {
    /// Updates that were completed.
    pub fn updates(&self) -> u64 {
        self.fast + self.conflicts + self.synced
    }

    /// All commands.
    pub fn all(&self) -> u64 {
        self.updates() + self.reads + self.unknown
    }
}

/// CPU seconds of processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// The master, or the one server that there is.
    pub master: f64,
    /// All backups.
    pub backups: f64,
    /// All witnesses' processes.
    pub witnesses: f64,
    /// The process that asks.
    pub client: f64,
}

impl Cpu {
    /// Without who asks.
    pub fn cluster(&self) -> f64 {
        self.master + self.backups + self.witnesses
    }
}

/// Latencies of one kind, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Half of them do not exceed it.
    pub p50: f64,
    /// Nor 99 of a hundred this.
    pub p99: f64,
    /// Nor 999 of a thousand this.
    pub p999: f64,
}

/// What came of one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Which.
    pub load: Load,
    /// Commands that were answered.
    pub commands: u64,
    /// How long they took together.
    pub seconds: f64,
    /// All of them.
    pub all: Spread,
    /// Those that change something.
    pub updates: Spread,
    /// How they were completed; of redis-server nothing.
    pub ways: Ways,
    /// Who used which CPU.
    pub cpu: Cpu,
    /// Messages that processes of the cluster and the client sent meanwhile, and their bytes.
    pub messages: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Commands on a key that one of the hundred before had.
    pub recent: u64,
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
impl Measure {
    /// Commands a second.
    pub fn rate(&self) -> f64 {
        self.commands as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Microseconds of CPU of master, backups and witnesses for a command.
    pub fn cluster_us(&self) -> f64 {
        self.cpu.cluster() * 1e6 / self.commands.max(1) as f64
    }

    /// Of updates, the share completed in one round trip.
    pub fn fast_share(&self) -> f64 {
        self.ways.fast as f64 / self.ways.updates().max(1) as f64
    }

    /// Messages for a command.
    pub fn messages_each(&self) -> f64 {
        self.messages as f64 / self.commands.max(1) as f64
    }

    /// Bytes for a command.
    pub fn bytes_each(&self) -> f64 {
        self.bytes as f64 / self.commands.max(1) as f64
    }

    /// Of all commands, the share on a key used shortly before.
    pub fn recent_share(&self) -> f64 {
        self.recent as f64 / self.commands.max(1) as f64
    }
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why the system did not run, if it did not: what this machine lacks.
    pub lacking: Option<String>,
    /// Milliseconds that half of the fdatasync calls take at most, after 120 bytes were appended, where
    /// that was measured.
    pub fdatasync_ms: Option<f64>,
    /// One of each load.
    pub measures: Vec<Measure>,
}

impl Outcome {
    /// What came of a load.
    pub fn of(&self, load: Load) -> Option<&Measure> {
        self.measures.iter().find(|one| one.load == load)
    }

    /// A number of a load; none is no number.
    pub fn number(&self, load: Load, number: impl Fn(&Measure) -> f64) -> f64 {
        self.of(load).map_or(f64::NAN, number)
    }
}
