//! Histories under ordering ahead: jitter, wrong clocks, three regions; and planted defects, which
//! the judges must find.

use crate::common::{Increments, run_to_rest};
use manxdb_checker::append::{Level as Promise, check};
use manxdb_core::Nanos;
use manxdb_dast::mutants::Mutant;
use manxdb_dast::{Crossing, Level, Options, Survive};
use manxdb_lab::append::{AppendLoad, history, shared};
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::load::{Load, LoadOptions, percentile};
use manxdb_sim::{SimTime, World, WorldOptions};
use manxdb_test_harness::seeds;
use manxdb_txn::procedure::ShardId;
use manxdb_workloads::Topology;
use manxdb_workloads::append::Settings;

const THREE: Topology = Topology {
    regions: 3,
    shards_per_region: 1,
};

fn options(mutant: Option<Mutant>) -> Options {
    Options {
        crossing: Crossing::Ahead,
        keeps_order: true,
        mutant,
        ..Options::default()
    }
}

/// The same with streams that carry everything to all managers.
fn whole() -> Options {
    Options {
        survive: Survive::Region,
        ..options(None)
    }
}

/// Everything found wrong with a run of three seconds.
fn run(seed: u64, options: Options, level: Level, promise: Promise) -> Vec<String> {
    let (lan, wan) = paper_links();
    let lan = lan.with_jitter(Nanos::from_millis(1));
    let wan = wan.with_jitter(Nanos::from_millis(30));
    let shared = shared(THREE, options);
    let topology = shared.topology;
    let (places, clients) = place(topology, 4, lan, wan);
    let mut world_options = WorldOptions::new(seed, places);
    world_options.clocks.offset_max = Nanos::from_millis(seed % 3 * 20);
    let mut world = World::new(DastSystem::new(shared), world_options);
    let options = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_secs(3),
        explain: false,
    };
    let settings = Settings {
        lists_per_shard: 4,
        cross_region: 0.4,
        ..Settings::default()
    };
    let mut load = Load::new(AppendLoad::new(THREE, settings, level, seed), options);
    let mut found = Vec::new();
    let span = (SimTime::from_secs(3), SimTime::from_secs(8));
    if let Err(failure) = run_to_rest(&mut world, &mut load, topology, span) {
        found.push(failure.to_string());
    }
    if load.open() > 0 {
        found.push(format!("{} calls never ended", load.open()));
    }
    let verdict = check(&history(load.made()).unwrap(), promise);
    let violations = verdict.violations().iter();
    found.extend(violations.map(|violation| format!("{violation:?}")));
    for shard in (0..topology.shards()).map(ShardId) {
        let replicas = topology.replicas(shard);
        let look = |node| world.core(node).and_then(|core| core.replica());
        let replicas: Vec<_> = replicas.filter_map(look).collect();
        let is_equal = |pair: &[&manxdb_dast::replica::Replica]| {
            let [one, other] = [pair[0].execution(), pair[1].execution()];
            one.order() == other.order() && one.digest() == other.digest()
        };
        if !replicas.windows(2).all(is_equal) {
            found.push(format!("replicas of {shard:?} differ"));
        }
        if !replicas.iter().all(|it| it.execution().order().is_sorted()) {
            found.push(format!("a replica of {shard:?} ran out of order"));
        }
    }
    found
}

#[test]
fn histories_are_as_their_level_promises() {
    let levels = [
        (Level::Serializable, Promise::Serializable),
        (Level::Session, Promise::Session),
        (Level::Strict, Promise::Strict),
    ];
    for seed in 0..seeds(12) {
        let (level, promise) = levels[usize::try_from(seed % 3).unwrap()];
        let found = run(seed, options(None), level, promise);
        assert!(found.is_empty(), "{level:?}, seed {seed}: {found:#?}");
        if seed < 6 {
            let found = run(seed, whole(), level, promise);
            assert!(found.is_empty(), "{level:?}, whole, {seed}: {found:#?}");
        }
    }
}

/// Whether a planted defect is found within so many seeds.
fn is_found(mutant: Mutant, within: u64) -> bool {
    let found = |seed: u64| {
        let options = options(Some(mutant));
        let run = move || run(seed, options, Level::Serializable, Promise::Serializable);
        std::panic::catch_unwind(run).map_or(true, |found| !found.is_empty())
    };
    (0..within).any(found)
}

#[test]
fn a_mark_told_before_its_entries_is_found() {
    assert!(is_found(Mutant::MarkBeforeEntries, 6));
}

#[test]
fn a_region_that_waits_for_some_marks_only_is_found() {
    assert!(is_found(Mutant::BoundOfTouchedRegions, 6));
}

/// Latencies under load without jitter: one round trip at the median and in the tail, with any
/// share of cross-region transactions, and local ones notice nothing.
#[test]
fn under_load_the_tail_is_one_round_trip_and_local_transactions_do_not_notice() {
    for (shards_per_region, crt_percent) in [(5, 10), (5, 90)] {
        let topology = manxdb_dast::Topology {
            regions: 3,
            shards_per_region,
        };
        let latencies = |crossing| {
            let options = Options {
                crossing,
                ..Options::default()
            };
            let (lan, wan) = paper_links();
            let (places, clients) = place(topology, 16, lan, wan);
            let shared = crate::common::shared(topology, options);
            let mut world_options = WorldOptions::new(5, places);
            // Latencies are asked for; looks at so many clients' calls would take longer than steps.
            world_options.check = false;
            let mut world = World::new(DastSystem::new(shared), world_options);
            let generator = Increments {
                topology,
                crt_percent,
                level: Level::Serializable,
            };
            let options = LoadOptions {
                clients,
                outstanding: 1,
                until: SimTime::from_secs(1),
                explain: false,
            };
            let mut load = Load::new(generator, options);
            world
                .run_until(&mut load, SimTime::from_millis(1_500))
                .unwrap();
            assert_eq!(load.open(), 0, "every call ends");
            let (from, until) = (SimTime::from_millis(400), SimTime::from_secs(1));
            [false, true].map(|crosses| load.latencies(crosses, from, until))
        };
        let [local, cross] = latencies(Crossing::Ahead);
        let [local_before, _] = latencies(Crossing::Anticipated);
        let case = format!("{shards_per_region} shards, {crt_percent} %");
        let (median, tail) = (percentile(&cross, 50), percentile(&cross, 99));
        assert!(median <= Nanos::from_micros(122_500), "{case}: {median:?}");
        assert!(tail <= Nanos::from_millis(125), "{case}: {tail:?}");
        let (now, before) = (percentile(&local, 99), percentile(&local_before, 99));
        let most = before + Nanos::from_micros(500);
        assert!(now <= most, "{case}: {now:?} after {before:?}");
    }
}

/// A run of increments with faults, until so many milliseconds.
fn faulty(
    topology: manxdb_dast::Topology,
    options: Options,
    crt_percent: u64,
    faults: &str,
    until: u64,
) -> Load<Increments> {
    let (lan, wan) = paper_links();
    let (places, clients) = place(topology, 8, lan, wan);
    let shared = crate::common::shared(topology, options);
    let mut world = World::new(DastSystem::new(shared), WorldOptions::new(5, places));
    world.schedule_all(&faults.parse().unwrap());
    let generator = Increments {
        topology,
        crt_percent,
        level: Level::Serializable,
    };
    let options = LoadOptions {
        clients,
        outstanding: 1,
        until: SimTime::from_millis(until),
        explain: false,
    };
    let mut load = Load::new(generator, options);
    world
        .run_until(&mut load, SimTime::from_millis(until + 100))
        .unwrap();
    load
}

/// Its marks do not come, so no cross-region transaction runs anywhere; clocks stretch.
#[test]
fn a_silent_region_does_not_hold_up_local_transactions() {
    let topology = manxdb_dast::Topology {
        regions: 3,
        shards_per_region: 2,
    };
    let load = faulty(topology, options(None), 1, "600ms+10s part r0 *", 1_500);
    let (from, until) = (SimTime::from_millis(700), SimTime::from_millis(1_400));
    let local = load.latencies(false, from, until);
    assert!(local.len() > 500, "{} local calls", local.len());
    let tail = percentile(&local, 100);
    assert!(tail <= Nanos::from_micros(15_001), "{tail:?}");
    let asked = load.made().iter().filter(|made| made.asked < until);
    let mut open = asked.filter(|made| made.answered.is_none());
    assert!(open.all(|made| made.job.crosses_regions));
    let cross = load.latencies(true, from, until);
    assert!(cross.is_empty(), "they wait: {cross:?}");
}

/// Its marks run farther ahead once the way is known.
#[test]
fn a_region_far_away_changes_nothing_for_transactions_of_the_others() {
    let topology = manxdb_dast::Topology {
        regions: 3,
        shards_per_region: 1,
    };
    let way = |(from, to)| format!("0s+10s delay r{from}>r{to} 250ms");
    let far = [(2, 0), (2, 1), (0, 2), (1, 2)].map(way).join("; ");
    for options in [options(None), whole()] {
        far_away(topology, options, &far);
    }
}

fn far_away(topology: manxdb_dast::Topology, options: Options, far: &str) {
    let load = faulty(topology, options, 30, far, 3_500);
    let from = SimTime::from_secs(2);
    let near = load.made().iter().filter(|made| {
        let args = &made.job.ask.args;
        made.job.crosses_regions && made.asked >= from && args[0] < 2 && args[2] < 2
    });
    let latencies: Vec<Nanos> = near.filter_map(manxdb_lab::load::Made::latency).collect();
    let longest = latencies.iter().max().unwrap();
    assert!(latencies.len() > 20, "{} calls", latencies.len());
    let most = if options.has_whole_streams() {
        126
    } else {
        123
    };
    assert!(*longest <= Nanos::from_millis(most), "{longest:?}");
}

/// Managers of region 1 are n12 to n14. What its leader alone has heard of region 0 does not count;
/// what one more has does.
#[test]
fn a_mark_that_one_manager_has_alone_runs_nothing() {
    let topology = manxdb_dast::Topology {
        regions: 3,
        shards_per_region: 1,
    };
    let (from, until) = (SimTime::from_millis(700), SimTime::from_millis(1_100));
    let touching = |load: &Load<Increments>| {
        let made = load.made().iter().filter(|made| {
            let args = &made.job.ask.args;
            let is_in_time = (from..until).contains(&made.asked);
            made.job.crosses_regions && is_in_time && (args[0] == 1 || args[2] == 1)
        });
        let latencies = made.map(manxdb_lab::load::Made::latency);
        latencies.collect::<Vec<Option<Nanos>>>()
    };
    let alone = "600ms+10s cut r0 n13; 600ms+10s cut r0 n14";
    let load = faulty(topology, whole(), 30, alone, 1_300);
    let waiting = touching(&load);
    assert!(waiting.len() > 5, "{} calls", waiting.len());
    assert!(waiting.iter().all(Option::is_none), "{waiting:?}");
    let with_another = "600ms+10s cut r0 n13";
    let load = faulty(topology, whole(), 30, with_another, 1_300);
    let longest = touching(&load).into_iter().map(|it| it.expect("it ends"));
    let longest = longest.max().unwrap();
    assert!(longest <= Nanos::from_millis(125), "{longest:?}");
}
