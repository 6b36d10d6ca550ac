//! The systems that DAST is compared with, in the simulator.

use std::sync::Arc;

use manxdb_baselines::slog::Crossing;
use manxdb_baselines::{JanusNode, JanusOptions, SlogNode, SlogOptions, TapirNode, TapirOptions};
use manxdb_common::{Answer, Release, Role, Shared, Topology};
use manxdb_core::channel::Life;
use manxdb_core::{NodeId, RequestId};
use manxdb_sim::{Link, System};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::{NoRows, Rows};

use crate::dast::place;
use crate::systems::{Candidate, Cluster, FirstRows, HoldsReplica, ReplicaView};

/// The shape of a cluster as protocols have it.
fn shape(cluster: &Cluster) -> Topology {
    Topology {
        regions: cluster.topology.regions,
        shards_per_region: cluster.topology.shards_per_region,
    }
}

/// What the nodes of a cluster are given, and the rows they begin with.
fn share<O>(cluster: Cluster, options: O) -> (Arc<Shared<O>>, FirstRows) {
    let shared = Shared {
        topology: shape(&cluster),
        options,
        procedures: cluster.procedures,
        placement: Arc::new(cluster.topology),
    };
    (Arc::new(shared), cluster.rows)
}

/// The rows that a node begins with.
fn first_rows(role: Role, rows: &FirstRows) -> Rows {
    match role {
        Role::Replica(shard) => rows(shard),
        Role::Manager(_) | Role::Client => Rows::new(Arc::new(NoRows)),
    }
}

/// A Janus cluster.
pub struct JanusSystem {
    shared: Arc<Shared<JanusOptions>>,
    rows: FirstRows,
}

impl JanusSystem {
    /// A cluster that runs `cluster`'s procedures on its rows.
    #[must_use]
    pub fn of(cluster: Cluster, options: JanusOptions) -> Self {
        let (shared, rows) = share(cluster, options);
        Self { shared, rows }
    }
}

impl System for JanusSystem {
    type Core = JanusNode;

    fn start(&mut self, node: NodeId, _life: Life, _disk: Vec<()>) -> JanusNode {
        let role = self.shared.topology.role(node);
        JanusNode::new(node, &self.shared, || first_rows(role, &self.rows))
    }

    fn reply_txn(&self, _request: RequestId, reply: &Answer) -> Option<u64> {
        Some(reply.id.for_traces())
    }
}

impl Candidate for JanusSystem {
    fn build(cluster: Cluster) -> Self {
        let options = JanusOptions {
            explains: cluster.explains,
            ..JanusOptions::default()
        };
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
            Role::Manager(_) | Role::Client => None,
        }
    }
}

impl HoldsReplica for JanusNode {
    fn view(&self) -> Option<ReplicaView<'_>> {
        let pieces = self.replica()?.pieces();
        Some(ReplicaView {
            is_live: true,
            digest: pieces.digest(),
            rows: pieces.rows(),
        })
    }
}

/// A SLOG cluster.
pub struct SlogSystem {
    shared: Arc<Shared<SlogOptions>>,
    rows: FirstRows,
}

impl SlogSystem {
    /// A cluster that runs `cluster`'s procedures on its rows.
    #[must_use]
    pub fn of(cluster: Cluster, options: SlogOptions) -> Self {
        let (shared, rows) = share(cluster, options);
        Self { shared, rows }
    }
}

impl System for SlogSystem {
    type Core = SlogNode;

    fn start(&mut self, node: NodeId, _life: Life, _disk: Vec<()>) -> SlogNode {
        let role = self.shared.topology.role(node);
        SlogNode::new(node, &self.shared, || first_rows(role, &self.rows))
    }

    fn reply_txn(&self, _request: RequestId, reply: &Answer) -> Option<u64> {
        Some(reply.id.for_traces())
    }
}

impl Candidate for SlogSystem {
    fn build(cluster: Cluster) -> Self {
        let options = SlogOptions {
            explains: cluster.explains,
            ..SlogOptions::default()
        };
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
            Role::Manager(_) => Some("manager"),
            Role::Client => None,
        }
    }
}

impl HoldsReplica for SlogNode {
    fn view(&self) -> Option<ReplicaView<'_>> {
        let pieces = self.replica()?.pieces();
        Some(ReplicaView {
            is_live: true,
            digest: pieces.digest(),
            rows: pieces.rows(),
        })
    }
}

/// A SLOG cluster in which a row is free once the piece that touches it has run.
pub struct SlogByPiece(SlogSystem);

impl System for SlogByPiece {
    type Core = SlogNode;

    fn start(&mut self, node: NodeId, life: Life, disk: Vec<()>) -> SlogNode {
        self.0.start(node, life, disk)
    }

    fn reply_txn(&self, request: RequestId, reply: &Answer) -> Option<u64> {
        self.0.reply_txn(request, reply)
    }
}

impl Candidate for SlogByPiece {
    fn build(cluster: Cluster) -> Self {
        let options = SlogOptions {
            explains: cluster.explains,
            release: Release::Piece,
            ..SlogOptions::default()
        };
        Self(SlogSystem::of(cluster, options))
    }

    fn place(
        &self,
        clients_per_shard: u32,
        lan: Link,
        wan: Link,
    ) -> (manxdb_sim::Topology, Vec<(NodeId, ShardId)>) {
        self.0.place(clients_per_shard, lan, wan)
    }

    fn role(&self, server: NodeId) -> Option<&'static str> {
        self.0.role(server)
    }
}

/// A Detock cluster: SLOG without the global log.
pub struct DetockSystem(SlogSystem);

impl System for DetockSystem {
    type Core = SlogNode;

    fn start(&mut self, node: NodeId, life: Life, disk: Vec<()>) -> SlogNode {
        self.0.start(node, life, disk)
    }

    fn reply_txn(&self, request: RequestId, reply: &Answer) -> Option<u64> {
        self.0.reply_txn(request, reply)
    }
}

impl Candidate for DetockSystem {
    fn build(cluster: Cluster) -> Self {
        let options = SlogOptions {
            explains: cluster.explains,
            crossing: Crossing::Graph,
            ..SlogOptions::default()
        };
        Self(SlogSystem::of(cluster, options))
    }

    fn place(
        &self,
        clients_per_shard: u32,
        lan: Link,
        wan: Link,
    ) -> (manxdb_sim::Topology, Vec<(NodeId, ShardId)>) {
        self.0.place(clients_per_shard, lan, wan)
    }

    fn role(&self, server: NodeId) -> Option<&'static str> {
        self.0.role(server)
    }
}

/// A TAPIR cluster.
pub struct TapirSystem {
    shared: Arc<Shared<TapirOptions>>,
    rows: FirstRows,
}

impl TapirSystem {
    /// A cluster that runs `cluster`'s procedures on its rows.
    #[must_use]
    pub fn of(cluster: Cluster, options: TapirOptions) -> Self {
        let (shared, rows) = share(cluster, options);
        Self { shared, rows }
    }
}

impl System for TapirSystem {
    type Core = TapirNode;

    fn start(&mut self, node: NodeId, _life: Life, _disk: Vec<()>) -> TapirNode {
        let role = self.shared.topology.role(node);
        TapirNode::new(node, &self.shared, || first_rows(role, &self.rows))
    }

    fn reply_txn(&self, _request: RequestId, reply: &Answer) -> Option<u64> {
        Some(reply.id.for_traces())
    }
}

impl Candidate for TapirSystem {
    fn build(cluster: Cluster) -> Self {
        let options = TapirOptions {
            explains: cluster.explains,
            seed: cluster.seed,
            ..TapirOptions::default()
        };
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
            Role::Manager(_) | Role::Client => None,
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
