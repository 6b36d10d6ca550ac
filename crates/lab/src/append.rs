//! List-append: a workload whose reads tell the order of everything, and the history it leaves.

use std::sync::Arc;

use manxdb_checker::append::{self, History};
use manxdb_core::Random;
use manxdb_dast::{Ask, Level, Options, Shared};
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_workloads::Topology;
use manxdb_workloads::append::{Append, Generator as Lists, Seen, Settings, transaction};

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
    fn next(&mut self, client: u32, home: ShardId, _random: &mut Random) -> Option<Job> {
        let place = client as usize;
        if self.clients.len() <= place {
            self.clients.resize(place + 1, None);
        }
        let (topology, settings, seed) = (self.topology, self.settings, self.seed);
        // Elements must not meet those of other clients: numbers from 1.
        let fresh = || Lists::new(topology, settings, client + 1, home, seed);
        let request = self.clients[place].get_or_insert_with(fresh).next_request();
        Some(Job {
            crosses_regions: !request.reach.is_local(),
            ask: Ask {
                procedure: request.procedure.into(),
                args: request.args,
                level: self.level,
                home,
            },
        })
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

/// What a history of calls of a level is judged by.
#[must_use]
pub const fn promise(level: Level) -> append::Level {
    match level {
        Level::Serializable => append::Level::Serializable,
        Level::Session => append::Level::Session,
        Level::Strict => append::Level::Strict,
    }
}

/// The history that clients saw.
///
/// # Errors
/// A call whose arguments or answer are not this workload's, and why.
pub fn history(made: &[Made]) -> Result<History, String> {
    let transactions = (0..).zip(made).map(|(name, made)| {
        let (at, given) = match &made.answered {
            Some((at, answer)) => (Some(at.0), answer.given.as_deref().ok()),
            None => (None, None),
        };
        let seen = Seen {
            name,
            session: made.client.0.into(),
            args: &made.job.ask.args,
            asked: made.asked.0,
            answered: at,
            given,
        };
        transaction(seen).map_err(|error| format!("call {name}: {error}"))
    });
    Ok(History {
        transactions: transactions.collect::<Result<_, _>>()?,
        end_state: None,
    })
}
