//! A DAST cluster in the simulator.

use std::sync::Arc;

use manxdb_core::channel::Life;
use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_dast::{Answer, Ask, DastNode, Level, Options, Role, Shared, Topology};
use manxdb_sim::{Link, RegionId, System};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::{NoRows, Rows};
use manxdb_workloads::Request;

use crate::candidate::{Candidate, Cluster, FirstRows, HoldsReplica, ReplicaView};

/// The nodes of a cluster.
pub struct DastSystem {
    shared: Shared,
    rows: FirstRows,
}

impl DastSystem {
    /// A cluster whose replicas begin with empty rows.
    #[must_use]
    pub fn new(shared: Shared) -> Self {
        Self::with_rows(shared, |_| Rows::new(Arc::new(NoRows)))
    }

    /// A cluster whose replicas begin with the rows of their shard.
    #[must_use]
    pub fn with_rows(shared: Shared, rows: impl Fn(ShardId) -> Rows + 'static) -> Self {
        Self {
            shared,
            rows: Box::new(rows),
        }
    }

    /// A cluster that runs `cluster`'s procedures on its rows.
    #[must_use]
    pub fn of(cluster: Cluster, options: Options) -> Self {
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
            shared,
            rows: cluster.rows,
        }
    }

    /// What its nodes are given.
    #[must_use]
    pub fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl System for DastSystem {
    type Core = DastNode;

    fn start(&mut self, node: NodeId, life: Life, _disk: Vec<()>) -> DastNode {
        let rows = || match self.shared.topology.role(node) {
            Role::Replica(shard) => (self.rows)(shard),
            Role::Manager(_) | Role::Client => Rows::new(Arc::new(NoRows)),
        };
        DastNode::new(node, life.0, &self.shared, rows)
    }

    fn reply_txn(&self, _request: RequestId, reply: &Answer) -> Option<u64> {
        Some(reply.id.for_traces())
    }
}

impl Candidate for DastSystem {
    fn build(cluster: Cluster) -> Self {
        let options = cluster.round_trip.map(Options::of_distance);
        let options = options.unwrap_or_default();
        let options = Options {
            crossing: cluster.crossing,
            survive: cluster.survive,
            first_lead: cluster.lead.unwrap_or(options.first_lead),
            keeps_order: cluster.keeps_order,
            explains: cluster.explains,
            ..options
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

impl HoldsReplica for DastNode {
    fn view(&self) -> Option<ReplicaView<'_>> {
        let replica = self.replica()?;
        Some(ReplicaView {
            is_live: replica.is_live(),
            digest: replica.execution().digest(),
            rows: replica.execution().rows(),
        })
    }
}

/// A request as a call, serializable.
#[must_use]
pub fn ask(request: Request, home: ShardId) -> Ask {
    Ask {
        procedure: request.procedure.into(),
        args: request.args,
        level: Level::Serializable,
        home,
    }
}

/// Where the nodes of a cluster and its clients are: `clients_per_shard` clients in the region of
/// each shard. The clients, each with its home shard.
#[must_use]
pub fn place(
    topology: Topology,
    clients_per_shard: u32,
    lan: Link,
    wan: Link,
) -> (manxdb_sim::Topology, Vec<(NodeId, ShardId)>) {
    let region = |region: manxdb_dast::RegionId| RegionId(u16::try_from(region.0).unwrap_or(0));
    let mut regions = Vec::new();
    for node in (0..topology.servers()).map(NodeId) {
        let of_node = match topology.role(node) {
            Role::Replica(shard) => topology.region_of(shard),
            Role::Manager(region) => region,
            Role::Client => manxdb_dast::RegionId(0),
        };
        regions.push(region(of_node));
    }
    let mut clients = Vec::new();
    for shard in (0..topology.shards()).map(ShardId) {
        for _ in 0..clients_per_shard {
            clients.push((
                NodeId(u32::try_from(regions.len()).unwrap_or(u32::MAX)),
                shard,
            ));
            regions.push(region(topology.region_of(shard)));
        }
    }
    (manxdb_sim::Topology::new(regions, lan, wan), clients)
}

/// The distances of the paper's experiments: 5 ms and 100 ms there and back.
#[must_use]
pub fn paper_links() -> (Link, Link) {
    let lan = Link::after(Nanos::from_micros(2_500));
    let wan = Link::after(Nanos::from_millis(50));
    (lan, wan)
}
