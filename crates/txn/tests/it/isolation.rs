//! Thousands of random histories at every level, checked for what the level promises, and
//! planted defects that the same checks must find.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_fixtures::history::{Anomalies, Anomaly, Model, check};
use manxdb_fixtures::local::HookedEngine;
use manxdb_fixtures::schedule::{Plan, run, run_over};
use manxdb_storage::{Options, RocksEngine};
use manxdb_test_harness::seeds;
use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::mutants::Mutants;

const SEEDS: u64 = 1_500;
const MODELS: [Model; 2] = [Model::List, Model::Register];

/// Anomalies over all seeds with the seeds that showed them, and commits counted.
fn survey(isolation: IsolationLevel, model: Model, mutants: Mutants) -> Survey {
    let mut survey = Survey::default();
    for seed in 0..seeds(SEEDS) {
        let mut plan = Plan::new(seed, isolation, model);
        plan.mutants = mutants;
        let history = run(plan);
        survey.committed += history.iter().filter(|txn| txn.is_committed()).count();
        survey.transactions += history.len();
        for anomaly in check(model, &history).into_keys() {
            *survey.seeds.entry(anomaly).or_default() += 1;
        }
    }
    survey
}

#[derive(Debug, Default)]
struct Survey {
    seeds: BTreeMap<Anomaly, u64>,
    committed: usize,
    transactions: usize,
}

/// Checks every seed; panics with the first history that shows more than `allowed`.
fn only(isolation: IsolationLevel, model: Model, allowed: &[Anomaly]) -> Survey {
    let mut survey = Survey::default();
    for seed in 0..seeds(SEEDS) {
        let plan = Plan::new(seed, isolation, model);
        let history = run(plan);
        let found = check(model, &history);
        let forbidden: Anomalies = found
            .iter()
            .filter(|(anomaly, _)| !allowed.contains(anomaly))
            .map(|(anomaly, example)| (*anomaly, example.clone()))
            .collect();
        assert!(
            forbidden.is_empty(),
            "{plan:?}: {forbidden:#?}\n{history:#?}"
        );
        survey.committed += history.iter().filter(|txn| txn.is_committed()).count();
        survey.transactions += history.len();
        for anomaly in found.into_keys() {
            *survey.seeds.entry(anomaly).or_default() += 1;
        }
    }
    println!("{isolation:?} {model:?}: {survey:?}");
    // A database that refuses everything would pass all of the above.
    assert!(
        survey.committed * 100 > survey.transactions * 40,
        "{survey:?}"
    );
    survey
}

#[test]
fn serializable_shows_no_anomaly_and_never_a_stale_state() {
    for model in MODELS {
        only(Serializable, model, &[]);
    }
}

#[test]
fn repeatable_read_shows_write_skew_and_lost_plain_reads_but_one_state_to_readers() {
    let allowed = [
        Anomaly::SingleAntiDependency,
        Anomaly::ItemAntiDependency,
        Anomaly::PredicateAntiDependency,
        Anomaly::StaleRead,
    ];
    for model in MODELS {
        let survey = only(RepeatableRead, model, &allowed);
        assert!(survey.seeds.contains_key(&Anomaly::ItemAntiDependency));
        assert!(survey.seeds.contains_key(&Anomaly::PredicateAntiDependency));
    }
}

#[test]
fn read_committed_shows_also_two_states_to_one_reader_but_nothing_uncommitted() {
    let allowed = [
        Anomaly::InconsistentRead,
        Anomaly::SingleAntiDependency,
        Anomaly::ItemAntiDependency,
        Anomaly::PredicateAntiDependency,
        Anomaly::StaleRead,
    ];
    for model in MODELS {
        let survey = only(ReadCommitted, model, &allowed);
        assert!(survey.seeds.contains_key(&Anomaly::InconsistentRead));
        assert!(survey.seeds.contains_key(&Anomaly::ItemAntiDependency));
    }
}

#[test]
fn every_transaction_gets_its_own_level_among_others() {
    for model in MODELS {
        for seed in 0..seeds(SEEDS) {
            let mut plan = Plan::new(seed, Serializable, model);
            plan.mixed = true;
            let history = run(plan);
            let found = check(model, &history);
            assert!(found.is_empty(), "{plan:?}: {found:#?}\n{history:#?}");
        }
    }
}

/// The durable engine gives the very histories that memory gives.
#[test]
fn what_is_seen_does_not_depend_on_the_engine() {
    for isolation in [ReadCommitted, RepeatableRead, Serializable] {
        for seed in 0..12 {
            let directory = tempfile::tempdir().unwrap();
            let durable = RocksEngine::open(directory.path(), &Options::default()).unwrap();
            let plan = Plan::new(seed, isolation, Model::Register);
            let on_disk = run_over(plan, HookedEngine::over(Arc::new(durable)));
            assert_eq!(format!("{on_disk:?}"), format!("{:?}", run(plan)));
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..50 {
        let plan = Plan::new(seed, Serializable, Model::List);
        assert_eq!(format!("{:?}", run(plan)), format!("{:?}", run(plan)));
    }
}

/// The first seed at which a defect shows one of `expected`.
fn first_seed(
    isolation: IsolationLevel,
    model: Model,
    mutants: Mutants,
    expected: &[Anomaly],
) -> Option<u64> {
    (0..SEEDS).find(|seed| {
        let mut plan = Plan::new(*seed, isolation, model);
        plan.mutants = mutants;
        let found = check(model, &run(plan));
        expected.iter().any(|anomaly| found.contains_key(anomaly))
    })
}

fn is_caught(isolation: IsolationLevel, mutants: Mutants, expected: &[Anomaly]) {
    for model in MODELS {
        let seed = first_seed(isolation, model, mutants, expected);
        println!("{expected:?} in {model:?} at seed {seed:?}");
        assert!(seed.is_some(), "{mutants:?} not caught in {model:?}");
    }
}

#[test]
fn a_commit_that_skips_points_shows_write_skew() {
    let mutants = Mutants {
        skip_point_validation: true,
        ..Mutants::default()
    };
    is_caught(Serializable, mutants, &[Anomaly::ItemAntiDependency]);
}

#[test]
fn a_commit_that_trusts_what_was_used_shows_write_skew() {
    let mutants = Mutants {
        trust_used_parts: true,
        ..Mutants::default()
    };
    is_caught(Serializable, mutants, &[Anomaly::ItemAntiDependency]);
}

#[test]
fn a_commit_that_skips_ranges_shows_phantoms() {
    let mutants = Mutants {
        skip_range_validation: true,
        ..Mutants::default()
    };
    is_caught(Serializable, mutants, &[Anomaly::PredicateAntiDependency]);
}

#[test]
fn a_write_before_validation_shows_aborted_reads() {
    let mutants = Mutants {
        write_before_validation: true,
        ..Mutants::default()
    };
    is_caught(Serializable, mutants, &[Anomaly::AbortedRead]);
}

#[test]
fn hidden_own_writes_are_noticed() {
    let mutants = Mutants {
        hide_own_writes: true,
        ..Mutants::default()
    };
    for isolation in [ReadCommitted, RepeatableRead, Serializable] {
        is_caught(isolation, mutants, &[Anomaly::Internal]);
    }
}

#[test]
fn old_snapshots_show_stale_reads() {
    let mutants = Mutants {
        stale_snapshots: true,
        ..Mutants::default()
    };
    is_caught(Serializable, mutants, &[Anomaly::StaleRead]);
}

#[test]
fn without_locks_and_validation_appends_are_lost() {
    let mutants = Mutants {
        skip_locks: true,
        skip_point_validation: true,
        ..Mutants::default()
    };
    for isolation in [ReadCommitted, RepeatableRead] {
        let expected = [Anomaly::LostWrite];
        let seed = first_seed(isolation, Model::List, mutants, &expected);
        assert!(seed.is_some(), "{isolation:?}");
    }
}

#[test]
fn locks_let_writers_wait_that_would_conflict_without_them() {
    let without = Mutants {
        skip_locks: true,
        ..Mutants::default()
    };
    let with_locks = survey(ReadCommitted, Model::List, Mutants::default());
    let without_locks = survey(ReadCommitted, Model::List, without);
    println!("{with_locks:?}\n{without_locks:?}");
    assert!(with_locks.committed > without_locks.committed);
    // Validation alone keeps the promises; it only refuses more.
    assert!(!without_locks.seeds.contains_key(&Anomaly::LostWrite));
    for model in MODELS {
        let serializable = survey(Serializable, model, without);
        assert!(serializable.seeds.is_empty(), "{serializable:?}");
    }
}
