//! What the systems that DAST is compared with are tested by: latencies without load, and histories of
//! lists, judged twice.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use manxdb_checker::append::{History, Level as Promise, Operation, Outcome, check};
use manxdb_common::Level;
use manxdb_core::Nanos;
use manxdb_lab::append::{AppendLoad, history};
use manxdb_lab::candidate::{Candidate, Cluster, HoldsReplica as _};
use manxdb_lab::dast::paper_links;
use manxdb_lab::load::{Load, LoadOptions};
use manxdb_lab::why::Why;
use manxdb_sim::{SimTime, World, WorldOptions};
use manxdb_test_harness::seeds;
use manxdb_txn::procedure::{Registry, ShardId};
use manxdb_txn::rows::{NoRows, Rows};
use manxdb_workloads::Topology;
use manxdb_workloads::append::{Append, Settings};

use crate::common::chain::{Chain, Chained, NOTHING, chain, last_of, line};
use crate::common::run_to_rest;

const FOUR: Topology = Topology {
    regions: 4,
    shards_per_region: 2,
};

pub fn cluster(topology: Topology, procedures: Registry) -> Cluster {
    Cluster {
        topology,
        procedures: Arc::new(procedures),
        rows: Box::new(|_| Rows::new(Arc::new(NoRows))),
        round_trip: None,
        explains: true,
        keeps_order: true,
        seed: 1,
        crossing: manxdb_dast::Crossing::Anticipated,
        survive: manxdb_dast::Survive::Zone,
        lead: None,
    }
}

/// A transaction of a client of a shard's region, the second of its kind, asked at this time.
fn floor<S: Candidate>(home: usize, pieces: Chained, asked: Nanos) -> (Nanos, Why) {
    let procedures = Registry::default();
    procedures.register(Arc::new(Chain));
    let system = S::build(cluster(FOUR, procedures));
    let (lan, wan) = paper_links();
    let (places, clients) = system.place(1, lan, wan);
    let mut options = WorldOptions::new(1, places);
    options.explain = true;
    let world = World::new(system, options);
    let (client, shard) = clients[home];
    let first = u8::try_from(shard.0).unwrap();
    // The shard of a case counts from the client's.
    let pieces = pieces.iter().map(|(to, needs)| ((to + first) % 8, *needs));
    let ask = chain(pieces, Level::Serializable, shard);
    last_of(world, client, ask, 2, asked)
}

/// Shard 0 is the client's; 1 is in its region, 2, 4 and 6 are in the next ones.
const CASES: [(&str, Chained); 8] = [
    ("one shard", &[(0, NOTHING)]),
    ("two shards of a region", &[(0, NOTHING), (1, NOTHING)]),
    ("home waits for the other shard", &[(0, 1), (1, NOTHING)]),
    ("2 regions", &[(0, NOTHING), (2, NOTHING)]),
    ("3 regions", &[(0, NOTHING), (2, NOTHING), (4, NOTHING)]),
    ("home waits for another region", &[(0, 1), (2, NOTHING)]),
    ("another region waits for home", &[(0, NOTHING), (2, 0)]),
    (
        "a third region waits for the second",
        &[(0, NOTHING), (2, NOTHING), (4, 1)],
    ),
];

pub fn floors<S: Candidate>(home: usize, asked: Nanos) -> String {
    let of = |(name, pieces): &(&str, Chained)| line(name, 38, floor::<S>(home, pieces, asked));
    CASES.iter().map(of).collect::<Vec<_>>().join("\n")
}

/// Each case takes what a table says, for a client of a shard's region.
pub fn takes<S: Candidate>(home: usize, asked: Nanos, table: &str) {
    let found = floors::<S>(home, asked);
    assert_eq!(found, table.trim(), "found:\n{found}\n");
}

/// Nothing is wrong with runs of lists, of so many seeds.
pub fn keeps<S: Candidate>(promise: Promise, count: u64, build: impl Fn(Cluster) -> S + Copy) {
    for seed in 0..seeds(count) {
        let found = lists(seed, promise, build);
        assert!(found.is_empty(), "{promise:?}, seed {seed}: {found:#?}");
    }
}

/// Everything found wrong with a run of lists.
pub fn lists<S: Candidate>(
    seed: u64,
    promise: Promise,
    build: impl Fn(Cluster) -> S,
) -> Vec<String> {
    lists_with_clocks(Nanos::from_millis(5), seed, promise, build)
}

/// The same with clocks that are off by up to so much.
pub fn lists_with_clocks<S: Candidate>(
    offset_max: Nanos,
    seed: u64,
    promise: Promise,
    build: impl Fn(Cluster) -> S,
) -> Vec<String> {
    let topology = Topology {
        regions: 3,
        shards_per_region: 2,
    };
    let procedures = Registry::default();
    procedures.register(Arc::new(Append));
    let system = build(cluster(topology, procedures));
    let (lan, wan) = paper_links();
    let jitter = Nanos::from_millis(30);
    let (places, clients) = system.place(
        2,
        lan.with_jitter(Nanos::from_millis(2)),
        wan.with_jitter(jitter),
    );
    let mut options = WorldOptions::new(seed, places);
    options.clocks.offset_max = offset_max;
    let mut world = World::new(system, options);
    let load = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_millis(1_500),
        explain: false,
    };
    let settings = Settings {
        lists_per_shard: 4,
        cross_region: 0.4,
        ..Settings::default()
    };
    let level = Level::Serializable;
    let mut load = Load::new(AppendLoad::new(topology, settings, level, seed), load);
    let mut found = Vec::new();
    let shape = manxdb_common::Topology {
        regions: topology.regions,
        shards_per_region: topology.shards_per_region,
    };
    let span = (SimTime::from_millis(1_500), SimTime::from_secs(30));
    if let Err(failure) = run_to_rest(&mut world, &mut load, shape, span) {
        found.push(failure.to_string());
    }
    if load.open() > 0 {
        found.push(format!("{} calls never ended", load.open()));
    }
    let history = history(load.made()).unwrap();
    let verdict = check(&history, promise);
    found.extend(verdict.violations().iter().map(|it| format!("{it:?}")));
    if verdict.is_valid() == others_find(&history, promise) {
        found.push(format!("the checkers differ: {verdict}"));
    }
    for shard in (0..topology.shards()).map(ShardId) {
        let views = shape
            .replicas(shard)
            .filter_map(|node| world.core(node)?.view());
        let digests: BTreeSet<u64> = views.map(|view| view.digest).collect();
        if digests.len() != 1 {
            found.push(format!("replicas of {shard:?} differ"));
        }
    }
    found
}

/// Seeds until a planted defect is found, if it is.
pub fn is_found<S: Candidate>(promise: Promise, build: impl Fn(Cluster) -> S + Copy) -> bool {
    (0..30).any(|seed| {
        let run = std::panic::AssertUnwindSafe(|| lists(seed, promise, build));
        std::panic::catch_unwind(run).map_or(true, |found| !found.is_empty())
    })
}

/// The history in the notation of the crate `adya`, a checker written by others.
fn tell(history: &History) -> String {
    let mut events = Vec::new();
    for transaction in &history.transactions {
        // One process each: a client may ask again at the moment of an answer.
        let process = transaction.name;
        let end = match transaction.outcome {
            Outcome::Ok => "ok",
            Outcome::Failed => "fail",
            Outcome::Unknown => "info",
        };
        let (invoked, completed) = (transaction.invoked, transaction.completed);
        for (moment, order, kind) in [(invoked, 0, "invoke"), (completed, 1, end)] {
            let operation = |operation: &Operation| match operation {
                Operation::Append { key, element } => {
                    // Where a call that failed would have appended, nobody knows.
                    key.map(|key| format!(r#"["append",{key},{element}]"#))
                }
                Operation::Read { key, list } if kind == "ok" => {
                    Some(format!(r#"["r",{key},{list:?}]"#))
                }
                Operation::Read { key, .. } => Some(format!(r#"["r",{key},null]"#)),
            };
            let operations = transaction.operations.iter().filter_map(operation);
            let value = operations.collect::<Vec<_>>().join(",");
            let line = format!(r#"{{"type":"{kind}","process":{process},"value":[{value}]}}"#);
            events.push((moment, order, line));
        }
    }
    // At one moment, invocations first: they do not follow what completes then.
    events.sort();
    events.iter().fold(String::new(), |mut text, event| {
        writeln!(text, "{}", event.2).unwrap();
        text
    })
}

fn others_find(history: &History, promise: Promise) -> bool {
    let model = match promise {
        Promise::Serializable => "serializable",
        Promise::Session => "strong-session-serializable",
        Promise::Strict => "strict-serializable",
    };
    let parsed = adya::History::from_json(&tell(history)).unwrap();
    let options = adya::Opts {
        models: vec![model.into()],
        ..adya::Opts::default()
    };
    let report = adya::check(&parsed, adya::Workload::ListAppend, &options);
    matches!(report.valid, adya::Valid::False)
}
