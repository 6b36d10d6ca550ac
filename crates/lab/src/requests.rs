//! What clients ask, whatever system answers.

use std::sync::Arc;

use manxdb_txn::procedure::ShardId;
use manxdb_workloads::tpcc::{Parameters, Scale};
use manxdb_workloads::{Request, Topology, Zipf, payment, tpca, tpcc};

/// Which transactions.
#[derive(Debug, Clone)]
pub enum Source {
    /// TPC-C: all five.
    Tpcc(Parameters),
    /// TPC-C's payments alone, with this share of customers in other regions.
    Payment {
        /// From 0 to 1.
        cross_region: f64,
    },
    /// TPC-A: three increments.
    Tpca {
        /// Of keys, over all shards.
        zipf: Arc<Zipf>,
        /// Share of transactions that leave their region, from 0 to 1.
        cross_region: f64,
    },
}

#[derive(Clone)]
enum Client {
    Tpcc(tpcc::Generator),
    Payment(payment::Generator),
    Tpca(tpca::Generator),
}

/// The requests of every client of a cluster, each in its own stream of random numbers.
pub struct Requests {
    clients: Vec<Option<Client>>,
    topology: Topology,
    scale: Scale,
    source: Source,
    seed: u64,
    asked: u64,
}

impl Requests {
    /// Clients of a cluster of this shape, with warehouses of this size.
    #[must_use]
    pub fn new(topology: Topology, scale: Scale, source: Source, seed: u64) -> Self {
        Self {
            clients: Vec::new(),
            topology,
            scale,
            source,
            seed,
            asked: 0,
        }
    }

    fn make_client(&self, client: u32, home: ShardId) -> Client {
        let (topology, scale, seed) = (self.topology, self.scale, self.seed);
        match &self.source {
            Source::Tpcc(parameters) => Client::Tpcc(tpcc::Generator::new(
                topology,
                scale,
                *parameters,
                client,
                home,
                seed,
            )),
            Source::Payment { cross_region } => Client::Payment(payment::Generator::new(
                topology,
                scale,
                *cross_region,
                client,
                home,
                seed,
            )),
            Source::Tpca { zipf, cross_region } => Client::Tpca(tpca::Generator::new(
                topology,
                Arc::clone(zipf),
                *cross_region,
                client,
                home,
                seed,
            )),
        }
    }

    /// The next request of a client, counted from 0, of a home shard.
    pub fn next(&mut self, client: u32, home: ShardId) -> Request {
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
            Client::Tpca(generator) => generator.next_request(),
        };
        self.clients[place] = found;
        request
    }
}
