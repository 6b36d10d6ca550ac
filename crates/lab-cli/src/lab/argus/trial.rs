//! What decides a run, and what is kept of it.

use serde::{Deserialize, Serialize};

use crate::lab::curp::trial::{Carrier, Spread};

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answerer {
    /// Nobody: the client reads its own datagrams. What sending and receiving costs it.
    Nobody,
    /// Witnesses.
    Witness(Carrier),
}

impl Answerer {
    /// In the order in which they take turns.
    pub const ALL: [Self; 4] = [
        Self::Nobody,
        Self::Witness(Carrier::User),
        Self::Witness(Carrier::XdpGeneric),
        Self::Witness(Carrier::Xdp),
    ];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Nobody => "client alone",
            Self::Witness(carrier) => carrier.name(),
        }
    }
}

/// How requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Many at a time to one witness, with a collection for every four records.
    Flood,
    /// One record to all witnesses, the next when all have answered.
    Rounds,
}

/// One client, and the witnesses that it sends records to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Who answers.
    pub answerer: Answerer,
    /// How many of them.
    pub witnesses: u32,
    /// Whether as many threads as the machine has cores compete for the witnesses' core.
    pub busy: bool,
    /// How requests are sent.
    pub pace: Pace,
    /// Requests of a flood, or rounds.
    pub requests: u32,
    /// Repetition.
    pub seed: u64,
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Why it did not run, if it did not: what this machine lacks.
    pub lacking: Option<String>,
    /// Requests that were answered.
    pub answered: u64,
    /// Records among them that were accepted.
    pub accepted: u64,
    /// How long all took.
    pub seconds: f64,
    /// From before the first record of a round is sent to its last answer; of rounds alone.
    pub rounds: Spread,
    /// CPU seconds of the client and the witnesses together.
    pub all_cpu: f64,
    /// CPU seconds of the witness's thread, or of its program in the kernel; of a flood alone.
    pub witness_cpu: f64,
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
impl Outcome {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        self.answered as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Requests for each second of the witness's own CPU.
    pub fn own_rate(&self) -> f64 {
        self.answered as f64 / self.witness_cpu.max(f64::MIN_POSITIVE)
    }

    /// Microseconds of CPU of client and witness for a request.
    pub fn all_us(&self) -> f64 {
        self.all_cpu * 1e6 / self.answered.max(1) as f64
    }

    /// Microseconds of the witness's own CPU for a request.
    pub fn own_us(&self) -> f64 {
        self.witness_cpu * 1e6 / self.answered.max(1) as f64
    }
}
