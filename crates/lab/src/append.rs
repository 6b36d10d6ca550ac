//! List-append: a workload whose reads tell the order of everything, and the history it leaves.

use std::sync::Arc;

use manxdb_checker::append::{History, Outcome, Transaction};
use manxdb_core::Random;
use manxdb_dast::{Ask, Level, Options, Shared};
use manxdb_txn::procedure::{Registry, ShardId, Slot, Values};
use manxdb_workloads::Topology;
use manxdb_workloads::append::{Append, Generator as Lists, Settings, observe, sent};

use crate::load::{Generator, Job, Made};

/// What every client of a cluster asks, each in its own stream.
pub struct AppendLoad {
    clients: Vec<Option<Lists>>,
    topology: Topology,
    settings: Settings,
    level: Level,
    seed: u64,
}

impl AppendLoad {
    /// Clients of a cluster of this shape.
    #[must_use]
    pub fn new(topology: Topology, settings: Settings, level: Level, seed: u64) -> Self {
        Self {
            clients: Vec::new(),
            topology,
            settings,
            level,
            seed,
        }
    }
}

impl Generator for AppendLoad {
    fn next(&mut self, client: u32, home: ShardId, _random: &mut Random) -> Job {
        let place = client as usize;
        if self.clients.len() <= place {
            self.clients.resize(place + 1, None);
        }
        let (topology, settings, seed) = (self.topology, self.settings, self.seed);
        // Elements must not meet those of other clients: numbers from 1.
        let fresh = || Lists::new(topology, settings, client + 1, home, seed);
        let request = self.clients[place].get_or_insert_with(fresh).next_request();
        Job {
            crosses_regions: !request.reach.is_local(),
            ask: Ask {
                procedure: request.procedure.into(),
                args: request.args,
                level: self.level,
                home,
            },
        }
    }
}

/// What the nodes of a cluster under this workload are given.
#[must_use]
pub fn shared(topology: Topology, options: Options) -> Shared {
    let procedures = Registry::default();
    procedures.register(Arc::new(Append));
    Shared {
        topology: manxdb_dast::Topology {
            regions: topology.regions,
            shards_per_region: topology.shards_per_region,
        },
        options,
        procedures: Arc::new(procedures),
        placement: Arc::new(topology),
    }
}

/// The history that clients saw.
#[must_use]
pub fn history(made: &[Made]) -> History {
    let transactions = made
        .iter()
        .enumerate()
        .map(|(place, made)| transaction(place, made));
    History {
        transactions: transactions.collect(),
        end_state: None,
    }
}

fn transaction(place: usize, made: &Made) -> Transaction {
    let args = &made.job.ask.args;
    let (outcome, completed, observed) = match &made.answered {
        Some((at, answer)) => match &answer.given {
            Ok(given) => {
                let values: Values = given
                    .iter()
                    .map(|(slot, value)| (Slot(*slot), value.clone()))
                    .collect();
                (Outcome::Ok, at.0, observe(args, &values))
            }
            Err(_) => (Outcome::Failed, at.0, sent(args)),
        },
        None => (Outcome::Unknown, u64::MAX, sent(args)),
    };
    Transaction {
        name: place as u64,
        session: made.client.0.into(),
        invoked: made.asked.0,
        completed,
        outcome,
        operations: observed.unwrap_or_default(),
    }
}
