//! What every level promises, over many random histories, and that a defect would be seen.

use std::collections::BTreeMap;

use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::mutants::Mutants;

use crate::isolation::defects::{Defect, index};
use crate::isolation::random::{BY_CODE, Plan, ROWS, Theatre};
use manxdb_fixtures::history::others::{can_be_told, verdict};
use manxdb_fixtures::history::{Anomalies, Anomaly, Model, check};
use manxdb_test_harness::seeds;

const SEEDS: u64 = 300;
const MODELS: [Model; 2] = [Model::List, Model::Register];

/// Checks every seed for more than `allowed`; how often each allowed anomaly was seen.
fn only(plan: &Plan, allowed: &[Anomaly]) -> BTreeMap<Anomaly, u64> {
    let mut theatre = Theatre::new(plan.clone());
    let (mut seen, mut committed, mut transactions) = (BTreeMap::new(), 0, 0);
    for seed in 0..seeds(SEEDS) {
        let history = theatre.play(seed);
        let found = check(plan.model, &history);
        let is_forbidden = |anomaly: &Anomaly| !allowed.contains(anomaly);
        let forbidden: Anomalies = found
            .iter()
            .filter(|(anomaly, _)| is_forbidden(anomaly))
            .map(|(anomaly, example)| (*anomaly, example.clone()))
            .collect();
        assert!(
            forbidden.is_empty(),
            "seed {seed} of {plan:?}: {forbidden:#?}\n{history:#?}"
        );
        committed += history.iter().filter(|txn| txn.is_committed()).count();
        transactions += history.len();
        for anomaly in found.into_keys() {
            *seen.entry(anomaly).or_default() += 1;
        }
    }
    println!("{plan:?}: {committed} of {transactions} committed, {seen:?}");
    // A database that refuses everything would pass all of the above.
    assert!(committed * 100 > transactions * 40);
    seen
}

#[test]
fn serializable_sql_shows_no_anomaly_and_never_a_stale_state() {
    for model in MODELS {
        only(&Plan::new(Serializable, model), &[]);
    }
}

#[test]
fn repeatable_read_sql_shows_write_skew_but_one_state_to_readers() {
    let allowed = [
        Anomaly::SingleAntiDependency,
        Anomaly::ItemAntiDependency,
        Anomaly::PredicateAntiDependency,
        Anomaly::StaleRead,
    ];
    let mut seen = BTreeMap::new();
    for model in MODELS {
        seen.extend(only(&Plan::new(RepeatableRead, model), &allowed));
    }
    assert!(seen.contains_key(&Anomaly::PredicateAntiDependency));
}

#[test]
fn read_committed_sql_shows_two_states_to_one_reader_but_nothing_uncommitted() {
    let allowed = [
        Anomaly::InconsistentRead,
        Anomaly::SingleAntiDependency,
        Anomaly::ItemAntiDependency,
        Anomaly::PredicateAntiDependency,
        Anomaly::StaleRead,
    ];
    let mut seen = BTreeMap::new();
    for model in MODELS {
        seen.extend(only(&Plan::new(ReadCommitted, model), &allowed));
    }
    assert!(seen.contains_key(&Anomaly::InconsistentRead));
}

#[test]
fn every_transaction_gets_its_own_level_among_others() {
    for model in MODELS {
        let mut plan = Plan::new(Serializable, model);
        plan.mixed = true;
        only(&plan, &[]);
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let plan = Plan::new(Serializable, Model::List);
    let (mut one, mut other) = (Theatre::new(plan.clone()), Theatre::new(plan));
    other.play(999);
    for seed in 0..10 {
        assert_eq!(
            format!("{:?}", one.play(seed)),
            format!("{:?}", other.play(seed))
        );
    }
}

/// Names that the crate `adya` gives to what it finds against `model`.
fn others_find(isolation: IsolationLevel, mutants: Mutants, model: &str) -> Vec<String> {
    let mut plan = Plan::new(isolation, Model::List);
    plan.mutants = mutants;
    let mut theatre = Theatre::new(plan);
    let (mut judged, mut found) = (0, Vec::new());
    for seed in 0..seeds(SEEDS) {
        let history = theatre.play(seed);
        if can_be_told(&history) {
            judged += 1;
            found.extend(verdict(&history, model));
        }
    }
    assert!(judged > 15, "{judged} histories without savepoints");
    found
}

#[test]
fn another_checker_agrees() {
    let none = Mutants::default();
    assert!(others_find(Serializable, none, "strict-serializable").is_empty());
    for isolation in [ReadCommitted, RepeatableRead] {
        assert!(others_find(isolation, none, "read-committed").is_empty());
        assert!(!others_find(isolation, none, "serializable").is_empty());
    }
    let blind = Mutants {
        skip_point_validation: true,
        ..none
    };
    assert!(!others_find(Serializable, blind, "strict-serializable").is_empty());
}

/// The defect shows one of `expected` at some seed.
fn is_caught(model: Model, mutants: Mutants, defect: Defect, expected: &[Anomaly]) {
    let mut plan = Plan::new(Serializable, model);
    (plan.mutants, plan.defect) = (mutants, defect);
    let mut theatre = Theatre::new(plan.clone());
    let seed = (0..SEEDS * 10).find(|seed| {
        let found = check(model, &theatre.play(*seed));
        expected.iter().any(|anomaly| found.contains_key(anomaly))
    });
    println!("{expected:?} in {model:?} at seed {seed:?}");
    assert!(seed.is_some(), "not caught: {plan:?}");
}

#[test]
fn every_defect_of_the_commit_path_is_caught_through_sql() {
    let none = Mutants::default();
    let cases: [(Mutants, &[Anomaly]); 4] = [
        (
            Mutants {
                skip_point_validation: true,
                ..none
            },
            &[Anomaly::ItemAntiDependency, Anomaly::SingleAntiDependency],
        ),
        (
            Mutants {
                skip_range_validation: true,
                ..none
            },
            &[Anomaly::PredicateAntiDependency],
        ),
        (
            Mutants {
                write_before_validation: true,
                ..none
            },
            &[Anomaly::AbortedRead],
        ),
        (
            Mutants {
                stale_snapshots: true,
                ..none
            },
            &[Anomaly::StaleRead],
        ),
    ];
    for (mutants, expected) in cases {
        is_caught(Model::Register, mutants, Defect::default(), expected);
    }
}

/// A scan of an index that records the rows it found but not the index shows phantoms.
#[test]
fn an_index_that_nobody_records_is_caught() {
    let defect = Defect {
        unrecorded: vec![index(BY_CODE.0, BY_CODE.1)],
        ..Defect::default()
    };
    let phantoms = [
        Anomaly::PredicateAntiDependency,
        Anomaly::ItemAntiDependency,
    ];
    is_caught(Model::Register, Mutants::default(), defect, &phantoms);
}

/// And one that records the index but not the rows it leads to misses their changes.
#[test]
fn rows_that_nobody_records_are_caught() {
    let defect = Defect {
        unrecorded: vec![index(ROWS.0, ROWS.1)],
        ..Defect::default()
    };
    let skew = [Anomaly::ItemAntiDependency, Anomaly::SingleAntiDependency];
    is_caught(Model::List, Mutants::default(), defect, &skew);
}
