//! DAST in virtual time: the latencies of an unloaded cluster, to the microsecond.
#![allow(clippy::unwrap_used)]

use crate::common::{Increments, run_to_rest};
use manxdb_core::Nanos;
use manxdb_dast::mutants::Mutant;
use manxdb_dast::{Crossing, Level, Options, RegionId, Topology};
use manxdb_lab::dast::{DastSystem, paper_links, place};
use manxdb_lab::load::{Load, LoadOptions, percentile};
use manxdb_sim::{Fault, FaultKind, Link, SimTime, World, WorldOptions};
use manxdb_txn::procedure::ShardId;

/// No call is made after this.
const ENDS: SimTime = SimTime::from_millis(3_500);

struct Run {
    topology: Topology,
    world: World<DastSystem>,
    load: Load<Increments>,
}

fn run(topology: Topology, clients: u32, crt_percent: u64, links: (Link, Link)) -> Run {
    let options = options(Crossing::Anticipated);
    run_with(options, &[], topology, clients, crt_percent, links)
}

fn options(crossing: Crossing) -> Options {
    Options {
        crossing,
        keeps_order: true,
        ..Options::default()
    }
}

fn run_with(
    options: Options,
    faults: &[Fault],
    topology: Topology,
    clients: u32,
    crt_percent: u64,
    links: (Link, Link),
) -> Run {
    let (places, clients) = place(topology, clients, links.0, links.1);
    let system = DastSystem::new(crate::common::shared(topology, options));
    let mut world = World::new(system, WorldOptions::new(7, places));
    for fault in faults {
        world.schedule(fault.clone());
    }
    let generator = Increments {
        topology,
        crt_percent,
        level: Level::Serializable,
    };
    let options = LoadOptions {
        clients,
        outstanding: 1,
        until: ENDS,
        explain: false,
    };
    let mut load = Load::new(generator, options);
    let span = (ENDS, SimTime::from_secs(6));
    run_to_rest(&mut world, &mut load, topology, span).unwrap();
    assert_eq!(load.open(), 0, "every call ends");
    let run = Run {
        topology,
        world,
        load,
    };
    run.is_the_same_on_all_replicas();
    run
}

impl Run {
    fn is_the_same_on_all_replicas(&self) {
        for shard in (0..self.topology.shards()).map(ShardId) {
            let look = |node| self.world.core(node)?.replica();
            let replicas = crate::common::live(self.topology, shard, look);
            assert_eq!(replicas.len(), 3);
            let order = replicas[0].execution().order();
            assert!(order.len() > 20 && order.is_sorted());
            for replica in &replicas {
                assert_eq!(replica.execution().order(), order);
                assert_eq!(
                    replica.execution().digest(),
                    replicas[0].execution().digest()
                );
                assert!(replica.records() < 100, "{} records", replica.records());
            }
        }
    }

    /// The median, the 99th percentile and the largest latency.
    fn latencies(&self, crosses_regions: bool) -> (Nanos, Nanos, Nanos) {
        let (from, until) = (SimTime::from_secs(1), ENDS);
        let all = self.load.latencies(crosses_regions, from, until);
        (
            percentile(&all, 50),
            percentile(&all, 99),
            percentile(&all, 100),
        )
    }
}

const THREE_BY_TWO: Topology = Topology {
    regions: 3,
    shards_per_region: 2,
};

#[test]
fn a_local_transaction_takes_two_local_round_trips_and_the_gate() {
    let (median, tail, max) = run(THREE_BY_TWO, 4, 0, paper_links()).latencies(false);
    // 2.5 to the coordinator, 2.5 back, 5 for the clocks to the manager and back, and up to one
    // interval of reports; 2.5 more where another shard's output is needed.
    assert!(median >= Nanos::from_millis(10) && median <= Nanos::from_micros(12_501));
    assert!(tail <= Nanos::from_micros(15_001), "{tail:?}");
    assert!(max <= Nanos::from_micros(15_001), "{max:?}");
}

#[test]
fn a_cross_region_transaction_takes_two_wide_round_trips_and_local_hops() {
    let run = run(THREE_BY_TWO, 4, 10, paper_links());
    let (median, tail, _) = run.latencies(true);
    // 2.5 + 50 + 5 in the ledger + 50 + 50 + 2.5 + 2.5 + 2.5 for the clocks + 50 + 2.5
    assert_eq!(median, Nanos::from_micros(217_500));
    assert!(tail <= Nanos::from_millis(225), "{tail:?}");
    let (_, tail, max) = run.latencies(false);
    assert!(
        tail <= Nanos::from_micros(15_001) && max <= Nanos::from_millis(16),
        "{tail:?} {max:?}"
    );
}

#[test]
fn local_transactions_do_not_notice_jitter_of_the_wide_network() {
    let (lan, wan) = paper_links();
    let wan = wan.with_jitter(Nanos::from_millis(30));
    let (_, calm, _) = run(THREE_BY_TWO, 4, 10, paper_links()).latencies(false);
    let (_, tail, max) = run(THREE_BY_TWO, 4, 10, (lan, wan)).latencies(false);
    assert!(
        tail <= calm + Nanos::from_millis(1),
        "{tail:?} instead of {calm:?}, at most {max:?}"
    );
}

#[test]
fn local_transactions_do_not_notice_how_many_cross_regions() {
    let (_, calm, _) = run(THREE_BY_TWO, 4, 0, paper_links()).latencies(false);
    let (_, tail, _) = run(THREE_BY_TWO, 4, 90, paper_links()).latencies(false);
    assert!(
        tail <= calm + Nanos::from_millis(1),
        "{tail:?} instead of {calm:?}"
    );
}

#[test]
fn without_floors_on_all_nodes_local_transactions_wait_for_cross_region_ones() {
    let options = Options {
        keeps_order: true,
        mutant: Some(Mutant::NoFloorsElsewhere),
        ..Options::default()
    };
    let topology = Topology {
        regions: 3,
        shards_per_region: 5,
    };
    // With even delays decisions arrive just when they are expected, and no floor is reached.
    let (lan, wan) = paper_links();
    let links = (lan, wan.with_jitter(Nanos::from_millis(30)));
    let (_, _, calm) = run(topology, 4, 10, links).latencies(false);
    let (_, _, waits) = run_with(options, &[], topology, 4, 10, links).latencies(false);
    assert!(calm <= Nanos::from_micros(17_501), "{calm:?}");
    assert!(waits >= Nanos::from_millis(25), "{waits:?}");
}

/// Cross-region transactions ordered ahead: one wide round trip instead of two; of all the above
/// nothing else changes.
#[test]
fn ordered_ahead_local_transactions_notice_neither_jitter_nor_how_many_cross_regions() {
    let (lan, wan) = paper_links();
    let shaken = (lan, wan.with_jitter(Nanos::from_millis(30)));
    for (crt_percent, links) in [(10, paper_links()), (90, paper_links()), (10, shaken)] {
        let options = options(Crossing::Ahead);
        let run = run_with(options, &[], THREE_BY_TWO, 4, crt_percent, links);
        let (_, tail, max) = run.latencies(false);
        let case = format!("{crt_percent} %, {links:?}");
        assert!(tail <= Nanos::from_micros(15_001), "{case}: {tail:?}");
        assert!(max <= Nanos::from_millis(16), "{case}: {max:?}");
        let (median, tail, _) = run.latencies(true);
        if links == paper_links() {
            assert_eq!(median, Nanos::from_millis(120), "{case}");
            assert!(tail <= Nanos::from_millis(125), "{case}: {tail:?}");
        }
    }
}

#[test]
fn a_manager_that_took_over_is_found_at_once() {
    let manager = THREE_BY_TWO.managers(RegionId(1)).next().unwrap();
    let crash = Fault {
        at: SimTime::from_millis(300),
        lasts: Nanos::from_millis(500),
        kind: FaultKind::Crash {
            node: manager,
            disk_lost: true,
        },
    };
    // The median, and the tail; both are those of a calm network.
    let most = [
        (Crossing::Anticipated, [225, 300]),
        (Crossing::Ahead, [125, 150]),
    ];
    for (crossing, [most, most_of_tail]) in most {
        let faults = [crash.clone()];
        let run = run_with(
            options(crossing),
            &faults,
            THREE_BY_TWO,
            4,
            30,
            paper_links(),
        );
        let all = run.load.latencies(true, SimTime::from_secs(2), ENDS);
        let (median, tail) = (percentile(&all, 50), percentile(&all, 99));
        // Others still ask the one that led before, which passes it on.
        assert!(
            median <= Nanos::from_millis(most),
            "{crossing:?}: {median:?}"
        );
        assert!(
            tail <= Nanos::from_millis(most_of_tail),
            "{crossing:?}: {tail:?}"
        );
    }
}
