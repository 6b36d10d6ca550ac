//! Names: of clients, operations, lives of masters and witnesses, and of a whole configuration.

use manxdb_core::NodeId;
use serde::{Deserialize, Serialize};

/// A client of one cluster, given by a master and never used again; 0 is nobody.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct ClientId(pub u64);

/// An operation, the same for every attempt (RIFL). A client numbers its own from 1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct RpcId {
    /// Whose.
    pub client: ClientId,
    /// Which.
    pub seq: u64,
}

impl RpcId {
    /// One number, for traces.
    #[must_use]
    pub fn for_traces(self) -> u64 {
        self.client.0 << 32 | (self.seq & 0xFFFF_FFFF)
    }
}

/// The life of a master: grows with each new one. Backups refuse what is older.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Epoch(pub u64);

/// Version of the witness list (WLV), unique in a cluster.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Wlv(pub u32);

/// A configuration's name: one master with one list of backups and witnesses. Every message of
/// a client, and every table of a witness, is of one view.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct View {
    /// The master's life.
    pub epoch: Epoch,
    /// Its list of witnesses.
    pub wlv: Wlv,
}

/// A process: a node that started again is another one, since it has forgotten everything.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Member {
    /// Where it runs.
    pub node: NodeId,
    /// How many times the node has started.
    pub life: u64,
}

/// A position in a master's log; the first entry has 1.
pub type Position = u64;

/// An entry of a log: its place, and the life of the master that made it. Two logs that have an entry of
/// one name are equal up to there (Raft's log matching): a master makes one entry at a place, behind the
/// log that it has, and whoever takes it has the entry before it. The default is the beginning of all logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogId {
    /// The place.
    pub at: Position,
    /// The master's life when it made the entry.
    pub epoch: Epoch,
}

/// Who does what, as the coordinator has decided it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Its name.
    pub view: View,
    /// The only one that executes.
    pub master: Member,
    /// All of them have what is synced.
    pub backups: Vec<Member>,
    /// All of them have what was answered in one round trip and is not synced.
    pub witnesses: Vec<Member>,
    /// Clients show it with each record.
    pub record_token: u64,
    /// The master alone shows it, with each collection of garbage.
    pub gc_token: u64,
}

/// When and with which luck an operation runs, chosen by whoever records it, so that it does
/// the same when it is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stamp {
    /// Microseconds since the epoch of all clocks.
    pub micros: u64,
    /// The seed of all that is drawn.
    pub seed: u64,
}
