//! A one-shot workload by name, with everything that a driver needs of it.

use std::sync::Arc;

use manxdb_txn::procedure::{Procedure, ShardId};

use crate::{Request, Topology, Zipf, append, payment, tpca, tpcc};

/// One-shot transactions of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Workload {
    /// Lists that are read and appended to.
    Append(append::Settings),
    /// Increments.
    Tpca {
        /// Share of transactions that touch several regions, from 0 to 1.
        cross_region: f64,
        /// Exponent of the Zipf distribution of keys, from 0 to below 1.
        theta: f64,
    },
    /// The five transactions of TPC-C.
    Tpcc(tpcc::Parameters),
    /// TPC-C's Payment alone.
    Payment {
        /// Share of transactions that touch several regions, from 0 to 1.
        cross_region: f64,
    },
}

impl Workload {
    /// Its name on command lines and in results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Append(_) => "append",
            Self::Tpca { .. } => "tpca",
            Self::Tpcc(_) => "tpcc",
            Self::Payment { .. } => "payment",
        }
    }

    /// Whether its rows at the start are the warehouses of TPC-C; else there are none.
    #[must_use]
    pub fn has_warehouses(&self) -> bool {
        matches!(self, Self::Tpcc(_) | Self::Payment { .. })
    }
}

/// The procedures of all one-shot workloads.
#[must_use]
pub fn procedures() -> Vec<Arc<dyn Procedure>> {
    let mut all: Vec<Arc<dyn Procedure>> = vec![
        Arc::new(append::Append),
        Arc::new(tpca::Increment),
        Arc::new(tpca::Totals),
    ];
    all.extend(tpcc::procedures());
    all
}

#[derive(Debug, Clone)]
enum Client {
    Append(append::Generator),
    Tpca(tpca::Generator),
    Tpcc(tpcc::Generator),
    Payment(payment::Generator),
}

/// The calls of all clients of a cluster, each in a stream of its own.
#[derive(Debug, Clone)]
pub struct Calls {
    workload: Workload,
    topology: Topology,
    scale: tpcc::Scale,
    seed: u64,
    /// Of TPC-A's keys.
    zipf: Option<Arc<Zipf>>,
    sums: tpcc::PaymentSums,
    clients: Vec<Option<Client>>,
}

impl Calls {
    /// In a cluster of this shape; `scale` is that of the warehouses, if there are any.
    #[must_use]
    pub fn new(workload: Workload, topology: Topology, scale: tpcc::Scale, seed: u64) -> Self {
        let zipf = match workload {
            Workload::Tpca { theta, .. } => {
                Some(Arc::new(Zipf::new(tpca::KEYS, theta, topology.shards())))
            }
            _ => None,
        };
        Self {
            workload,
            topology,
            scale,
            seed,
            zipf,
            sums: tpcc::PaymentSums::default(),
            clients: Vec::new(),
        }
    }

    /// The same with payments that add to these sums.
    #[must_use]
    pub fn paying_into(mut self, sums: tpcc::PaymentSums) -> Self {
        self.sums = sums;
        self
    }

    /// The next call of the client at a place in the list of clients; `date`, not 0, is on what it
    /// makes. `number`, unlike that of every other client, and `home` stay the same for a place.
    pub fn next(&mut self, place: usize, number: u32, home: ShardId, date: u64) -> Request {
        if self.clients.len() <= place {
            self.clients.resize(place + 1, None);
        }
        let mut known = self.clients[place].take();
        let client = known.get_or_insert_with(|| self.client(number, home));
        let request = match client {
            Client::Append(generator) => generator.next_request(),
            Client::Tpca(generator) => generator.next_request(),
            Client::Tpcc(generator) => generator.next_request(date),
            Client::Payment(generator) => generator.next_request(date),
        };
        self.clients[place] = known;
        request
    }

    fn client(&self, number: u32, home: ShardId) -> Client {
        let (topology, scale, seed) = (self.topology, self.scale, self.seed);
        match self.workload {
            Workload::Append(settings) => Client::Append(append::Generator::new(
                topology, settings, number, home, seed,
            )),
            Workload::Tpca {
                cross_region,
                theta,
            } => {
                let fresh = || Arc::new(Zipf::new(tpca::KEYS, theta, topology.shards()));
                let zipf = self.zipf.clone().unwrap_or_else(fresh);
                Client::Tpca(tpca::Generator::new(
                    topology,
                    zipf,
                    cross_region,
                    number,
                    home,
                    seed,
                ))
            }
            Workload::Tpcc(parameters) => {
                let client = tpcc::Generator::new(topology, scale, parameters, number, home, seed);
                Client::Tpcc(client.paying_into(self.sums))
            }
            Workload::Payment { cross_region } => {
                let client =
                    payment::Generator::new(topology, scale, cross_region, number, home, seed);
                Client::Payment(client.paying_into(self.sums))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPOLOGY: Topology = Topology {
        regions: 2,
        shards_per_region: 2,
    };

    #[test]
    fn every_workload_asks_what_its_procedures_know() {
        let workloads = [
            Workload::Append(append::Settings::default()),
            Workload::Tpca {
                cross_region: 0.1,
                theta: 0.5,
            },
            Workload::Tpcc(tpcc::Parameters::as_published()),
            Workload::Payment { cross_region: 0.1 },
        ];
        let known = procedures();
        for workload in workloads {
            let homes = [ShardId(0), ShardId(3)];
            let mut calls = Calls::new(workload, TOPOLOGY, tpcc::Scale::tiny(), 1);
            for date in 1..50 {
                let place = usize::from(date % 2 == 0);
                let number = 7 + u32::from(place == 1);
                let request = calls.next(place, number, homes[place], date);
                let procedure = known.iter().find(|it| it.name() == request.procedure);
                let pieces = procedure.unwrap().plan(&request.args, &TOPOLOGY).unwrap();
                let shards: Vec<ShardId> = pieces.iter().map(|piece| piece.shard).collect();
                assert_eq!(TOPOLOGY.reach(shards), request.reach, "{}", workload.name());
            }
        }
    }
}
