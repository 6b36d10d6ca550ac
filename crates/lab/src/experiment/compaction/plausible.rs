//! Which outcomes of databases that share workers can be true, and how they are made false to test
//! verdicts.

use super::super::{Falsification, demand, within};
use crate::caas_many::{CaasOutcome, Group, Trial, Who};
use crate::trial::Spread;

/// From asking the control plane until a slot begins there are messages: two of a millisecond.
const ASKED_MS: f64 = 2.0;
/// Jobs that a 99th percentile of queues takes, at the least.
const SAMPLES_MIN: u64 = 100;

/// Whether an outcome can be true.
pub(super) fn check(trial: &Trial, outcome: &CaasOutcome) -> Result<(), String> {
    let is_local = trial.who == Who::Local;
    let floor = if is_local { 0.0 } else { ASKED_MS };
    for (what, group) in [("others", &outcome.others), ("the greedy", &outcome.greedy)] {
        jobs(what, group, floor)?;
    }
    // More than the disk takes is not written.
    let seconds = f64::from(trial.minutes) * 60.0;
    let most = f64::from(trial.databases) * f64::from(trial.write_speed) * seconds;
    within("MiB written by others", outcome.others.written, 1.0, most)?;
    within("Jain's index", outcome.jain, 1e-3, 1.0)?;
    within("the share of slots that worked", outcome.busy, 0.0, 1.0)?;
    let shares = outcome.others.share + outcome.greedy.share;
    let least = if is_local { 0.0 } else { 0.99 };
    within("both groups' shares of worker time", shares, least, 1.01)?;
    demand(is_local || outcome.busy > 0.0, || {
        "no worker worked".to_owned()
    })?;
    demand(outcome.drain.is_none_or(f64::is_finite), || {
        "the drain has no length".to_owned()
    })
}

/// Every job waited in a queue, and at home there are no more than were asked for.
fn jobs(what: &str, group: &Group, floor: f64) -> Result<(), String> {
    demand(group.queue.count as u64 == group.jobs, || {
        format!(
            "{what} asked for {} jobs, of which {} began",
            group.jobs, group.queue.count
        )
    })?;
    let parts = group
        .home_level0
        .max(group.home_overloaded)
        .max(group.home_hedge);
    demand(parts <= group.home && group.home <= group.jobs, || {
        format!("{what}: more jobs at home than there are")
    })?;
    within(
        "the longest stall",
        group.stalled_worst,
        0.0,
        group.stalled + 1e-6,
    )?;
    let spread = &group.queue;
    let times = [spread.p50, spread.p90, spread.p95, spread.p99, spread.max];
    demand(times.is_sorted() && spread.max.is_finite(), || {
        format!("{what}: percentiles {times:?} ms do not rise")
    })?;
    // What stays at home waits for nobody, and is never half of what a pool is asked for in its sleep.
    demand(
        group.jobs == 0 || spread.max >= floor && spread.mean <= spread.max,
        || {
            format!(
                "{what}: a queue of {} ms is shorter than messages take",
                spread.max
            )
        },
    )
}

/// Of the queue with the fewest jobs that is judged: how many, and how many it takes.
pub(super) fn samples(outcome: &CaasOutcome) -> (u64, u64) {
    (outcome.others.jobs, SAMPLES_MIN)
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut CaasOutcome, how: Falsification) {
    match how {
        Falsification::Zeros => {
            outcome.others = Group::default();
            outcome.greedy = Group::default();
            (outcome.busy, outcome.jain) = (0.0, 0.0);
        }
        Falsification::TooFast => times(outcome, 1e-6),
        Falsification::Lost => outcome.others.queue.count /= 2,
        Falsification::Worse(by) => {
            times(outcome, by);
            outcome.jain /= by;
            outcome.others.stalled += by;
            outcome.bounced_first += 1;
            outcome.others.home_overloaded += 1;
        }
    }
}

fn times(outcome: &mut CaasOutcome, by: f64) {
    for group in [&mut outcome.others, &mut outcome.greedy] {
        group.stalled *= by;
        group.stalled_worst *= by;
        for queue in [&mut group.queue, &mut group.queue_level0] {
            let Spread {
                count: _,
                mean,
                p50,
                p90,
                p95,
                p99,
                max,
            } = queue;
            for time in [mean, p50, p90, p95, p99, max] {
                *time *= by;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Scale;
    use super::*;

    #[test]
    fn what_was_run_can_be_true_and_no_nonsense_can() {
        for trial in super::super::ALL[0].plan(Scale::Smoke, 1) {
            let trial = Trial {
                minutes: 10,
                ..trial
            };
            let outcome = trial.run(&mut |_| {}).unwrap();
            assert_eq!(check(&trial, &outcome), Ok(()), "{trial:?}");
            for nonsense in Falsification::NONSENSE {
                let mut changed = outcome.clone();
                falsify(&mut changed, nonsense);
                let is_seen = check(&trial, &changed).is_err();
                // At home nobody waits, however fast.
                assert!(
                    is_seen || (trial.who == Who::Local && nonsense == Falsification::TooFast),
                    "{trial:?} {nonsense:?}"
                );
            }
        }
    }
}
