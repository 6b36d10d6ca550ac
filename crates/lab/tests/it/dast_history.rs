//! Histories of list-append under DAST, judged; and planted defects, which the judges must find.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use crate::common::run_to_rest;
use manxdb_checker::append::{Level as Promise, check};
use manxdb_core::Nanos;
use manxdb_dast::mutants::Mutant;
use manxdb_dast::{Level, Options};
use manxdb_lab::append::{AppendLoad, history, shared};
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::load::{Load, LoadOptions};
use manxdb_sim::{SimTime, World, WorldOptions};
use manxdb_test_harness::seeds;
use manxdb_txn::procedure::ShardId;
use manxdb_workloads::Topology;
use manxdb_workloads::append::{Kind, Settings, decode};

const TOPOLOGY: Topology = Topology {
    regions: 2,
    shards_per_region: 2,
};

/// Everything found wrong with a run.
fn run(
    seed: u64,
    options: Options,
    settings: Settings,
    level: Level,
    promise: Promise,
) -> Vec<String> {
    let shared = shared(TOPOLOGY, options);
    let topology = shared.topology;
    let (lan, wan) = paper_links();
    let jitter = Nanos::from_millis(2);
    let links = (
        lan.with_jitter(jitter),
        wan.with_jitter(Nanos::from_millis(20)),
    );
    let (places, clients) = place(topology, 3, links.0, links.1);
    let mut world_options = WorldOptions::new(seed, places);
    world_options.clocks.offset_max = Nanos::from_millis(5);
    let mut world = World::new(DastSystem::new(shared), world_options);
    let options = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_secs(3),
        explain: false,
    };
    let mut load = Load::new(AppendLoad::new(TOPOLOGY, settings, level, seed), options);
    let mut found = Vec::new();
    let span = (SimTime::from_secs(3), SimTime::from_secs(10));
    if let Err(failure) = run_to_rest(&mut world, &mut load, topology, span) {
        found.push(failure.to_string());
    }
    if load.open() > 0 {
        found.push(format!("{} calls never ended", load.open()));
    }
    let verdict = check(&history(load.made()).unwrap(), promise);
    found.extend(
        verdict
            .violations()
            .iter()
            .map(|violation| format!("{violation:?}")),
    );
    for shard in (0..topology.shards()).map(ShardId) {
        let replicas = topology.replicas(shard);
        let look = |node| world.core(node).and_then(|core| core.replica());
        let replicas: Vec<_> = replicas.filter_map(look).collect();
        let orders: BTreeSet<_> = replicas.iter().map(|it| it.execution().order()).collect();
        let digests: BTreeSet<u64> = replicas.iter().map(|it| it.execution().digest()).collect();
        if orders.len() > 1 || digests.len() > 1 {
            found.push(format!("replicas of {shard:?} differ"));
        }
        if !orders.iter().all(|order| order.is_sorted()) {
            found.push(format!("a replica of {shard:?} ran out of order"));
        }
    }
    found
}

fn options(mutant: Option<Mutant>) -> Options {
    Options {
        keeps_order: true,
        mutant,
        ..Options::default()
    }
}

#[test]
fn histories_are_as_their_level_promises() {
    let levels = [
        (Level::Serializable, Promise::Serializable, 4),
        (Level::Session, Promise::Session, 3),
        (Level::Strict, Promise::Strict, 3),
    ];
    for (level, promise, usual) in levels {
        for seed in 0..seeds(usual) {
            let settings = Settings::default();
            let found = run(seed, options(None), settings, level, promise);
            assert!(found.is_empty(), "{level:?}, seed {seed}: {found:#?}");
        }
    }
}

/// Seeds until a planted defect is found, if it is.
fn seeds_to_find(mutant: Mutant) -> Option<u64> {
    let found = |seed: &u64| {
        let options = options(Some(mutant));
        let settings = Settings::default();
        let run = std::panic::catch_unwind(move || {
            run(
                *seed,
                options,
                settings,
                Level::Serializable,
                Promise::Serializable,
            )
        });
        run.map_or(true, |found| !found.is_empty())
    };
    (0..20).find(found)
}

/// The longest latencies of local calls while other regions' values are waited for: of those that
/// append without reading, and of those that read.
fn longest_local_latencies() -> (Nanos, Nanos) {
    let shared = shared(TOPOLOGY, options(None));
    let (lan, wan) = paper_links();
    let topology = shared.topology;
    let (places, clients) = place(topology, 3, lan, wan);
    let mut world = World::new(DastSystem::new(shared), WorldOptions::new(3, places));
    let options = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_secs(6),
        explain: false,
    };
    let lists = AppendLoad::new(TOPOLOGY, Settings::default(), Level::Serializable, 3);
    let mut load = Load::new(lists, options);
    let span = (SimTime::from_secs(6), SimTime::from_secs(10));
    run_to_rest(&mut world, &mut load, topology, span).unwrap();
    let (mut blind, mut reading) = (Nanos::ZERO, Nanos::ZERO);
    for made in load.made().iter().filter(|made| !made.job.crosses_regions) {
        let (_, operations) = decode(&made.job.ask.args).unwrap();
        let mut kinds = operations.iter().map(|operation| operation.kind);
        let is_blind = kinds.all(|kind| matches!(kind, Kind::Append(_)));
        let longest = if is_blind { &mut blind } else { &mut reading };
        *longest = made.latency().unwrap().max(*longest);
    }
    (blind, reading)
}

#[test]
fn local_appends_do_not_wait_for_rows_that_wait_for_another_region() {
    let (blind, reading) = longest_local_latencies();
    // An unloaded local call of two shards takes 15 ms; the distance between regions is 50.
    assert!(blind <= Nanos::from_millis(16), "{blind:?}");
    assert!(
        reading >= Nanos::from_millis(50),
        "no row was in use: {reading:?}"
    );
}

#[test]
fn a_blind_update_that_overtakes_an_earlier_one_is_found() {
    assert!(seeds_to_find(Mutant::BlindUpdateOvertakes).is_some());
}

#[test]
fn a_replica_that_does_not_wait_for_clocks_is_found() {
    assert!(seeds_to_find(Mutant::NoClockGate).is_some());
}

#[test]
fn a_manager_that_breaks_its_promise_is_found() {
    assert!(seeds_to_find(Mutant::NoPromise).is_some());
}

#[test]
fn a_cut_believed_before_its_transactions_are_there_is_found() {
    assert!(seeds_to_find(Mutant::CutWithoutCounts).is_some());
}

#[test]
fn a_lost_decision_is_found() {
    assert!(seeds_to_find(Mutant::LostSettle).is_some());
}

#[test]
fn the_smallest_timestamp_instead_of_the_largest_is_found() {
    assert!(seeds_to_find(Mutant::MinInsteadOfMax).is_some());
}
