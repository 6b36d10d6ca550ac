//! Which outcomes of checkouts can be true, and how they are made false to test verdicts.

use manxdb_lab::experiment::{Falsification, demand, within};

use super::Trial;
use crate::bench::checkout::Outcome;
use crate::cli::System;

/// A checkout reads and writes more than twenty lines of memory that other processes have as well,
/// of which each takes ten nanoseconds at the least.
const MEMORY_FLOOR_US: f64 = 0.2;
/// Six messages through sockets or mailboxes, one after another, at a microsecond each.
const MESSAGES_FLOOR_US: f64 = 6.0;
/// Checkouts that a 99th percentile takes, at the least.
const SAMPLES_MIN: u64 = 1_000;
/// More processes than cores wait for each other, so that a median says less than the mean: tries under
/// way that are seen, of one for each client.
const SEEN_MIN: f64 = 0.1;

/// Whether an outcome can be true.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
pub(super) fn check(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    demand(outcome.committed > 0, || "nothing was committed".to_owned())?;
    within("the length of a run (s)", outcome.seconds, 1e-6, 86_400.0)?;
    let floor = match trial {
        Trial::Measured(shape) => match shape.system {
            System::Rsi | System::RsiSerializable | System::RsiPublished => MEMORY_FLOOR_US,
            System::TwoSided | System::TradSi => MESSAGES_FLOOR_US,
        },
        Trial::Simulated(trial) => trial.floor_us(),
    };
    within("the median of a try (µs)", outcome.p50_us, floor, 1e9)?;
    within(
        "the 99th percentile of a try (µs)",
        outcome.p99_us,
        outcome.p50_us,
        1e9,
    )?;
    let tries = (outcome.committed + outcome.aborted) as f64 / outcome.seconds;
    let under_way = tries * outcome.p50_us / 1e6 / f64::from(trial.clients());
    within(
        "tries under way, of one for each client,",
        under_way,
        SEEN_MIN,
        1.5,
    )?;
    let cpu_us = outcome.cpu_us();
    within("CPU of a checkout (µs)", cpu_us, MEMORY_FLOOR_US, 1e7)?;
    within("CPU of servers (s)", outcome.server_cpu, 0.0, 1e9)?;
    if let Trial::Simulated(trial) = trial {
        within("the rate", outcome.rate(), 0.0, trial.rate_max())?;
    }
    Ok(())
}

/// Of the numbers of a run: how many checkouts, and how many it takes.
pub(super) fn samples(outcome: &Outcome) -> (u64, u64) {
    (outcome.committed, SAMPLES_MIN)
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut Outcome, how: Falsification) {
    match how {
        Falsification::Zeros => {
            *outcome = Outcome {
                committed: 0,
                aborted: 0,
                seconds: 0.0,
                client_cpu: 0.0,
                server_cpu: 0.0,
                p50_us: 0.0,
                p99_us: 0.0,
            }
        }
        Falsification::TooFast => times(outcome, 1e-4),
        Falsification::Lost => {
            outcome.committed /= 100;
            outcome.aborted /= 100;
        }
        Falsification::Worse(by) => times(outcome, by),
    }
}

fn times(outcome: &mut Outcome, by: f64) {
    let Outcome {
        committed: _,
        aborted: _,
        seconds,
        client_cpu,
        server_cpu,
        p50_us,
        p99_us,
    } = outcome;
    for time in [seconds, client_cpu, server_cpu, p50_us, p99_us] {
        *time *= by;
    }
}
