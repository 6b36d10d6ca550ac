//! Every way to fail that DAST is to survive, each by itself. The table in
//! `docs/geo-ordering.md` says which test is which scenario.
#![allow(clippy::unwrap_used, clippy::panic)]

use manxdb_core::{Nanos, NodeId};
use manxdb_dast::{Crossing, Level, Options};
use manxdb_lab::soak::{Ran, Setting};
use manxdb_sim::hunt::Case;
use manxdb_sim::{CostModel, Plan, SimTime};
use manxdb_test_harness::seeds;
use manxdb_workloads::Topology;
use manxdb_workloads::append::Settings;

/// Seeds of each scenario, in each of the two modes.
const SEEDS: u64 = 2;

/// Two regions of one shard: replicas n0 to n2 and n3 to n5, managers n6 to n8 and n9 to n11.
fn small() -> Setting {
    Setting::small()
}

fn plan(text: &str) -> Plan {
    text.parse().unwrap()
}

/// Runs it with places anticipated and with places given ahead; which lasted longer.
fn run(setting: &Setting, seed: u64, faults: &str) -> Ran {
    let run = |crossing: Crossing| {
        let options = Options {
            crossing,
            ..Options::default()
        };
        let plan = plan(faults);
        match setting.run(&Case { seed, plan }, options) {
            Ok(ran) => ran,
            Err(wrong) => panic!("{crossing:?}, seed {seed}, {faults}: {wrong}"),
        }
    };
    let [one, other] = Crossing::ALL.map(run);
    if one.lasted > other.lasted {
        one
    } else {
        other
    }
}

fn holds(setting: &Setting, faults: &str) {
    for seed in 0..seeds(SEEDS) {
        run(setting, seed, faults);
    }
}

// ── clocks ────────────────────────────────────────────────────────────────────────────────────

#[test]
fn clocks_are_off_from_the_start() {
    for millis in [1, 10, 100, 500] {
        let mut setting = small();
        setting.clocks.offset_max = Nanos::from_millis(millis);
        holds(&setting, "");
    }
}

#[test]
fn clocks_drift() {
    let mut setting = small();
    setting.clocks.drift_max_ppm = 200;
    holds(
        &setting,
        "300ms+2s drift n1 200ppm; 300ms+2s drift n3 -200ppm",
    );
}

#[test]
fn a_clock_is_set_back() {
    for node in 0..12 {
        run(&small(), 1, &format!("1s+0s step n{node} -500ms"));
    }
}

#[test]
fn a_clock_leaps_ten_seconds_ahead() {
    for node in 0..12 {
        let ran = run(&small(), 1, &format!("1s+0s step n{node} 10s"));
        // Nobody waits until the others' clocks are there.
        assert!(ran.lasted < Nanos::from_secs(6), "n{node}: {ran:?}");
    }
}

/// Two of three: the region's median is wrong.
#[test]
fn most_clocks_of_a_region_are_set() {
    for by in ["-3s", "-9s", "3s", "10s"] {
        let faults = format!("1s+0s step n3 {by}; 1100ms+0s step n4 {by}");
        let ran = run(&small(), 2, &faults);
        // Back is not followed; ahead, the region is until the others' clocks are there.
        let is_back = by.starts_with('-');
        assert!(
            !is_back || ran.lasted < Nanos::from_secs(6),
            "{by}: {ran:?}"
        );
    }
}

#[test]
fn a_clock_stands_still() {
    for node in 0..12 {
        run(&small(), 1, &format!("1s+1s freeze n{node}"));
    }
}

// ── network ───────────────────────────────────────────────────────────────────────────────────

#[test]
fn the_wide_network_jitters() {
    for millis in [10, 30, 80] {
        let mut setting = small();
        setting.wan.jitter = Nanos::from_millis(millis);
        holds(&setting, "");
    }
}

#[test]
fn messages_are_lost_and_sent_again() {
    holds(
        &small(),
        "300ms+2s loss r0>r1 200000ppm; 300ms+2s loss r1>r0 200000ppm",
    );
    holds(&small(), "300ms+2s loss *>* 50000ppm");
}

#[test]
fn one_direction_is_slower_than_the_other() {
    holds(&small(), "300ms+2s delay r0>r1 80ms");
}

#[test]
fn a_node_is_not_heard_but_hears() {
    for node in 0..12 {
        run(&small(), 1, &format!("1s+400ms cut n{node} *"));
    }
}

#[test]
fn a_node_is_heard_but_does_not_hear() {
    for node in 0..12 {
        run(&small(), 1, &format!("1s+400ms cut * n{node}"));
    }
}

#[test]
fn a_region_is_not_heard_but_hears() {
    holds(&small(), "800ms+1s cut r0 r1");
}

#[test]
fn a_region_is_cut_off_for_one_to_thirty_seconds() {
    for secs in [1, 3, 10, 30] {
        let mut setting = small();
        setting.load_until = SimTime::from_secs(secs.min(3) + 1);
        run(&setting, secs, &format!("800ms+{secs}s part r0 *"));
    }
}

#[test]
fn one_region_is_far_away() {
    let mut setting = small();
    setting.topology.regions = 3;
    holds(
        &setting,
        "300ms+2s delay r2>* 70ms; 300ms+2s delay *>r2 70ms",
    );
}

/// Datagrams overtake each other; the channel puts them in order again, but not those of a manager
/// behind those of its successor.
#[test]
fn decisions_and_timestamps_overtake_each_other() {
    holds(
        &small(),
        "300ms+2s reorder *>* 300000ppm 60ms; 900ms+500ms wipe n6; 1700ms+500ms wipe n9",
    );
}

#[test]
fn messages_come_twice() {
    holds(&small(), "300ms+2s duplicate *>* 500000ppm");
}

// ── nodes ─────────────────────────────────────────────────────────────────────────────────────

#[test]
fn any_server_restarts_with_nothing() {
    for node in 0..12 {
        run(&small(), 1, &format!("1s+700ms wipe n{node}"));
        run(&small(), 2, &format!("1s+5ms wipe n{node}"));
    }
}

/// Others hear late that it is back, and what it stamps then before that.
#[test]
fn a_replica_that_is_back_is_believed_at_once() {
    let mut setting = small();
    setting.lan.jitter = Nanos::from_micros(2_400);
    setting.clients_per_shard = 4;
    setting.outstanding = 3;
    for node in 0..6 {
        holds(&setting, &format!("1s+10ms wipe n{node}"));
    }
}

/// A new manager tells of transactions that the last one had given up, and a new replica hears of
/// them when its peers have long forgotten them.
#[test]
fn what_was_given_up_is_told_of_again() {
    let every = if seeds(1) > 1 { 1 } else { 2 };
    for hundreds in (24..32).step_by(every) {
        let at = hundreds * 100;
        run(
            &small(),
            1,
            &format!("800ms+3s cut r0 r1; {at}ms+1us wipe n9"),
        );
        let both = format!("{at}ms+1us wipe n6; {at}ms+6ms wipe n2");
        run(&small(), 2, &format!("800ms+1300ms part r1 r0; {both}"));
    }
}

#[test]
fn one_of_everything_fails_at_once() {
    let mut setting = small();
    setting.topology.shards_per_region = 2;
    // Replicas n0 to n11, managers n12 to n14 and n15 to n17.
    for (first, second) in [(0, 0), (1, 2), (2, 1)] {
        let nodes = [0, 3, 6, 9].map(|shard| shard + first);
        let nodes = nodes
            .into_iter()
            .chain([12, 15].map(|group| group + second));
        let faults = nodes.map(|node| format!("1s+600ms wipe n{node}"));
        let faults: Vec<String> = faults.collect();
        holds(&setting, &faults.join("; "));
    }
}

#[test]
fn a_node_is_ten_times_slower() {
    let mut setting = small();
    setting.cost = CostModel::default();
    for node in 0..12 {
        run(&setting, 1, &format!("500ms+1500ms slow n{node} x10"));
    }
}

#[test]
fn a_node_sleeps_and_wakes_up_unaware() {
    for node in 0..12 {
        for millis in [30, 60, 800] {
            run(&small(), 1, &format!("1s+{millis}ms pause n{node}"));
        }
    }
}

// ── load ──────────────────────────────────────────────────────────────────────────────────────

fn crossing(share: f64) -> Settings {
    Settings {
        cross_region: share,
        ..Settings::default()
    }
}

#[test]
fn all_want_the_same_list() {
    let mut setting = small();
    setting.clients_per_shard = 4;
    setting.lists.lists_per_shard = 1;
    holds(&setting, "1s+300ms wipe n0");
}

#[test]
fn nine_of_ten_cross_regions() {
    let mut setting = small();
    setting.clients_per_shard = 4;
    setting.lists = crossing(0.9);
    holds(&setting, "1s+300ms wipe n0");
}

#[test]
fn every_transaction_waits_for_another_regions_values() {
    let mut setting = small();
    setting.lists = Settings {
        deferred: 1.0,
        ..crossing(1.0)
    };
    holds(&setting, "");
    holds(&setting, "1s+300ms wipe n0");
}

/// All clients of three regions at once, each from its own to the two others.
#[test]
fn three_regions_call_each_other_at_once() {
    let mut setting = small();
    setting.topology = Topology {
        regions: 3,
        shards_per_region: 1,
    };
    setting.outstanding = 8;
    setting.lists = Settings {
        operations_max: 3,
        ..crossing(1.0)
    };
    setting.load_until = SimTime::from_millis(1_000);
    holds(&setting, "");
    holds(&setting, "600ms+300ms wipe n9");
}

/// Clients ask again before a cross-region answer can be there: each is asked of all replicas.
#[test]
fn clients_ask_again_before_an_answer_can_come() {
    for level in [Level::Serializable, Level::Session, Level::Strict] {
        let mut setting = small();
        setting.level = level;
        setting.client_patience = Nanos::from_millis(90);
        holds(&setting, "");
        holds(&setting, "1s+300ms wipe n1; 1s+300ms wipe n3");
    }
}

/// The same names in a session, over all the failures above at once.
#[test]
fn sessions_and_strict_clients_live_through_failures() {
    for level in [Level::Session, Level::Strict] {
        let mut setting = small();
        setting.level = level;
        setting.wan.jitter = Nanos::from_millis(20);
        setting.clocks.offset_max = Nanos::from_millis(5);
        holds(
            &setting,
            "500ms+300ms wipe n0; 800ms+300ms wipe n9; 1200ms+400ms part r0 r1; 2s+200ms pause n4",
        );
    }
}

#[test]
fn servers_have_the_numbers_that_these_tests_name() {
    let topology = manxdb_dast::Topology {
        regions: 2,
        shards_per_region: 1,
    };
    assert_eq!(topology.servers(), 12);
    let first = topology.managers(manxdb_dast::RegionId(1)).next();
    assert_eq!(first, Some(NodeId(9)));
}
