//! A history in the notation of the crate `adya`, and its verdict.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use adya::{History, Opts, Valid, Workload};

use crate::history::{Observed, Step};

/// Histories in the notation of that checker have no savepoints.
pub fn can_be_told(history: &[Observed]) -> bool {
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
pub fn verdict(history: &[Observed], model: &str) -> Vec<String> {
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
