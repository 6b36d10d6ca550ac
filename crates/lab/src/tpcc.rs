//! TPC-C, and its payments alone, as workloads of a cluster.

use std::sync::Arc;

use manxdb_core::Random;
use manxdb_dast::{Ask, Level, Options, Shared};
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_txn::rows::Rows;
use manxdb_workloads::tpcc::{Parameters, Scale, Template, Warehouses, procedures};
use manxdb_workloads::{Request, Topology, payment, tpcc};

use crate::dast::DastSystem;
use crate::load::{Generator, Job};

/// Which transactions.
#[derive(Debug, Clone, Copy)]
pub enum Mix {
    /// All five.
    Tpcc(Parameters),
    /// Payments, with this share of customers in other regions.
    Payment {
        /// From 0 to 1.
        cross_region: f64,
    },
}

#[derive(Clone)]
enum Client {
    Tpcc(tpcc::Generator),
    Payment(payment::Generator),
}

/// What every client of a cluster asks, each in its own stream.
pub struct TpccLoad {
    clients: Vec<Option<Client>>,
    topology: Topology,
    scale: Scale,
    mix: Mix,
    seed: u64,
    asked: u64,
}

impl TpccLoad {
    /// Clients of a cluster of this shape.
    #[must_use]
    pub fn new(topology: Topology, scale: Scale, mix: Mix, seed: u64) -> Self {
        Self {
            clients: Vec::new(),
            topology,
            scale,
            mix,
            seed,
            asked: 0,
        }
    }

    fn make_client(&self, client: u32, home: ShardId) -> Client {
        let (topology, scale, seed) = (self.topology, self.scale, self.seed);
        match self.mix {
            Mix::Tpcc(parameters) => Client::Tpcc(tpcc::Generator::new(
                topology, scale, parameters, client, home, seed,
            )),
            Mix::Payment { cross_region } => Client::Payment(payment::Generator::new(
                topology,
                scale,
                cross_region,
                client,
                home,
                seed,
            )),
        }
    }

    fn next_request(&mut self, client: u32, home: ShardId) -> Request {
        let place = client as usize;
        if self.clients.len() <= place {
            self.clients.resize(place + 1, None);
        }
        self.asked += 1;
        // Dates need only differ.
        let date = self.asked;
        let mut found = self.clients[place].take();
        let known = found.get_or_insert_with(|| self.make_client(client, home));
        let request = match known {
            Client::Tpcc(generator) => generator.next_request(date),
            Client::Payment(generator) => generator.next_request(date),
        };
        self.clients[place] = found;
        request
    }
}

impl Generator for TpccLoad {
    fn next(&mut self, client: u32, home: ShardId, _random: &mut Random) -> Job {
        let request = self.next_request(client, home);
        Job {
            crosses_regions: !request.reach.is_local(),
            ask: Ask {
                procedure: request.procedure.into(),
                args: request.args,
                level: Level::Serializable,
                home,
            },
        }
    }
}

/// A cluster with one warehouse on each shard.
#[must_use]
pub fn system(topology: Topology, scale: Scale, options: Options) -> DastSystem {
    let known = Registry::default();
    for procedure in procedures() {
        known.register(procedure);
    }
    let shared = Shared {
        topology: manxdb_dast::Topology {
            regions: topology.regions,
            shards_per_region: topology.shards_per_region,
        },
        options,
        procedures: Arc::new(known),
        placement: Arc::new(topology),
    };
    let template = Arc::new(Template::new(scale, 1));
    let count = topology.shards();
    DastSystem::with_rows(shared, move |shard| {
        let template = Arc::clone(&template);
        Rows::new(Arc::new(Warehouses::of_shard(
            template, topology, count, shard,
        )))
    })
}
