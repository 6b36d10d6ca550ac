//! Builds a cluster, puts it under load and counts.

use std::sync::{Arc, OnceLock};

use manxdb_core::{Nanos, NodeId};
use manxdb_sim::{CostModel, SimTime, World, WorldOptions};
use manxdb_txn::procedure::Registry;
use manxdb_txn::rows::{NoRows, Rows};
use manxdb_workloads::tpcc::{Parameters, Scale, Template};
use manxdb_workloads::{append, tpca};

use super::clients::Clients;
use super::outcome::{millis, round};
use super::{Cpu, Spread, Trial, TrialOutcome, Warehouse, Workload};
use crate::candidate::{Candidate, Cluster};
use crate::dast::paper_links;
use crate::requests::Requests;
use crate::tpcc;
use crate::trial_error::{TrialError, check_cores};

/// Virtual time between two words to who waits.
const SLICE: Nanos = Nanos::from_millis(20);

/// Seed of the rows: the same in all trials.
const ROWS_SEED: u64 = 1;

/// A full warehouse is 30 MB and takes a while to fill: trials share it.
static FULL_WAREHOUSE: OnceLock<Arc<Template>> = OnceLock::new();

fn scale(warehouse: Warehouse) -> Scale {
    match warehouse {
        Warehouse::Tiny => Scale::tiny(),
        Warehouse::Full => Scale::full(),
    }
}

fn template(warehouse: Warehouse) -> Arc<Template> {
    let fill = || Arc::new(Template::new(scale(warehouse), ROWS_SEED));
    match warehouse {
        Warehouse::Tiny => fill(),
        Warehouse::Full => Arc::clone(FULL_WAREHOUSE.get_or_init(fill)),
    }
}

fn cluster(trial: &Trial) -> Cluster {
    match trial.workload {
        Workload::Tpcc | Workload::Payment { .. } => {
            tpcc::cluster(trial.topology(), template(trial.warehouse))
        }
        Workload::Tpca { .. } | Workload::Append { .. } => {
            let known = Registry::default();
            known.register(Arc::new(tpca::Increment));
            known.register(Arc::new(append::Append));
            Cluster {
                topology: trial.topology(),
                procedures: Arc::new(known),
                rows: Box::new(|_| Rows::new(Arc::new(NoRows))),
                round_trip: None,
                explains: false,
                keeps_order: false,
                seed: 0,
                crossing: manxdb_dast::Crossing::Anticipated,
                survive: manxdb_dast::Survive::Zone,
                lead: None,
            }
        }
    }
}

fn workload(trial: &Trial) -> manxdb_workloads::Workload {
    use manxdb_workloads::Workload as Asked;
    match trial.workload {
        Workload::Tpcc => Asked::Tpcc(Parameters::as_published()),
        Workload::Payment { cross_region } => Asked::Payment { cross_region },
        Workload::Tpca { alpha } => Asked::Tpca {
            cross_region: 0.1,
            theta: alpha,
        },
        Workload::Append { lists } => Asked::Append(append::Settings {
            lists_per_shard: lists,
            cross_region: 0.1,
            deferred: 0.2,
            ..append::Settings::default()
        }),
    }
}

fn world<S: Candidate>(trial: &Trial) -> (World<S>, Clients, Vec<NodeId>) {
    let system = S::build(Cluster {
        crossing: trial.system.crossing(),
        seed: trial.seed,
        ..cluster(trial)
    });
    let (lan, wan) = paper_links();
    let jitter = Nanos::from_millis(trial.wan_jitter_ms.into());
    let (places, clients) = system.place(trial.clients_per_shard, lan, wan.with_jitter(jitter));
    let first = clients.first().map_or(NodeId(u32::MAX), |client| client.0);
    let servers = places.node_ids().take_while(|node| *node < first);
    // Nodes that a system does not use would make the others look less busy.
    let servers = servers
        .filter(|node| system.role(*node).is_some())
        .collect();
    let mut options = WorldOptions::new(trial.seed, places);
    // Looked at after each slice ([`is_looked_at`]).
    options.check = false;
    if trial.cpu == Cpu::Modelled {
        options.cost = CostModel::default();
    }
    let mut world = World::new(system, options);
    for (client, _) in &clients {
        world.make_cpu_free(*client);
    }
    let (topology, scale) = (trial.topology(), scale(trial.warehouse));
    let requests = Requests::new(topology, scale, workload(trial), trial.seed);
    let requests = requests.paying_into(trial.payment_sums);
    let from = SimTime::from_millis(trial.warm_up_ms);
    let clients = Clients::new(requests, clients, trial.outstanding, from);
    (world, clients, servers)
}

/// Whether invariants are checked, which experiments at their full size have no time for.
fn is_looked_at(trial: &Trial) -> bool {
    trial.warehouse == Warehouse::Tiny
}

/// Runs a trial on a system.
pub(crate) fn measure<S: Candidate>(
    trial: &Trial,
    progress: &mut dyn FnMut(f64),
) -> Result<TrialOutcome, TrialError> {
    let (mut world, mut clients, servers) = world::<S>(trial);
    let from = SimTime::from_millis(trial.warm_up_ms);
    let until = from + Nanos::from_millis(trial.measured_ms);
    let busy = |world: &World<S>| -> Vec<Nanos> {
        servers.iter().map(|node| world.cpu_busy(*node)).collect()
    };
    let mut before = vec![Nanos::ZERO; servers.len()];
    while world.now() < until {
        let next = (world.now() + SLICE).min(if world.now() < from { from } else { until });
        let ran = world.run_until(&mut clients, next);
        ran.map_err(|failure| TrialError::Broken(failure.to_string()))?;
        if is_looked_at(trial) {
            check_cores(&world)?;
        }
        if next == from {
            before = busy(&world);
        }
        #[allow(clippy::cast_precision_loss)] // a share, for people
        progress(next.0 as f64 / until.0.max(1) as f64);
    }
    let worked = busy(&world);
    let worked = worked
        .iter()
        .zip(before)
        .map(|(after, before)| *after - before);
    let worked: Vec<f64> = worked.map(Nanos::as_millis_f64).collect();
    let mut outcome = outcome(trial, &world, clients, &worked);
    let busiest = worked
        .iter()
        .enumerate()
        .max_by(|one, other| one.1.total_cmp(other.1));
    let busiest = busiest.and_then(|(place, _)| servers.get(place));
    let role = busiest.and_then(|node| world.system().role(*node));
    outcome.busiest_role = role.unwrap_or_default().into();
    Ok(outcome)
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn outcome<S: Candidate>(
    trial: &Trial,
    world: &World<S>,
    mut clients: Clients,
    worked_ms: &[f64],
) -> TrialOutcome {
    let span_ms = trial.measured_ms.max(1) as f64;
    let oldest = clients.oldest().map(|asked| world.now().since(asked));
    let left_out = clients.left_out_ms(world.now());
    let measured = &mut clients.measured;
    let answered = measured.answered.max(1) as f64;
    let sent = world.counters().sent_in_all();
    let given_up = measured.local_given_up + measured.cross_region_given_up;
    let count = (measured.local.len() + measured.cross_region.len()) as u64 - given_up;
    let busiest = worked_ms.iter().copied().fold(0.0, f64::max);
    let mean = worked_ms.iter().sum::<f64>() / worked_ms.len().max(1) as f64;
    TrialOutcome {
        throughput: round(count as f64 * 1_000.0 / span_ms, 1),
        local: Spread::of(&mut measured.local),
        cross_region: Spread::of(&mut measured.cross_region),
        dependent: Spread::of(&mut measured.dependent),
        local_given_up: measured.local_given_up,
        cross_region_given_up: measured.cross_region_given_up,
        aborts: measured.aborts,
        refused: measured.refused,
        refusal: measured.refusal.take(),
        left_out_ms: round(left_out, 3),
        oldest_open_ms: millis(oldest.unwrap_or_default()),
        busiest_server: round(busiest / span_ms, 4),
        busiest_role: String::new(),
        mean_server: round(mean / span_ms, 4),
        lan_messages: round(sent.lan as f64 / answered, 2),
        wan_messages: round(sent.wan as f64 / answered, 2),
        events: world.counters().events,
    }
}
