//! The same histories judged by the crate `adya`, a checker written by others from the same
//! definitions: it must find nothing where ours finds nothing, and see our planted defects.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

mod common;
mod history;
mod schedule;

use std::fmt::Write;

use adya::{History, Opts, Valid, Workload};
use history::{Model, Observed, Step};
use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::testing::Mutants;
use schedule::{Plan, run};

const SEEDS: u64 = 400;

/// Histories in the notation of that checker have no savepoints.
fn can_be_told(history: &[Observed]) -> bool {
    let is_undo = |step: &Step| matches!(step, Step::Undo { .. });
    !history.iter().any(|txn| txn.steps.iter().any(is_undo))
}

/// The operations of a transaction; before it ran nobody knows what its reads will find.
fn operations(txn: &Observed, with_results: bool) -> String {
    let mut operations = Vec::new();
    for step in &txn.steps {
        match step {
            Step::Read { rows, .. } => {
                for (key, value) in rows {
                    let value = if with_results {
                        format!("{value:?}")
                    } else {
                        "null".into()
                    };
                    operations.push(format!(r#"["r",{key},{value}]"#));
                }
            }
            Step::Write { key, element, .. } => {
                operations.push(format!(r#"["append",{key},{element}]"#));
            }
            Step::Undo { .. } => {}
        }
    }
    operations.join(",")
}

/// Begins and ends in the order of time, one process a transaction.
fn tell(history: &[Observed]) -> String {
    let mut events = Vec::new();
    for (process, txn) in history.iter().enumerate() {
        let end = if txn.is_committed() { "ok" } else { "fail" };
        for (moment, kind, results) in [(txn.began, "invoke", false), (txn.ended, end, true)] {
            let operations = operations(txn, results && txn.is_committed());
            let line = format!(r#"{{"type":"{kind}","process":{process},"value":[{operations}]}}"#);
            // At one moment of the schedule an end comes before a beginning.
            events.push((moment, !results, process, line));
        }
    }
    events.sort();
    events.into_iter().fold(String::new(), |mut text, event| {
        writeln!(text, "{}", event.3).unwrap();
        text
    })
}

/// Names of the anomalies found against `model`.
fn verdict(history: &[Observed], model: &str) -> Vec<String> {
    let parsed = History::from_json(&tell(history)).unwrap();
    let options = Opts {
        models: vec![model.into()],
        ..Opts::default()
    };
    let report = adya::check(&parsed, Workload::ListAppend, &options);
    match report.valid {
        Valid::False => report.anomaly_types,
        // Unknown is said of histories in which nothing depends on anything.
        _ => Vec::new(),
    }
}

/// Seeds judged, and those found wrong with what was found first.
fn judge(isolation: IsolationLevel, mutants: Mutants, model: &str) -> (u64, Vec<(u64, String)>) {
    let (mut judged, mut wrong) = (0, Vec::new());
    for seed in 0..SEEDS {
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
