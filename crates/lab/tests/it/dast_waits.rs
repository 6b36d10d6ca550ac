//! What transactions under DAST wait for, at every replica: a local one never for the place of a
//! cross-region one; and every latency is explained to the nanosecond.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Increments, run_to_rest};
use manxdb_core::Nanos;
use manxdb_dast::mutants::Mutant;
use manxdb_dast::waits::{CROSS_REGION, GATE, LEDGER};
use manxdb_dast::{Crossing, Level, Options, Topology};
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::load::{Load, LoadOptions};
use manxdb_sim::explain::{OTHER, explain, waits};
use manxdb_sim::{ClockOptions, CostModel, Link, SimTime, World, WorldOptions};

const THREE_BY_FIVE: Topology = Topology {
    regions: 3,
    shards_per_region: 5,
};

type Run = (World<DastSystem>, Load<Increments>);

fn run(mutant: Option<Mutant>, cost: CostModel, crt_percent: u64, links: (Link, Link)) -> Run {
    let clocks = ClockOptions::default();
    run_with(
        (Crossing::Anticipated, mutant),
        cost,
        clocks,
        crt_percent,
        links,
    )
}

fn run_with(
    (crossing, mutant): (Crossing, Option<Mutant>),
    cost: CostModel,
    clocks: ClockOptions,
    crt_percent: u64,
    links: (Link, Link),
) -> Run {
    let topology = THREE_BY_FIVE;
    let (places, clients) = place(topology, 4, links.0, links.1);
    let options = Options {
        crossing,
        explains: true,
        mutant,
        ..Options::default()
    };
    let mut world_options = WorldOptions::new(7, places);
    world_options.explain = true;
    world_options.cost = cost;
    world_options.clocks = clocks;
    let system = DastSystem::new(crate::common::shared(topology, options));
    let mut world = World::new(system, world_options);
    let generator = Increments {
        topology,
        crt_percent,
        level: Level::Serializable,
    };
    let options = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_secs(2),
        explain: false,
    };
    let mut load = Load::new(generator, options);
    let span = (SimTime::from_secs(2), SimTime::from_secs(4));
    run_to_rest(&mut world, &mut load, topology, span).unwrap();
    assert_eq!(load.open(), 0, "every call ends");
    (world, load)
}

/// Paper distances with a wide network whose decisions come early and late.
fn shaken() -> (Link, Link) {
    let (lan, wan) = paper_links();
    (lan, wan.with_jitter(Nanos::from_millis(30)))
}

/// By what transactions waited for at any replica: how many local ones did, and the longest time.
fn local_waits((world, load): &Run) -> BTreeMap<&'static str, (usize, Nanos)> {
    let made = load.made().iter();
    let local = made.filter(|made| !made.job.crosses_regions);
    let local: BTreeSet<u64> = local
        .filter_map(|made| Some(made.answered.as_ref()?.1.id.for_traces()))
        .collect();
    let mut found: BTreeMap<&'static str, (usize, Nanos)> = BTreeMap::new();
    for (_, steps) in world.steps().filter(|(txn, _)| local.contains(txn)) {
        for waited in waits(steps) {
            // The client waits too, until the end of the run, and says nothing more.
            let Some(until) = waited.until else {
                continue;
            };
            let (count, longest) = found.entry(waited.wait.reason).or_default();
            *count += 1;
            *longest = until.since(waited.from).max(*longest);
        }
    }
    found
}

#[test]
fn no_local_transaction_waits_for_the_place_of_a_cross_region_one() {
    for crt_percent in [10, 90] {
        let run = run(None, CostModel::free(), crt_percent, shaken());
        let waits = local_waits(&run);
        assert!(waits[GATE].0 > 100, "{waits:?}");
        assert_eq!(waits.get(CROSS_REGION), None, "{waits:?}");
    }
}

#[test]
fn nor_with_busy_processors_wrong_clocks_and_jitter_everywhere() {
    let (lan, wan) = shaken();
    let links = (lan.with_jitter(Nanos::from_millis(1)), wan);
    let clocks = ClockOptions {
        offset_max: Nanos::from_millis(5),
        drift_max_ppm: 100,
    };
    for crossing in Crossing::ALL {
        let run = run_with((crossing, None), CostModel::default(), clocks, 30, links);
        let waits = local_waits(&run);
        assert!(waits[GATE].0 > 100, "{crossing:?}: {waits:?}");
        assert_eq!(waits.get(CROSS_REGION), None, "{crossing:?}: {waits:?}");
    }
}

#[test]
fn without_floors_on_all_nodes_they_do() {
    let mutant = Some(Mutant::NoFloorsElsewhere);
    let waits = local_waits(&run(mutant, CostModel::free(), 10, shaken()));
    let (count, longest) = waits[CROSS_REGION];
    assert!(count > 10, "{waits:?}");
    assert!(longest > Nanos::from_millis(5), "{waits:?}");
}

#[test]
fn every_latency_is_explained_to_the_nanosecond() {
    let runs = [
        (Crossing::Anticipated, CostModel::free()),
        (Crossing::Anticipated, CostModel::default()),
        (Crossing::Ahead, CostModel::default()),
    ];
    for (crossing, cost) in runs {
        let clocks = ClockOptions::default();
        let (world, load) = run_with((crossing, None), cost, clocks, 30, shaken());
        let steps: BTreeMap<u64, _> = world.steps().collect();
        let mut reasons = BTreeSet::new();
        for made in load.made() {
            let (at, answer) = made.answered.as_ref().unwrap();
            let parts = explain(made.asked, *at, steps[&answer.id.for_traces()]);
            let sum = parts
                .iter()
                .fold(Nanos::ZERO, |sum, part| sum + part.span());
            assert_eq!(sum, made.latency().unwrap());
            assert!(parts.windows(2).all(|pair| pair[0].until == pair[1].from));
            assert!(
                parts.iter().all(|part| part.reason != OTHER),
                "{:?}: {parts:#?}",
                answer.id
            );
            reasons.extend(parts.iter().map(|part| part.reason));
        }
        assert!(
            reasons.contains(GATE) && reasons.contains(LEDGER),
            "{reasons:?}"
        );
    }
}

/// What people who watch see in the middle of a run: calls that are open, at one replica each, and what
/// they wait for; how regions are ordered ahead.
#[test]
fn open_calls_and_marks_are_shown_while_transactions_run() {
    let topology = THREE_BY_FIVE;
    let (lan, wan) = paper_links();
    let (places, clients) = place(topology, 4, lan, wan);
    let options = Options {
        crossing: Crossing::Ahead,
        ..Options::default()
    };
    let system = DastSystem::new(crate::common::shared(topology, options));
    let mut world = World::new(system, WorldOptions::new(7, places));
    let generator = Increments {
        topology,
        crt_percent: 30,
        level: Level::Serializable,
    };
    let options = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_secs(2),
        explain: false,
    };
    let mut load = Load::new(generator, options);
    world.run_until(&mut load, SimTime::from_secs(1)).unwrap();
    let mut shown = BTreeSet::new();
    let mut waits_shown = BTreeSet::new();
    let mut leaders = 0;
    for (node, core) in world.cores() {
        let now = world.local_time(node);
        if let Some(replica) = core.replica() {
            for (call, wait) in replica.open_calls() {
                assert!(
                    shown.insert(call.id),
                    "{:?} is open at two replicas",
                    call.id
                );
                assert_eq!(replica.open_call(call.id.for_traces()), Some(call));
                waits_shown.insert((call.is_local, wait.map(|wait| wait.reason)));
            }
            assert!(
                replica.stretch(now) < Nanos::from_millis(20),
                "no region is late"
            );
        }
        if let Some(leading) = core.manager().and_then(|manager| manager.leading(now)) {
            leaders += 1;
            assert_eq!(leading.members.live.len(), 15);
            assert_eq!(leading.pairs.len(), 2);
            assert!(
                leading.bound.is_some_and(|bound| bound > -10_000),
                "{leading:?}"
            );
            for pair in &leading.pairs {
                assert!((40_000..80_000).contains(&pair.lead), "{pair:?}");
                assert!(
                    pair.told > pair.heard && pair.silent < Nanos::from_millis(50),
                    "{pair:?}"
                );
                assert!(
                    pair.delay
                        .is_some_and(|delay| (45_000..55_000).contains(&delay)),
                    "{pair:?}"
                );
            }
        }
    }
    assert_eq!(leaders, 3);
    assert!(
        shown.len() > 5 && shown.len() <= load.open(),
        "{} of {}",
        shown.len(),
        load.open()
    );
    assert!(waits_shown.contains(&(true, Some(GATE))), "{waits_shown:?}");
    assert!(waits_shown.contains(&(false, None)), "{waits_shown:?}");
    assert!(
        !waits_shown.contains(&(true, Some(CROSS_REGION))),
        "{waits_shown:?}"
    );
}
