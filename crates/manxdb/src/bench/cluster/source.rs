//! What clients ask.

use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_txn::procedure::ShardId;
use manxdb_workloads::append::{self, Form, Kind, List, Operation};
use manxdb_workloads::{Partition, Request, Zipf, payment, tpca, tpcc};

use super::World;

/// The calls of every client.
pub enum Source {
    /// Lists.
    Append(Vec<append::Generator>),
    /// Increments.
    Tpca(Vec<tpca::Generator>),
    /// TPC-C.
    Tpcc(Vec<tpcc::Generator>),
    /// Payments alone.
    Payment(Vec<payment::Generator>),
}

impl Source {
    /// Lists.
    pub fn append(world: &World<'_>, settings: append::Settings) -> Self {
        let generator = |(node, home): &(NodeId, ShardId)| {
            // The number makes elements different from those of every other run.
            append::Generator::new(world.topology, settings, node.0, *home, world.seed)
        };
        Self::Append(world.clients.iter().map(generator).collect())
    }

    /// Increments, with keys of this exponent.
    pub fn tpca(world: &World<'_>, theta: f64, share: f64) -> Self {
        let zipf = Arc::new(Zipf::new(tpca::KEYS, theta, world.topology.shards()));
        let generator = |(place, (_, home)): (u32, &(NodeId, ShardId))| {
            let zipf = Arc::clone(&zipf);
            tpca::Generator::new(world.topology, zipf, share, place, *home, world.seed)
        };
        Self::Tpca((0..).zip(world.clients).map(generator).collect())
    }

    /// The five transactions of TPC-C.
    pub fn tpcc(world: &World<'_>, parameters: tpcc::Parameters) -> Self {
        let generator = |(node, home): &(NodeId, ShardId)| {
            let scale = world.tpcc_scale;
            // The number makes history rows different from those of every other run.
            tpcc::Generator::new(world.topology, scale, parameters, node.0, *home, world.seed)
        };
        Self::Tpcc(world.clients.iter().map(generator).collect())
    }

    /// Payments alone, this share of them by customers of other regions.
    pub fn payment(world: &World<'_>, share: f64) -> Self {
        let generator = |(node, home): &(NodeId, ShardId)| {
            let scale = world.tpcc_scale;
            payment::Generator::new(world.topology, scale, share, node.0, *home, world.seed)
        };
        Self::Payment(world.clients.iter().map(generator).collect())
    }

    /// The next call of the client at a place in the list of clients; `date` is on what it makes.
    pub fn next(&mut self, place: usize, date: u64) -> Option<Request> {
        Some(match self {
            Self::Append(generators) => generators.get_mut(place)?.next_request(),
            Self::Tpca(generators) => generators.get_mut(place)?.next_request(),
            Self::Payment(generators) => generators.get_mut(place)?.next_request(date),
            Self::Tpcc(generators) => generators.get_mut(place)?.next_request(date),
        })
    }
}

/// The arguments of a call that reads all lists of a shard.
pub fn read_lists(shard: ShardId, lists: u32) -> Vec<u8> {
    let read = |row| Operation {
        list: List {
            partition: Partition(shard.0),
            row,
        },
        kind: Kind::Read,
    };
    let operations: Vec<Operation> = (0..lists).map(read).collect();
    append::encode(Form::Together, &operations)
}
