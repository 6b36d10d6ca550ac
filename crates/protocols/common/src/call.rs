//! Calls of procedures as they travel between nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_txn::procedure::{ProcedureError, ProcedurePiece, ShardId, Slot, in_running_order};
use serde::{Deserialize, Serialize};

use crate::topology::{RegionId, Topology};

/// Identity of a transaction, chosen by its client. A retry has the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct CallId {
    /// The client.
    pub client: NodeId,
    /// Its count, from 1, without gaps.
    pub number: u64,
}

impl CallId {
    /// One number for traces: the client in the high half.
    #[must_use]
    pub fn for_traces(self) -> u64 {
        u64::from(self.client.0) << 32 | self.number & 0xFFFF_FFFF
    }
}

impl std::fmt::Debug for CallId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.client.0, self.number)
    }
}

/// What a session is promised beyond serializability, call by call.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub enum Level {
    /// Equal to some serial order of all transactions.
    #[default]
    Serializable,
    /// And that order contains the session's own transactions in the order it made them, also
    /// when it moves between regions.
    Session,
    /// And that order agrees with real time.
    Strict,
}

/// What is asked of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The procedure's name.
    pub procedure: String,
    /// Its arguments.
    pub args: Vec<u8>,
    /// What the caller is promised.
    pub level: Level,
    /// Whose replicas coordinate it.
    pub home: ShardId,
}

/// What a cluster answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The call's identity.
    pub id: CallId,
    /// What its pieces gave.
    pub given: Given,
    /// How often it was asked.
    pub attempts: u32,
}

/// How the refusal of a call begins that was tried as often as may be, and had no effect.
pub const GAVE_UP: &str = "gave up";

impl Answer {
    /// Whether the call was tried as often as may be, in vain.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        let refusal = self.given.as_ref().err();
        refusal.is_some_and(|refusal| refusal.starts_with(GAVE_UP))
    }
}

/// Values by the numbers of their slots.
pub type Numbered = Vec<(u32, Vec<u8>)>;

/// What pieces of a call gave, or why one of them failed.
pub type Given = Result<Numbered, String>;

/// A transaction on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Who calls.
    pub id: CallId,
    /// The procedure's name.
    pub procedure: String,
    /// Its arguments, in its own encoding.
    pub args: Vec<u8>,
    /// What the caller is promised.
    pub level: Level,
    /// Calls of this client below this number have ended: nobody asks for them again.
    pub ended_below: u64,
}

/// A call cut into pieces. Shared between all that know it in one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The call.
    pub call: Call,
    /// Who answers the client.
    pub coordinator: NodeId,
    /// Its pieces, in the order in which they would run one after another: where two meet on a
    /// row, they keep it.
    pub pieces: Vec<PieceOfCall>,
    /// The shards of the pieces, each once, ascending.
    pub shards: Vec<u32>,
    /// Whether they lie in several regions.
    pub crosses_regions: bool,
}

/// A piece, as it travels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PieceOfCall {
    part: u32,
    shard: u32,
    needs: Vec<u32>,
    gives: Vec<u32>,
    steps: u32,
}

impl PieceOfCall {
    /// Where its rows live.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        ShardId(self.shard)
    }

    /// Names of the values it waits for.
    pub fn needs(&self) -> impl Iterator<Item = Slot> + '_ {
        self.needs.iter().map(|slot| Slot(*slot))
    }

    /// Names of the values it gives.
    pub fn gives(&self) -> impl Iterator<Item = Slot> + '_ {
        self.gives.iter().map(|slot| Slot(*slot))
    }

    /// How much work it is, for the cost of carrying and running it.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// The piece as its procedure knows it.
    #[must_use]
    pub fn to_piece(&self) -> ProcedurePiece {
        ProcedurePiece {
            part: self.part,
            shard: self.shard(),
            needs: self.needs().collect(),
            gives: self.gives().collect(),
            steps: self.steps,
        }
    }
}

impl From<ProcedurePiece> for PieceOfCall {
    fn from(piece: ProcedurePiece) -> Self {
        let numbers = |slots: Vec<Slot>| slots.into_iter().map(|slot| slot.0).collect();
        Self {
            part: piece.part,
            shard: piece.shard.0,
            needs: numbers(piece.needs),
            gives: numbers(piece.gives),
            steps: piece.steps,
        }
    }
}

impl Planned {
    /// A call and its pieces.
    ///
    /// # Errors
    /// The pieces wait for each other or for a value nobody gives.
    pub fn new(
        call: Call,
        coordinator: NodeId,
        pieces: Vec<ProcedurePiece>,
        topology: Topology,
    ) -> Result<Arc<Self>, ProcedureError> {
        let pieces = in_running_order(pieces)?;
        let shards: BTreeSet<u32> = pieces.iter().map(|piece| piece.shard.0).collect();
        let regions = shards
            .iter()
            .map(|shard| topology.region_of(ShardId(*shard)));
        let regions: BTreeSet<RegionId> = regions.collect();
        Ok(Arc::new(Self {
            crosses_regions: regions.len() > 1,
            call,
            coordinator,
            pieces: pieces.into_iter().map(PieceOfCall::from).collect(),
            shards: shards.into_iter().collect(),
        }))
    }

    /// How much work all of it is.
    #[must_use]
    pub fn steps(&self) -> u32 {
        let steps = self.pieces.iter().map(PieceOfCall::steps);
        steps.fold(0, u32::saturating_add)
    }

    /// Who calls.
    #[must_use]
    pub fn id(&self) -> CallId {
        self.call.id
    }

    /// The shards it touches, ascending.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.shards.iter().map(|shard| ShardId(*shard))
    }

    /// Whether it touches a shard.
    #[must_use]
    pub fn touches(&self, shard: ShardId) -> bool {
        self.shards.binary_search(&shard.0).is_ok()
    }

    /// Places in [`Planned::pieces`] of those on a shard, ascending.
    pub fn places_on(&self, shard: ShardId) -> impl Iterator<Item = usize> + '_ {
        let all = self.pieces.iter().enumerate();
        let here = all.filter(move |(_, piece)| piece.shard() == shard);
        here.map(|(place, _)| place)
    }

    /// Values that pieces of other shards need from `shard`, each with the shard that needs it.
    pub fn wanted_from(&self, shard: ShardId) -> impl Iterator<Item = (ShardId, Slot)> + '_ {
        let given_here = move |slot: Slot| {
            let mut here = self
                .pieces
                .iter()
                .filter(move |piece| piece.shard() == shard);
            here.any(|piece| piece.gives().any(|given| given == slot))
        };
        let elsewhere = self
            .pieces
            .iter()
            .filter(move |piece| piece.shard() != shard);
        elsewhere.flat_map(move |piece| {
            let needed = piece.needs().filter(move |slot| given_here(*slot));
            needed.map(move |slot| (piece.shard(), slot))
        })
    }

    /// The shard whose pieces give `slot`.
    #[must_use]
    pub fn giver_of(&self, slot: Slot) -> Option<ShardId> {
        let mut pieces = self.pieces.iter();
        let giver = pieces.find(|piece| piece.gives().any(|given| given == slot));
        giver.map(PieceOfCall::shard)
    }
}

impl Topology {
    /// The regions a call touches, ascending.
    #[must_use]
    pub fn regions_of(&self, planned: &Planned) -> Vec<RegionId> {
        let mut regions: Vec<RegionId> = planned
            .shards()
            .map(|shard| self.region_of(shard))
            .collect();
        regions.dedup();
        regions
    }
}
