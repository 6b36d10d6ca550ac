//! The systems that experiments compare: what each is called, and what it must bring along.
//!
//! A new system is one more line of [`SystemName`], one of its `run`, and an impl of
//! [`Candidate`] beside its own module.

use std::sync::Arc;

use manxdb_common::{Answer, Ask, Level};
use manxdb_core::channel::{ChannelOptions, Life, Reliable};
use manxdb_core::{Core, Nanos, NodeId, RequestId};
use manxdb_dast::{Crossing, Survive};
use manxdb_sim::{FaultKind, Link, System};
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_txn::rows::Rows;
use manxdb_workloads::Topology;
use serde::{Deserialize, Serialize};

use crate::baselines::{DetockSystem, JanusSystem, SlogByPieceSystem, SlogSystem, TapirSystem};
use crate::dast::DastSystem;
use crate::figure::Look;
use crate::trial::{Trial, TrialError, TrialOutcome, measure};

/// A system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemName {
    /// Local transactions never wait for cross-region ones.
    Dast,
    /// Transactions are ordered by whom they met.
    Janus,
    /// By a log a region, and a global one for what touches several.
    Slog,
    /// The same, but a row is free once the piece that touches it has run.
    #[serde(rename = "slog-by-piece")]
    SlogByPiece,
    /// Transactions validate what they read, and begin again.
    Tapir,
    /// By a log a region, and by whom they come behind in those of others.
    Detock,
    /// DAST with cross-region transactions ordered ahead; not among [`SystemName::ALL`], which
    /// are as they were published.
    Ahead,
}

/// Something that is done with a system by its name, whatever its type is.
pub trait ForSystem {
    /// What comes of it.
    type Outcome;

    /// Does it.
    fn run<S: Candidate>(self) -> Self::Outcome;
}

impl SystemName {
    /// All of them, in the order of legends.
    pub const ALL: [SystemName; 6] = [
        SystemName::Dast,
        SystemName::Janus,
        SystemName::Slog,
        SystemName::SlogByPiece,
        SystemName::Tapir,
        SystemName::Detock,
    ];

    /// Those that figures show beside each other: all, and what is ours.
    pub const COMPARED: [SystemName; 7] = [
        SystemName::Dast,
        SystemName::Janus,
        SystemName::Slog,
        SystemName::SlogByPiece,
        SystemName::Tapir,
        SystemName::Detock,
        SystemName::Ahead,
    ];

    /// In figures and tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Dast => "DAST",
            Self::Janus => "Janus",
            Self::Slog => "SLOG",
            Self::SlogByPiece => "SLOG, rows freed by piece",
            Self::Tapir => "TAPIR",
            Self::Detock => "Detock",
            Self::Ahead => "ManxDB, ordered ahead",
        }
    }

    /// On command lines and in data.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dast => "dast",
            Self::Janus => "janus",
            Self::Slog => "slog",
            Self::SlogByPiece => "slog-by-piece",
            Self::Tapir => "tapir",
            Self::Detock => "detock",
            Self::Ahead => "ahead",
        }
    }

    /// The names of all of them, for people.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// In figures, the same in all of them.
    #[must_use]
    pub fn look(self) -> Look {
        Look::of(self as usize)
    }

    /// Does something with the system of this name.
    pub fn with<F: ForSystem>(self, what: F) -> F::Outcome {
        match self {
            Self::Dast | Self::Ahead => what.run::<DastSystem>(),
            Self::Janus => what.run::<JanusSystem>(),
            Self::Slog => what.run::<SlogSystem>(),
            Self::SlogByPiece => what.run::<SlogByPieceSystem>(),
            Self::Tapir => what.run::<TapirSystem>(),
            Self::Detock => what.run::<DetockSystem>(),
        }
    }

    /// The strongest level that it promises: what Janus orders, and what TAPIR commits, agrees with
    /// real time.
    #[must_use]
    pub fn promises(self) -> Level {
        match self {
            Self::Dast | Self::Ahead | Self::Janus | Self::Tapir => Level::Strict,
            Self::Slog | Self::SlogByPiece | Self::Detock => Level::Serializable,
        }
    }

    /// How it orders cross-region transactions, if it is DAST.
    #[must_use]
    pub fn crossing(self) -> Crossing {
        match self {
            Self::Ahead => Crossing::Ahead,
            _ => Crossing::Anticipated,
        }
    }

    /// Whether it lives through a fault of this kind.
    ///
    /// # Errors
    /// What it cannot take, and what can.
    pub fn survives(self, fault: &FaultKind) -> Result<(), String> {
        let loses_memory = matches!(fault, FaultKind::Crash { .. });
        if matches!(self, Self::Dast | Self::Ahead) || !loses_memory {
            return Ok(());
        }
        Err(format!(
            "{} is a baseline whose nodes do not fail: it takes part, cut, delay, loss, duplicate, \
             reorder, pause, slow and wrong clocks; dast takes this one",
            self.name()
        ))
    }

    /// Runs a trial of it; `progress` hears which share of it is done.
    ///
    /// # Errors
    /// [`TrialError`].
    pub fn run(
        self,
        trial: &Trial,
        progress: &mut dyn FnMut(f64),
    ) -> Result<TrialOutcome, TrialError> {
        self.with(Measuring { trial, progress })
    }
}

struct Measuring<'a> {
    trial: &'a Trial,
    progress: &'a mut dyn FnMut(f64),
}

impl ForSystem for Measuring<'_> {
    type Outcome = Result<TrialOutcome, TrialError>;

    fn run<S: Candidate>(self) -> Self::Outcome {
        measure::<S>(self.trial, self.progress)
    }
}

/// The rows of a shard at the start.
pub type FirstRows = Box<dyn Fn(ShardId) -> Rows>;

/// What every system is given.
pub struct Cluster {
    /// Where shards and keys are.
    pub topology: Topology,
    /// What can be asked.
    pub procedures: Arc<Registry>,
    /// The rows at the start.
    pub rows: FirstRows,
    /// How far regions are apart, there and back, if the system is told.
    pub round_trip: Option<Nanos>,
    /// Whether nodes say what transactions wait for.
    pub explains: bool,
    /// Whether replicas keep the order in which transactions ran.
    pub keeps_order: bool,
    /// Decides what nodes draw at random.
    pub seed: u64,
    /// How DAST orders cross-region transactions.
    pub crossing: Crossing,
    /// What DAST survives.
    pub survive: Survive,
    /// How far ahead of their clocks regions tell marks at first, if transactions are ordered ahead
    /// and it is not what the distance says.
    pub lead: Option<Nanos>,
}

/// What is seen of a replica.
pub struct ReplicaView<'a> {
    /// Whether it takes part.
    pub is_live: bool,
    /// Equal for replicas of a shard that ran the same and have the same rows.
    pub digest: u64,
    /// Its rows.
    pub rows: &'a Rows,
}

/// A node that may hold a replica.
pub trait HoldsReplica {
    /// The replica, if the node is one.
    fn view(&self) -> Option<ReplicaView<'_>>;
}

impl<C: HoldsReplica + Core> HoldsReplica for Reliable<C> {
    fn view(&self) -> Option<ReplicaView<'_>> {
        self.core().view()
    }
}

/// A system as experiments see it: nodes, of which the last are its clients.
pub trait Candidate:
    System<Core: Core<Request = Ask, Reply = Answer, Record = ()> + HoldsReplica> + Sized
{
    /// The system, set as for measurements.
    fn build(cluster: Cluster) -> Self;

    /// Where its nodes and clients are: so many clients in the region of each shard, numbered
    /// behind all servers. The clients, each with its home shard.
    fn place(
        &self,
        clients_per_shard: u32,
        lan: Link,
        wan: Link,
    ) -> (manxdb_sim::Topology, Vec<(NodeId, ShardId)>);

    /// What a server is, in a word; `None`: it has nothing to do in this system.
    fn role(&self, server: NodeId) -> Option<&'static str>;
}

/// The nodes of a system on a network that loses, repeats and reorders.
pub struct ReliableSystem<S>(pub S);

impl<S> System for ReliableSystem<S>
where
    S: System,
    S::Core: Core<Record = ()>,
    Reliable<S::Core>:
        Core<Request = <S::Core as Core>::Request, Reply = <S::Core as Core>::Reply, Record = ()>,
{
    type Core = Reliable<S::Core>;

    fn start(&mut self, node: NodeId, life: Life, disk: Vec<()>) -> Reliable<S::Core> {
        let core = self.0.start(node, life, disk);
        Reliable::new(core, node, life, ChannelOptions::default())
    }

    fn reply_txn(&self, request: RequestId, reply: &<S::Core as Core>::Reply) -> Option<u64> {
        self.0.reply_txn(request, reply)
    }
}
