//! TPC-C, and its payments alone, as workloads of a cluster.

use std::sync::Arc;

use manxdb_core::Random;
use manxdb_dast::Options;
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_txn::rows::Rows;
use manxdb_workloads::tpcc::{Parameters, Scale, Template, Warehouses, procedures};
use manxdb_workloads::{Topology, Workload};

use crate::candidate::Cluster;
use crate::dast::{DastSystem, ask};
use crate::load::{Generator, Job};
use crate::requests::Requests;

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

/// What every client of a cluster asks, each in its own stream.
pub struct TpccLoad {
    requests: Requests,
}

impl TpccLoad {
    /// Clients of a cluster of this shape.
    #[must_use]
    pub fn new(topology: Topology, scale: Scale, mix: Mix, seed: u64) -> Self {
        let workload = match mix {
            Mix::Tpcc(parameters) => Workload::Tpcc(parameters),
            Mix::Payment { cross_region } => Workload::Payment { cross_region },
        };
        Self {
            requests: Requests::new(topology, scale, workload, seed),
        }
    }
}

impl Generator for TpccLoad {
    fn next(&mut self, client: u32, home: ShardId, _random: &mut Random) -> Option<Job> {
        let request = self.requests.next(client, home);
        Some(Job {
            crosses_regions: !request.reach.is_local(),
            ask: ask(request, home),
        })
    }
}

/// A cluster with one warehouse on each shard.
#[must_use]
pub fn cluster(topology: Topology, template: Arc<Template>) -> Cluster {
    let known = Registry::default();
    for procedure in procedures() {
        known.register(procedure);
    }
    let count = topology.shards();
    Cluster {
        topology,
        procedures: Arc::new(known),
        rows: Box::new(move |shard| {
            let template = Arc::clone(&template);
            Rows::new(Arc::new(Warehouses::of_shard(
                template, topology, count, shard,
            )))
        }),
        round_trip: None,
        explains: false,
        keeps_order: false,
        seed: 0,
        crossing: manxdb_dast::Crossing::Anticipated,
        survive: manxdb_dast::Survive::Zone,
        lead: None,
    }
}

/// The same under DAST.
#[must_use]
pub fn system(topology: Topology, scale: Scale, options: Options) -> DastSystem {
    let cluster = cluster(topology, Arc::new(Template::new(scale, 1)));
    DastSystem::of(cluster, options)
}
