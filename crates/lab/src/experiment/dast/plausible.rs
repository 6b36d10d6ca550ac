//! Which outcomes of a trial can be true, and how they are made false to test verdicts.
//!
//! Clients ask again as soon as they have an answer, so that calls under way are as many as clients
//! all the time (Little's law): that ties rates to latencies, and leaves no call out.

use super::super::{Falsification, demand, within};
use crate::trial::{Spread, Trial, TrialOutcome};

/// One round trip inside a region: no call is answered without one.
const REGION_ROUND_TRIP_MS: f64 = 5.0;
/// From one region to another, without jitter.
const WIDE_ONE_WAY_MS: f64 = 50.0;
/// Samples that a 99th percentile takes, at the least: with fewer it is the maximum.
const SAMPLES_MIN: u64 = 90;

/// Whether an outcome can be true.
pub(super) fn check(trial: &Trial, outcome: &TrialOutcome) -> Result<(), String> {
    demand(outcome.refused == 0, || {
        format!("{} calls failed", outcome.refused)
    })?;
    within("the throughput", outcome.throughput, 0.1, 1e7)?;
    let crossing = 2.0 * (WIDE_ONE_WAY_MS - f64::from(trial.wan_jitter_ms)).max(0.0);
    for (what, spread, floor) in [
        ("an IRT", &outcome.local, REGION_ROUND_TRIP_MS),
        (
            "a CRT",
            &outcome.cross_region,
            crossing + REGION_ROUND_TRIP_MS,
        ),
        (
            "a dependent CRT",
            &outcome.dependent,
            crossing + REGION_ROUND_TRIP_MS,
        ),
    ] {
        if spread.count > 0 {
            ordered(what, spread, floor)?;
        }
    }
    all_calls(trial, outcome)?;
    within(
        "the busiest server's share",
        outcome.busiest_server,
        0.0,
        1.05,
    )?;
    within(
        "all servers' share",
        outcome.mean_server,
        0.0,
        outcome.busiest_server + 1e-6,
    )
}

/// Percentiles rise, from one that is no shorter than messages take.
fn ordered(what: &str, spread: &Spread, floor: f64) -> Result<(), String> {
    let parts = [
        floor, spread.p50, spread.p90, spread.p95, spread.p99, spread.max,
    ];
    demand(parts.is_sorted() && spread.max.is_finite(), || {
        format!("{what} takes {parts:?} ms: floor, then percentiles that must rise")
    })?;
    within(what, spread.mean, floor, spread.max)
}

/// Answers are as many as the rate says, and calls under way as many as clients.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn all_calls(trial: &Trial, outcome: &TrialOutcome) -> Result<(), String> {
    let (local, cross) = (&outcome.local, &outcome.cross_region);
    demand(outcome.dependent.count <= cross.count, || {
        "more CRTs depend on a value than there are".to_owned()
    })?;
    let given_up = outcome.local_given_up + outcome.cross_region_given_up;
    let answers = (local.count + cross.count) as u64;
    demand(given_up <= answers, || {
        "more calls were given up than there are".to_owned()
    })?;
    let took_effect = (answers - given_up) as f64;
    let seconds = trial.measured_ms as f64 / 1e3;
    within(
        "answers, of those that the rate says there are,",
        took_effect / (outcome.throughput * seconds),
        0.999,
        1.001,
    )?;
    let time = (local.mean * local.count as f64 + cross.mean * cross.count as f64) / 1e3;
    let clients = f64::from(trial.clients_per_region()) * f64::from(trial.regions);
    // Calls of seconds that began or end outside of the span.
    let left_out = outcome.left_out_ms / 1e3 / seconds;
    within(
        "calls under way, of one for each client,",
        time / seconds / clients + left_out,
        0.8,
        1.2,
    )
}

/// Of the latencies with the fewest samples: how many, and how many it takes.
pub(super) fn samples(outcome: &TrialOutcome) -> (u64, u64) {
    let fewest = outcome.local.count.min(outcome.cross_region.count);
    (fewest as u64, SAMPLES_MIN)
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut TrialOutcome, how: Falsification) {
    match how {
        Falsification::Zeros => {
            outcome.throughput = 0.0;
            times(outcome, 0.0);
        }
        Falsification::TooFast => times(outcome, 1e-4),
        Falsification::Lost => outcome.refused = 1_000_000,
        Falsification::Worse(by) => {
            outcome.throughput /= by;
            outcome.busiest_server /= by;
            times(outcome, by);
        }
    }
}

fn times(outcome: &mut TrialOutcome, by: f64) {
    let spreads = [
        &mut outcome.local,
        &mut outcome.cross_region,
        &mut outcome.dependent,
    ];
    for spread in spreads {
        let Spread {
            count: _,
            mean,
            p50,
            p90,
            p95,
            p99,
            max,
        } = spread;
        for time in [mean, p50, p90, p95, p99, max] {
            *time *= by;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Scale;
    use super::*;

    fn run() -> (Trial, TrialOutcome) {
        let trial = super::super::ALL[1].plan(Scale::Smoke, 1).remove(0);
        let outcome = trial.run(&mut |_| {}).unwrap();
        (trial, outcome)
    }

    #[test]
    fn what_was_run_can_be_true_and_no_nonsense_can() {
        let (trial, outcome) = run();
        assert_eq!(check(&trial, &outcome), Ok(()));
        for nonsense in Falsification::NONSENSE {
            let mut changed = outcome.clone();
            falsify(&mut changed, nonsense);
            assert!(check(&trial, &changed).is_err(), "{nonsense:?}");
        }
    }

    #[test]
    fn an_irt_of_a_millisecond_and_a_crt_of_three_cannot_be() {
        let (trial, outcome) = run();
        for (kind, floor) in [(0, "an IRT"), (1, "a CRT")] {
            let mut changed = outcome.clone();
            let spreads = [&mut changed.local, &mut changed.cross_region];
            let spread = spreads.into_iter().nth(kind).unwrap();
            (spread.p50, spread.p90, spread.p95) = (1.0, 1.0, 1.0);
            (spread.p99, spread.max, spread.mean) = (3.0, 3.0, 1.0);
            let why = check(&trial, &changed).unwrap_err();
            assert!(why.contains(floor), "{why}");
        }
    }

    #[test]
    fn calls_that_are_left_out_are_missed() {
        let (trial, mut outcome) = run();
        outcome.local.count /= 2;
        let why = check(&trial, &outcome).unwrap_err();
        assert!(why.contains("answers"), "{why}");
    }
}
