//! Which outcomes can be true, and how they are made false to test verdicts.

use manxdb_lab::experiment::{Falsification, demand, within};

use super::trial::{Answerer, Outcome, Pace, Trial};
use crate::lab::curp::trial::Spread;

/// Two calls into the kernel take no less, in microseconds.
const ROUND_FLOOR_US: f64 = 0.5;
/// A program looks at a packet in no less CPU, in microseconds.
const OWN_FLOOR_US: f64 = 0.02;
/// Rounds that a 99.9th percentile takes, at the least.
const SAMPLES_MIN: u64 = 2_000;
/// Of a flood's records, so many are accepted at the least: a full set refuses some.
const ACCEPTED_MIN: f64 = 0.7;

/// Whether an outcome can be true.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
pub(super) fn check(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    if let Some(why) = &outcome.lacking {
        return demand(outcome.answered == 0 && !why.is_empty(), || {
            "something was measured of what could not run".to_owned()
        });
    }
    let each = match trial.pace {
        Pace::Flood => 1,
        Pace::Rounds => u64::from(trial.witnesses),
    };
    let asked = u64::from(trial.requests) * each;
    demand(outcome.answered == asked, || {
        format!("{} requests were answered, of {asked}", outcome.answered)
    })?;
    let is_witness = trial.answerer != Answerer::Nobody;
    let least = match trial.pace {
        // The others are collections.
        Pace::Flood if is_witness => ACCEPTED_MIN * 0.8,
        _ => 0.99,
    };
    let accepted = outcome.accepted as f64 / outcome.answered.max(1) as f64;
    within("records accepted, of all requests,", accepted, least, 1.0)?;
    within("seconds", outcome.seconds, 1e-6, 86_400.0)?;
    if trial.pace == Pace::Flood {
        within("CPU of a request (µs)", outcome.all_us(), 0.1, 1e6)?;
    }
    match trial.pace {
        Pace::Flood if is_witness => {
            within(
                "CPU of the witness for a request (µs)",
                outcome.own_us(),
                OWN_FLOOR_US,
                1e4,
            )?;
            let most = outcome.seconds * 1.1 + 0.1;
            within("CPU of the witness (s)", outcome.witness_cpu, 0.0, most)
        }
        Pace::Flood => Ok(()),
        Pace::Rounds => rounds(trial, outcome),
    }
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn rounds(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    let Spread {
        count,
        mean,
        p50,
        p99,
        p999,
    } = outcome.rounds;
    demand(count == u64::from(trial.requests), || {
        format!("{count} rounds were measured, of {}", trial.requests)
    })?;
    within("the median of a round (µs)", p50, ROUND_FLOOR_US, 1e7)?;
    within("the 99th percentile of a round (µs)", p99, p50, 1e7)?;
    within("the 99.9th percentile of a round (µs)", p999, p99, 1e8)?;
    let share = mean * count as f64 / 1e6 / outcome.seconds;
    within("rounds, of all the time,", share, 0.01, 1.05)
}

/// Rounds or requests: how many, and how many it takes.
pub(super) fn samples(outcome: &Outcome) -> (u64, u64) {
    if outcome.lacking.is_some() {
        return (SAMPLES_MIN, SAMPLES_MIN);
    }
    (outcome.answered, SAMPLES_MIN)
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut Outcome, how: Falsification) {
    let Some(by) = how.factor() else {
        outcome.answered /= 2;
        return;
    };
    let Spread {
        mean,
        p50,
        p99,
        p999,
        ..
    } = &mut outcome.rounds;
    let rounds = [mean, p50, p99, p999];
    let cpu = [&mut outcome.all_cpu, &mut outcome.witness_cpu];
    for number in rounds.into_iter().chain(cpu) {
        *number *= by;
    }
    outcome.seconds *= by;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::curp::trial::Carrier;

    #[test]
    fn a_witness_that_was_not_measured_is_not_believed() {
        let trial = Trial {
            answerer: Answerer::Witness(Carrier::User),
            witnesses: 1,
            busy: false,
            pace: Pace::Flood,
            requests: 100,
            seed: 1,
        };
        let outcome = Outcome {
            answered: 100,
            accepted: 80,
            seconds: 0.001,
            all_cpu: 0.001,
            witness_cpu: 0.000_5,
            ..Outcome::default()
        };
        assert_eq!(check(&trial, &outcome), Ok(()));
        let wrong: [fn(&mut Outcome); 4] = [
            |outcome| outcome.witness_cpu = 0.0,
            |outcome| outcome.accepted = 10,
            |outcome| outcome.answered = 99,
            |outcome| outcome.lacking = Some("a right".to_owned()),
        ];
        for wrong in wrong {
            let mut outcome = outcome.clone();
            wrong(&mut outcome);
            assert!(check(&trial, &outcome).is_err(), "{outcome:?}");
        }
    }
}
