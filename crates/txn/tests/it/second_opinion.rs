//! The same histories judged by the crate `adya`, a checker written by others from the same
//! definitions: it must find nothing where ours finds nothing, and see our planted defects.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use manxdb_fixtures::history::Model;
use manxdb_fixtures::history::others::{can_be_told, verdict};
use manxdb_fixtures::schedule::{Plan, run};
use manxdb_test_harness::seeds;
use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::mutants::Mutants;

const SEEDS: u64 = 400;

/// Seeds judged, and those found wrong with what was found first.
fn judge(isolation: IsolationLevel, mutants: Mutants, model: &str) -> (u64, Vec<(u64, String)>) {
    let (mut judged, mut wrong) = (0, Vec::new());
    for seed in 0..seeds(SEEDS) {
        let mut plan = Plan::new(seed, isolation, Model::List);
        plan.mutants = mutants;
        let history = run(plan);
        if !can_be_told(&history) {
            continue;
        }
        judged += 1;
        let found = verdict(&history, model);
        if !found.is_empty() {
            wrong.push((seed, found.join(" ")));
        }
    }
    println!(
        "{isolation:?} as {model}: {judged} judged, {} wrong",
        wrong.len()
    );
    (judged, wrong)
}

#[test]
fn serializable_histories_are_strictly_serializable() {
    let (judged, wrong) = judge(Serializable, Mutants::default(), "strict-serializable");
    assert!(judged > 50);
    assert_eq!(wrong, []);
}

#[test]
fn weaker_levels_keep_read_committed_and_no_more() {
    for isolation in [ReadCommitted, RepeatableRead] {
        let (_, wrong) = judge(isolation, Mutants::default(), "read-committed");
        assert_eq!(wrong, [], "{isolation:?}");
        let (_, wrong) = judge(isolation, Mutants::default(), "serializable");
        assert_ne!(wrong, [], "{isolation:?}");
    }
}

#[test]
fn planted_defects_are_seen_by_others_too() {
    let none = Mutants::default();
    for mutants in [
        Mutants {
            skip_point_validation: true,
            ..none
        },
        Mutants {
            skip_range_validation: true,
            ..none
        },
        Mutants {
            write_before_validation: true,
            ..none
        },
        Mutants {
            hide_own_writes: true,
            ..none
        },
        Mutants {
            stale_snapshots: true,
            ..none
        },
    ] {
        let (_, wrong) = judge(Serializable, mutants, "strict-serializable");
        assert_ne!(wrong, [], "{mutants:?}");
    }
}
