//! A system as experiments see it: what it is given, where its nodes are, what is seen of its replicas.

use std::sync::Arc;

use manxdb_common::{Answer, Ask};
use manxdb_core::channel::{ChannelOptions, Life, Reliable};
use manxdb_core::{Core, Nanos, NodeId, RequestId};
use manxdb_dast::{Crossing, Survive};
use manxdb_sim::{Link, System};
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_txn::rows::Rows;
use manxdb_workloads::Topology;

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
