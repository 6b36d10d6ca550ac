//! Which outcomes of joins and aggregations can be true, and how they are made false to test verdicts.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Falsification, demand, within};

use super::Analysis;
use crate::bench::olap::Outcome;
use crate::cli::OlapShape;

/// A row of eight bytes goes through a processor in no less than two tenths of a nanosecond.
const ROW_FLOOR_NS: f64 = 0.2;
/// One thread a node, and those that send and receive for it.
const THREADS: f64 = 4.0;
/// Rows that a time takes, at the least: below them a run is a few scheduler's ticks.
const SAMPLES_MIN: u64 = 100_000;

/// Whether an outcome can be true.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
pub(super) fn check(trial: &OlapShape, outcome: &Outcome) -> Result<(), String> {
    demand(outcome.nodes == trial.nodes, || {
        "nodes are missing".to_owned()
    })?;
    within("time of a row (ns)", outcome.time_ns(), ROW_FLOOR_NS, 1e6)?;
    // A processor's clock has ticks of ten milliseconds.
    let nodes = f64::from(outcome.nodes);
    let most = (outcome.seconds + 0.02) * nodes * THREADS;
    within("CPU of all nodes (s)", outcome.cpu, 1e-3, most)?;
    demand(outcome.messages > 0 && outcome.bytes > 0, || {
        "nothing was sent".to_owned()
    })?;
    let rows = f64::from(trial.rows) * nodes;
    let (expected, low) = match (trial.selectivity, trial.groups) {
        (Some(share), _) => (share * rows, 0.999),
        // Groups are drawn: of many not all are.
        (None, Some(groups)) => (f64::from(groups), 0.8),
        (None, None) => return Err("neither a join nor an aggregation".to_owned()),
    };
    within(
        "pairs or groups, of those that there are,",
        outcome.found as f64 / expected,
        low,
        1.001,
    )
}

/// All algorithms find the same.
pub(super) fn contradiction(data: &Data<Analysis>) -> Option<String> {
    data.records.iter().find_map(|one| {
        let same = |other: &OlapShape| {
            (other.rows, other.seed, other.groups, other.selectivity)
                == (
                    one.trial.rows,
                    one.trial.seed,
                    one.trial.groups,
                    one.trial.selectivity,
                )
        };
        let others = data.records.iter().filter(|other| same(&other.trial));
        let mut unlike = others.filter(|other| other.outcome.found != one.outcome.found);
        let other = unlike.next()?;
        Some(format!(
            "{} and {} find {} and {} of the same",
            one.trial.algorithm.name(),
            other.trial.algorithm.name(),
            one.outcome.found,
            other.outcome.found
        ))
    })
}

/// Of the numbers of a run: how many rows, and how many it takes.
pub(super) fn samples(outcome: &Outcome) -> (u64, u64) {
    (outcome.rows, SAMPLES_MIN)
}

/// Makes an outcome wrong.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)] // for tests of verdicts
pub(super) fn falsify(outcome: &mut Outcome, how: Falsification) {
    match how {
        Falsification::Zeros => {
            (outcome.found, outcome.messages, outcome.bytes) = (0, 0, 0);
            (outcome.seconds, outcome.cpu) = (0.0, 0.0);
        }
        Falsification::TooFast => {
            outcome.seconds *= 1e-4;
            outcome.cpu *= 1e-4;
        }
        Falsification::Lost => outcome.found /= 2,
        Falsification::Worse(by) => {
            outcome.seconds *= by;
            outcome.cpu *= by;
            outcome.bytes = (outcome.bytes as f64 * by) as u64;
        }
    }
}
