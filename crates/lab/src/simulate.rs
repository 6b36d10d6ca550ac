//! Runs a scenario, watches it, and judges how it ended.

use std::collections::BTreeSet;

use manxdb_checker::append::check;
use manxdb_common::{Answer, Ask, Level};
use manxdb_core::{Core, Nanos, NodeId};
use manxdb_sim::counters::Counters;
use manxdb_sim::explain::Part;
use manxdb_sim::trace::{Record, Row};
use manxdb_sim::{Failure, SimTime, System, Transport, World};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::Rows;
use manxdb_workloads::{Workload, tpca, tpcc};

use crate::append::{history, promise};
use crate::candidate::{Candidate, HoldsReplica, ReliableSystem, ReplicaView};
use crate::load::{Load, LoadOptions, Made};
use crate::scenario::{Asks, Scenario};
use crate::systems::ForSystem;

/// How long answers may take after the last call.
const PATIENCE: Nanos = Nanos::from_secs(20);

/// How long replicas may take to become equal after the last answer.
const SETTLE: Nanos = Nanos::from_secs(2);

/// How much virtual time passes between two looks at a run.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// What an observer sees of a run under way.
pub struct Look<'a> {
    /// Virtual time.
    pub now: SimTime,
    /// All calls so far, in the order in which they were made.
    pub made: &'a [Made],
}

/// How a run ended.
pub struct SimulationOutcome {
    /// All calls, in the order in which they were made.
    pub made: Vec<Made>,
    /// Clients, each with its home shard.
    pub clients: Vec<(NodeId, ShardId)>,
    /// What happened, counted.
    pub counters: Counters,
    /// The busiest server and the share of the time that its CPU worked.
    pub busiest: (NodeId, f64),
    /// Virtual time at the end.
    pub ended: SimTime,
    /// What is wrong, in words.
    pub findings: Vec<String>,
    /// Equal for equal runs.
    pub digest: u64,
}

/// Runs a scenario to its end. `watch` is called every 100 ms of virtual time.
///
/// # Errors
/// An invariant that a node saw broken.
pub fn simulate(
    scenario: &Scenario,
    watch: &mut dyn FnMut(Look<'_>),
) -> Result<SimulationOutcome, Box<Failure>> {
    scenario.system.with(Simulating { scenario, watch })
}

struct Simulating<'a> {
    scenario: &'a Scenario,
    watch: &'a mut dyn FnMut(Look<'_>),
}

impl ForSystem for Simulating<'_> {
    type Outcome = Result<SimulationOutcome, Box<Failure>>;

    fn run<S: Candidate>(self) -> Self::Outcome {
        let Self { scenario, watch } = self;
        let system = S::build(scenario.cluster());
        let places = places(scenario, &system);
        // With nothing wrong a connection is a queue; a channel over datagrams lives through more.
        if scenario.faults.is_empty() {
            let (world, load) = begin(
                scenario,
                Record::Nothing,
                Transport::default(),
                system,
                places,
            );
            run(scenario, world, load, watch)
        } else {
            let system = ReliableSystem(system);
            let (world, load) = begin(
                scenario,
                Record::Nothing,
                Transport::Datagram,
                system,
                places,
            );
            run(scenario, world, load, watch)
        }
    }
}

/// What happened to one transaction.
#[derive(Debug, Clone)]
pub struct Story {
    /// Its messages, and faults while it was under way.
    pub rows: Vec<Row>,
    /// What its latency consists of.
    pub parts: Vec<Part>,
}

/// Runs a scenario again until `until`, for what happened to one transaction.
///
/// # Errors
/// An invariant that a node saw broken.
pub fn story(scenario: &Scenario, txn: u64, until: SimTime) -> Result<Story, Box<Failure>> {
    scenario.system.with(Telling {
        scenario,
        txn,
        until,
    })
}

struct Telling<'a> {
    scenario: &'a Scenario,
    txn: u64,
    until: SimTime,
}

impl ForSystem for Telling<'_> {
    type Outcome = Result<Story, Box<Failure>>;

    fn run<S: Candidate>(self) -> Self::Outcome {
        let Self {
            scenario,
            txn,
            until,
        } = self;
        let record = Record::Txn(txn);
        let system = S::build(scenario.cluster());
        let places = places(scenario, &system);
        if scenario.faults.is_empty() {
            let (world, load) = begin(scenario, record, Transport::default(), system, places);
            tell(world, load, txn, until)
        } else {
            let system = ReliableSystem(system);
            let (world, load) = begin(scenario, record, Transport::Datagram, system, places);
            tell(world, load, txn, until)
        }
    }
}

fn tell<S>(
    mut world: World<S>,
    mut load: Load<Asks>,
    txn: u64,
    until: SimTime,
) -> Result<Story, Box<Failure>>
where
    S: System,
    S::Core: Core<Request = Ask, Reply = Answer>,
{
    load.keep_parts_of(txn);
    world.run_until(&mut load, until)?;
    Ok(Story {
        rows: world.trace().rows().to_vec(),
        parts: load.parts().to_vec(),
    })
}

/// Where nodes are, and the clients with their home shards.
type Places = (manxdb_sim::Topology, Vec<(NodeId, ShardId)>);

fn places<S: Candidate>(scenario: &Scenario, system: &S) -> Places {
    system.place(scenario.clients_per_shard, scenario.lan, scenario.wan)
}

fn begin<S: System>(
    scenario: &Scenario,
    record: Record,
    transport: Transport,
    system: S,
    (places, clients): Places,
) -> (World<S>, Load<Asks>) {
    let mut options = scenario.world_options(places);
    options.record = record;
    options.transport = transport;
    let mut world = World::new(system, options);
    for (client, _) in &clients {
        world.make_cpu_free(*client);
    }
    for fault in &scenario.faults {
        world.schedule(fault.clone());
    }
    let asks = Asks::new(scenario);
    let (_, until) = scenario.span();
    let options = LoadOptions {
        clients,
        outstanding: scenario.outstanding,
        until,
        explain: scenario.explain,
    };
    (world, Load::new(asks, options))
}

fn run<S>(
    scenario: &Scenario,
    mut world: World<S>,
    mut load: Load<Asks>,
    watch: &mut dyn FnMut(Look<'_>),
) -> Result<SimulationOutcome, Box<Failure>>
where
    S: System,
    S::Core: Core<Request = Ask, Reply = Answer> + HoldsReplica,
{
    let (_, until) = scenario.span();
    let mut now = SimTime::ZERO;
    let healed = scenario.faults.iter().map(manxdb_sim::Fault::ends).max();
    let deadline = until.max(healed.unwrap_or(until)) + PATIENCE;
    let mut busy = Vec::new();
    while now < until || (load.open() > 0 && now < deadline) {
        now = now + LOOK_EVERY;
        world.run_until(&mut load, now)?;
        watch(Look {
            now,
            made: load.made(),
        });
        if now >= until && busy.is_empty() {
            busy = busy_servers(scenario, &world);
        }
    }
    let mut findings = unequal_replicas(scenario, &world);
    let settled = now + SETTLE;
    while !findings.is_empty() && now < settled {
        now = now + LOOK_EVERY;
        world.run_until(&mut load, now)?;
        findings = unequal_replicas(scenario, &world);
    }
    let mut judged = judge(scenario, &world, load.made());
    // What is answered when it is decided (TAPIR) may still be on its way to other regions.
    if !judged.is_empty() && now < settled {
        world.run_until(&mut load, settled)?;
        judged = judge(scenario, &world, load.made());
    }
    findings.extend(judged);
    let busiest = busy
        .into_iter()
        .max_by(|one, other| one.1.total_cmp(&other.1));
    Ok(SimulationOutcome {
        clients: load.clients().to_vec(),
        counters: world.counters().clone(),
        busiest: busiest.unwrap_or((NodeId(0), 0.0)),
        ended: now,
        findings,
        digest: world.digest(),
        made: load.into_made(),
    })
}

/// The share of the time so far that each server's CPU worked.
#[allow(clippy::cast_precision_loss)] // far below 2^53
fn busy_servers<S: System>(scenario: &Scenario, world: &World<S>) -> Vec<(NodeId, f64)> {
    let passed = world.now().since(SimTime::ZERO).0.max(1) as f64;
    let servers = (0..scenario.shape().servers()).map(NodeId);
    let share = |node| (node, world.cpu_busy(node).0 as f64 / passed);
    servers.map(share).collect()
}

/// The replicas of a shard that take part.
fn replicas<'a, S>(scenario: &Scenario, world: &'a World<S>, shard: ShardId) -> Vec<ReplicaView<'a>>
where
    S: System,
    S::Core: HoldsReplica,
{
    let nodes = scenario.shape().replicas(shard);
    let replicas = nodes.filter_map(|node| world.core(node)?.view());
    replicas.filter(|replica| replica.is_live).collect()
}

fn unequal_replicas<S>(scenario: &Scenario, world: &World<S>) -> Vec<String>
where
    S: System,
    S::Core: HoldsReplica,
{
    let mut findings = Vec::new();
    for shard in (0..scenario.topology.shards()).map(ShardId) {
        let replicas = replicas(scenario, world, shard);
        let digests = replicas.iter().map(|replica| replica.digest);
        match digests.collect::<BTreeSet<u64>>().len() {
            0 => findings.push(format!("shard {}: no replica takes part", shard.0)),
            1 => {}
            _ => findings.push(format!("shard {}: its replicas differ", shard.0)),
        }
    }
    findings
}

/// What the workload itself says must be true.
fn judge<S>(scenario: &Scenario, world: &World<S>, made: &[Made]) -> Vec<String>
where
    S: System,
    S::Core: HoldsReplica,
{
    let mut findings = Vec::new();
    let open = made.iter().filter(|made| made.answered.is_none()).count();
    if open > 0 {
        findings.push(format!("{open} calls never ended"));
    }
    let first_of = |shard| {
        let replicas = replicas(scenario, world, shard);
        replicas.first().map(|replica| replica.rows.clone())
    };
    let shards = (0..scenario.topology.shards()).map(ShardId);
    let Some(rows) = shards.map(first_of).collect::<Option<Vec<Rows>>>() else {
        return findings;
    };
    match scenario.workload {
        Workload::Tpca { .. } => {
            let unknown = open as u64;
            findings.extend(tpca::check(&rows, acknowledged(made), unknown));
        }
        Workload::Tpcc(_) | Workload::Payment { .. } => {
            findings.extend(tpcc::check(
                &rows,
                scenario.topology,
                scenario.scale,
                scenario.payment_sums,
            ));
        }
        Workload::Append(_) => findings.extend(judge_history(scenario.level, made)),
    }
    findings
}

fn acknowledged(made: &[Made]) -> u64 {
    let answers = made.iter().filter_map(|made| made.answered.as_ref());
    answers.filter(|(_, answer)| answer.given.is_ok()).count() as u64
}

fn judge_history(level: Level, made: &[Made]) -> Vec<String> {
    match history(made) {
        Ok(history) => {
            let verdict = check(&history, promise(level));
            let violations = verdict.violations().iter();
            violations
                .map(|found| format!("{}: {}", found.anomaly.name(), found.proof))
                .collect()
        }
        Err(unreadable) => vec![unreadable],
    }
}
