//! What nodes of TAPIR send each other, and what a transaction did to a shard.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_common::{CallId, Planned};
use manxdb_core::{Message, Weight};
use manxdb_storage::KeyRange;
use manxdb_txn::procedure::Touch;

/// The place of a transaction in the order: a client's clock, and which client's. The rows at the
/// start have the least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Nanoseconds on the client's clock.
    pub time: u64,
    /// The client, so that no two transactions have the same.
    pub client: u32,
}

/// Rows that a transaction read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Where they lie.
    pub range: KeyRange,
    /// Keys in it that were written since the start, deleted ones too, each with its version.
    pub seen: Vec<(Vec<u8>, Timestamp)>,
}

/// Values to be written by key; `None` deletes.
pub type Writes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// What a transaction read and will write on one shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadWriteSet {
    /// What it read of other transactions.
    pub reads: Vec<Read>,
    /// What it writes.
    pub writes: Writes,
    /// How much work its pieces were.
    pub steps: u32,
}

impl ReadWriteSet {
    /// The same as touches.
    #[must_use]
    pub fn touches(&self) -> Vec<Touch> {
        let reads = self.reads.iter().map(|read| Touch {
            range: read.range.clone(),
            writes: false,
        });
        let writes = self.writes.keys().map(|key| Touch::write(key));
        reads.chain(writes).collect()
    }

    /// The newest version that was read.
    #[must_use]
    pub fn newest_seen(&self) -> Timestamp {
        let seen = self.reads.iter().flat_map(|read| &read.seen);
        seen.map(|(_, version)| *version).max().unwrap_or_default()
    }
}

/// What a replica, or a shard's replicas together, say of a transaction that is to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vote {
    /// It may commit at its timestamp.
    Ok,
    /// A prepared transaction is in its way, and may yet abort.
    Abstain,
    /// What it read has been overwritten.
    Abort,
    /// A committed transaction is behind its timestamp; behind this one there is none.
    Retry(Timestamp),
}

/// Pieces of a transaction to be tried on a replica's rows.
#[derive(Debug, Clone)]
pub struct Execute {
    /// The transaction.
    pub planned: Arc<Planned>,
    /// Which try of its client this is, from 1.
    pub attempt: u32,
    /// Places of the pieces, ascending.
    pub places: Vec<usize>,
    /// The values that they need from other shards and from earlier pieces, by slot.
    pub inputs: BTreeMap<u32, Vec<u8>>,
    /// What earlier pieces of this try write on this shard.
    pub own: Writes,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// What the pieces read, and what the transaction writes so far.
    pub sets: ReadWriteSet,
    /// What they gave, by slot.
    pub given: BTreeMap<u32, Vec<u8>>,
}

/// A message. All of a client's name the transaction and the try, whose answers count.
#[derive(Debug, Clone)]
pub enum TapirMessage {
    /// A client has pieces run.
    Execute(Box<Execute>),
    /// The replica has done so, or a piece failed.
    Executed {
        /// The transaction.
        id: CallId,
        /// The try.
        attempt: u32,
        /// The replica's shard.
        shard: u32,
        /// What came of it, or why a piece failed.
        ran: Box<Result<Executed, String>>,
    },
    /// May it commit?
    Prepare {
        /// The transaction.
        id: CallId,
        /// The try.
        attempt: u32,
        /// Its place in the order.
        timestamp: Timestamp,
        /// What it read and writes on the receiver's shard.
        sets: Arc<ReadWriteSet>,
    },
    /// The replica's answer.
    Voted {
        /// The transaction.
        id: CallId,
        /// The try.
        attempt: u32,
        /// The replica's shard.
        shard: u32,
        /// The answer.
        vote: Vote,
    },
    /// The shard's replicas did not agree: this is what counts.
    Finalize {
        /// The transaction.
        id: CallId,
        /// The try.
        attempt: u32,
        /// The shard's vote.
        vote: Vote,
    },
    /// The replica keeps that.
    Finalized {
        /// The transaction.
        id: CallId,
        /// The try.
        attempt: u32,
        /// The replica's shard.
        shard: u32,
    },
    /// It has committed.
    Commit {
        /// The transaction.
        id: CallId,
        /// Its place in the order.
        timestamp: Timestamp,
    },
    /// The try is over, without effect.
    Abort {
        /// The transaction.
        id: CallId,
    },
}

impl Message for TapirMessage {
    fn weight(&self) -> Weight {
        let pieces = match self {
            Self::Execute(execute) => {
                let all = execute.places.iter();
                let all = all.filter_map(|place| execute.planned.pieces.get(*place));
                all.fold(0, |sum, piece| piece.steps().saturating_add(sum))
            }
            Self::Executed { ran, .. } => ran.as_ref().as_ref().map_or(0, |ran| ran.sets.steps),
            Self::Prepare { sets, .. } => sets.steps,
            Self::Voted { .. }
            | Self::Finalize { .. }
            | Self::Finalized { .. }
            | Self::Commit { .. }
            | Self::Abort { .. } => 0,
        };
        Weight::Call { pieces }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Execute(_) => "Execute",
            Self::Executed { .. } => "Executed",
            Self::Prepare { .. } => "Prepare",
            Self::Voted { .. } => "Voted",
            Self::Finalize { .. } => "Finalize",
            Self::Finalized { .. } => "Finalized",
            Self::Commit { .. } => "Commit",
            Self::Abort { .. } => "Abort",
        }
    }

    fn txn(&self) -> Option<u64> {
        let id = match self {
            Self::Execute(execute) => execute.planned.id(),
            Self::Executed { id, .. }
            | Self::Prepare { id, .. }
            | Self::Voted { id, .. }
            | Self::Finalize { id, .. }
            | Self::Finalized { id, .. }
            | Self::Commit { id, .. }
            | Self::Abort { id } => *id,
        };
        Some(id.for_traces())
    }
}
