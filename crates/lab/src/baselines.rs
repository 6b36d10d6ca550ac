//! The systems that DAST is compared with, in the simulator.

use std::sync::Arc;

use manxdb_baselines::janus::Janus;
use manxdb_baselines::slog::Crossing;
use manxdb_baselines::tapir::Tapir;
use manxdb_baselines::{JanusNode, JanusOptions, SlogNode, SlogOptions, TapirNode, TapirOptions};
use manxdb_common::node::ReplicaOf as _;
use manxdb_common::{Answer, Ask, Pieces, Release, Role, Shared, Topology};
use manxdb_core::channel::Life;
use manxdb_core::{Core, NodeId, RequestId};
use manxdb_sim::{Link, System};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::{NoRows, Rows};

use crate::candidate::{Candidate, Cluster, FirstRows, HoldsReplica, ReplicaView};
use crate::dast::place;

/// A Janus cluster.
pub type JanusSystem = BaselineSystem<Janus>;

/// A SLOG cluster.
pub type SlogSystem = BaselineSystem<Slog>;

/// A SLOG cluster in which a row is free once the piece that touches it has run.
pub type SlogByPieceSystem = BaselineSystem<SlogByPiece>;

/// A TAPIR cluster.
pub type TapirSystem = BaselineSystem<Tapir>;

/// A Detock cluster: SLOG without the global log.
pub type DetockSystem = BaselineSystem<Detock>;

/// A protocol, known by how its clusters are told to behave.
pub trait Nodes: Sized {
    /// One of its nodes.
    type Node: Core<Request = Ask, Reply = Answer, Record = ()> + HoldsReplica;
    /// Whether the managers of a region do something.
    const HAS_MANAGERS: bool;

    /// The node of that number. `rows` are those that a replica begins with.
    fn node(me: NodeId, shared: &Arc<Shared<Self>>, rows: impl FnOnce() -> Rows) -> Self::Node;
}

/// A line in figures: a protocol, set in a way.
pub trait Baseline {
    /// The protocol's.
    type Options: Nodes;

    /// As for measurements.
    fn options(cluster: &Cluster) -> Self::Options;
}

/// A cluster of one of them.
pub struct BaselineSystem<B: Baseline> {
    shared: Arc<Shared<B::Options>>,
    rows: FirstRows,
}

impl<B: Baseline> BaselineSystem<B> {
    /// A cluster that runs `cluster`'s procedures on its rows.
    #[must_use]
    pub fn of(cluster: Cluster, options: B::Options) -> Self {
        let shared = Shared {
            topology: Topology {
                regions: cluster.topology.regions,
                shards_per_region: cluster.topology.shards_per_region,
            },
            options,
            procedures: cluster.procedures,
            placement: Arc::new(cluster.topology),
        };
        Self {
            shared: Arc::new(shared),
            rows: cluster.rows,
        }
    }
}

impl<B: Baseline> System for BaselineSystem<B> {
    type Core = <B::Options as Nodes>::Node;

    fn start(&mut self, node: NodeId, _life: Life, _disk: Vec<()>) -> Self::Core {
        let rows = || match self.shared.topology.role(node) {
            Role::Replica(shard) => (self.rows)(shard),
            Role::Manager(_) | Role::Client => Rows::new(Arc::new(NoRows)),
        };
        B::Options::node(node, &self.shared, rows)
    }

    fn reply_txn(&self, _request: RequestId, reply: &Answer) -> Option<u64> {
        Some(reply.id.for_traces())
    }
}

impl<B: Baseline> Candidate for BaselineSystem<B> {
    fn build(cluster: Cluster) -> Self {
        let options = B::options(&cluster);
        Self::of(cluster, options)
    }

    fn place(
        &self,
        clients_per_shard: u32,
        lan: Link,
        wan: Link,
    ) -> (manxdb_sim::Topology, Vec<(NodeId, ShardId)>) {
        place(self.shared.topology, clients_per_shard, lan, wan)
    }

    fn role(&self, server: NodeId) -> Option<&'static str> {
        match self.shared.topology.role(server) {
            Role::Replica(_) => Some("replica"),
            Role::Manager(_) if B::Options::HAS_MANAGERS => Some("manager"),
            Role::Manager(_) | Role::Client => None,
        }
    }
}

impl Nodes for JanusOptions {
    type Node = JanusNode;
    const HAS_MANAGERS: bool = false;

    fn node(me: NodeId, shared: &Arc<Shared<Self>>, rows: impl FnOnce() -> Rows) -> JanusNode {
        JanusNode::new(me, shared, rows)
    }
}

impl Baseline for Janus {
    type Options = JanusOptions;

    fn options(cluster: &Cluster) -> JanusOptions {
        JanusOptions {
            explains: cluster.explains,
            ..JanusOptions::default()
        }
    }
}

impl HoldsReplica for JanusNode {
    fn view(&self) -> Option<ReplicaView<'_>> {
        self.replica().map(|replica| view_of(replica.pieces()))
    }
}

impl Nodes for TapirOptions {
    type Node = TapirNode;
    const HAS_MANAGERS: bool = false;

    fn node(me: NodeId, shared: &Arc<Shared<Self>>, rows: impl FnOnce() -> Rows) -> TapirNode {
        TapirNode::new(me, shared, rows)
    }
}

impl Baseline for Tapir {
    type Options = TapirOptions;

    fn options(cluster: &Cluster) -> TapirOptions {
        TapirOptions {
            explains: cluster.explains,
            seed: cluster.seed,
            ..TapirOptions::default()
        }
    }
}

impl HoldsReplica for TapirNode {
    fn view(&self) -> Option<ReplicaView<'_>> {
        let replica = self.replica()?;
        Some(ReplicaView {
            is_live: true,
            digest: replica.digest(),
            rows: replica.rows(),
        })
    }
}

impl Nodes for SlogOptions {
    type Node = SlogNode;
    const HAS_MANAGERS: bool = true;

    fn node(me: NodeId, shared: &Arc<Shared<Self>>, rows: impl FnOnce() -> Rows) -> SlogNode {
        SlogNode::new(me, shared, rows)
    }
}

/// SLOG as published.
pub struct Slog;

impl Baseline for Slog {
    type Options = SlogOptions;

    fn options(cluster: &Cluster) -> SlogOptions {
        SlogOptions {
            explains: cluster.explains,
            ..SlogOptions::default()
        }
    }
}

/// SLOG that frees each row as soon as it can.
pub struct SlogByPiece;

impl Baseline for SlogByPiece {
    type Options = SlogOptions;

    fn options(cluster: &Cluster) -> SlogOptions {
        SlogOptions {
            release: Release::Piece,
            ..Slog::options(cluster)
        }
    }
}

/// Detock.
pub struct Detock;

impl Baseline for Detock {
    type Options = SlogOptions;

    fn options(cluster: &Cluster) -> SlogOptions {
        SlogOptions {
            crossing: Crossing::Graph,
            ..Slog::options(cluster)
        }
    }
}

impl HoldsReplica for SlogNode {
    fn view(&self) -> Option<ReplicaView<'_>> {
        self.replica().map(|replica| view_of(replica.pieces()))
    }
}

/// A replica that runs pieces; none of them fails.
fn view_of(pieces: &Pieces) -> ReplicaView<'_> {
    ReplicaView {
        is_live: true,
        digest: pieces.digest(),
        rows: pieces.rows(),
    }
}
