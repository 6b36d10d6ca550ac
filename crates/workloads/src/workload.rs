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
    clients: Vec<Client>,
}

impl Calls {
    /// Of clients with a number, unlike every other's, and a home shard. `scale` is that of the
    /// warehouses, if there are any.
    #[must_use]
    pub fn new(
        workload: Workload,
        topology: Topology,
        scale: tpcc::Scale,
        clients: impl IntoIterator<Item = (u32, ShardId)>,
        seed: u64,
    ) -> Self {
        let clients = clients.into_iter();
        let clients = match workload {
            Workload::Append(settings) => {
                let generator =
                    |(number, home)| append::Generator::new(topology, settings, number, home, seed);
                clients.map(generator).map(Client::Append).collect()
            }
            Workload::Tpca {
                cross_region,
                theta,
            } => {
                let zipf = Arc::new(Zipf::new(tpca::KEYS, theta, topology.shards()));
                let generator = |(number, home)| {
                    let zipf = Arc::clone(&zipf);
                    tpca::Generator::new(topology, zipf, cross_region, number, home, seed)
                };
                clients.map(generator).map(Client::Tpca).collect()
            }
            Workload::Tpcc(parameters) => {
                let generator = |(number, home)| {
                    tpcc::Generator::new(topology, scale, parameters, number, home, seed)
                };
                clients.map(generator).map(Client::Tpcc).collect()
            }
            Workload::Payment { cross_region } => {
                let generator = |(number, home)| {
                    payment::Generator::new(topology, scale, cross_region, number, home, seed)
                };
                clients.map(generator).map(Client::Payment).collect()
            }
        };
        Self { clients }
    }

    /// The next call of the client at a place in the list of clients; `date`, not 0, is on what it
    /// makes. None: there is no such client.
    pub fn next(&mut self, place: usize, date: u64) -> Option<Request> {
        Some(match self.clients.get_mut(place)? {
            Client::Append(generator) => generator.next_request(),
            Client::Tpca(generator) => generator.next_request(),
            Client::Tpcc(generator) => generator.next_request(date),
            Client::Payment(generator) => generator.next_request(date),
        })
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
            let clients = [(7, ShardId(0)), (8, ShardId(3))];
            let scale = tpcc::Scale::tiny();
            let mut calls = Calls::new(workload, TOPOLOGY, scale, clients, 1);
            for date in 1..50 {
                let place = usize::from(date % 2 == 0);
                let request = calls.next(place, date).unwrap();
                let procedure = known.iter().find(|it| it.name() == request.procedure);
                let pieces = procedure.unwrap().plan(&request.args, &TOPOLOGY).unwrap();
                let shards: Vec<ShardId> = pieces.iter().map(|piece| piece.shard).collect();
                assert_eq!(TOPOLOGY.reach(shards), request.reach, "{}", workload.name());
            }
            assert!(calls.next(2, 1).is_none());
        }
    }
}
