//! Which outcomes of runs with kills can be true, and how they are made false to test verdicts.

use manxdb_lab::experiment::{Falsification, demand, within};

use crate::bench::recovery::Outcome;
use crate::cli::{Loss, RecoveryShape, Victim};

/// A checkout takes more than a microsecond: a tree is searched for each row.
const CHECKOUT_FLOOR_US: f64 = 1.0;
/// Nobody is known to be dead sooner than in a tenth of a lease.
const LEASES_MIN: f64 = 0.1;
/// Checkouts that a rate takes, at the least.
const SAMPLES_MIN: u64 = 1_000;

/// Whether an outcome can be true.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
pub(super) fn check(trial: &RecoveryShape, outcome: &Outcome) -> Result<(), String> {
    let committed = outcome.committed();
    demand(committed > 0, || "nothing was committed".to_owned())?;
    demand(outcome.counts.len() == usize::from(trial.clients), || {
        format!(
            "{} clients have timelines, of {}",
            outcome.counts.len(),
            trial.clients
        )
    })?;
    within("the length of a run (s)", outcome.seconds, 1e-3, 86_400.0)?;
    let each = outcome.seconds * 1e6 * f64::from(trial.clients) / committed as f64;
    within("time of a checkout (µs)", each, CHECKOUT_FLOOR_US, 1e7)?;
    within(
        "CPU of a checkout (µs)",
        outcome.cpu_us(),
        CHECKOUT_FLOOR_US,
        1e6,
    )?;
    death(trial, outcome)?;
    let lost = trial.kill_server != Loss::None;
    demand(outcome.loss.is_some() == lost, || {
        "a memory server was to be killed and was not, or died without being killed".to_owned()
    })?;
    let Some(loss) = outcome.loss else {
        return Ok(());
    };
    let end_ms = outcome.seconds * 1e3;
    within("when a memory server died (ms)", loss.at_ms, 1.0, end_ms)?;
    demand(loss.agreed_ms.is_none_or(|ms| ms > 0.0), || {
        "a loss was agreed on before it was one".to_owned()
    })
}

/// Each client that died was killed, did nothing afterwards, and was missed no sooner than others can
/// know.
fn death(trial: &RecoveryShape, outcome: &Outcome) -> Result<(), String> {
    let killed = trial.kill_client != Victim::None;
    demand(outcome.death.is_some() == killed, || {
        "a client was to be killed and was not, or died without being killed".to_owned()
    })?;
    let Some(death) = outcome.death else {
        return Ok(());
    };
    demand(death.led == (trial.kill_client == Victim::Leader), || {
        "another client died than the one that was killed".to_owned()
    })?;
    within(
        "when a client died (ms)",
        death.at_ms,
        1.0,
        outcome.seconds * 1e3,
    )?;
    let lease = f64::from(trial.lease_ms);
    within(
        "leases until locks were recovered",
        death.locks_ms / lease,
        LEASES_MIN,
        100.0,
    )?;
    let line = outcome.counts.get(usize::from(death.client));
    let after = line.map_or(1, |line| {
        let intervals = line.iter().enumerate();
        // An interval may be counted that had begun when it died.
        let dead =
            intervals.filter(|(at, _)| starts_ms(*at, outcome) > death.at_ms + outcome.every_ms);
        dead.map(|(_, count)| *count).sum::<u64>()
    });
    demand(after == 0, || {
        format!("a dead client committed {after} checkouts")
    })
}

#[allow(clippy::cast_precision_loss)] // intervals of a run are far below 2^53
fn starts_ms(interval: usize, outcome: &Outcome) -> f64 {
    interval as f64 * outcome.every_ms
}

/// Of the numbers of a run: how many checkouts, and how many it takes.
pub(super) fn samples(outcome: &Outcome) -> (u64, u64) {
    (outcome.committed(), SAMPLES_MIN)
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut Outcome, how: Falsification) {
    match how {
        Falsification::Zeros => *outcome = Outcome::default(),
        Falsification::TooFast => {
            outcome.seconds *= 1e-4;
            outcome.client_cpu *= 1e-4;
        }
        Falsification::Lost => {
            // Whoever was killed did not die, and whoever lived did nothing.
            let was_killed = outcome.death.take().is_some();
            outcome.loss = None;
            if !was_killed {
                outcome.counts.pop();
            }
        }
        Falsification::Worse(by) => worse(outcome, by),
    }
}

fn worse(outcome: &mut Outcome, by: f64) {
    outcome.seconds *= by;
    outcome.client_cpu *= by;
    if let Some(death) = &mut outcome.death {
        death.locks_ms *= by;
    }
    if let Some(loss) = outcome.loss {
        // Nobody commits again.
        let every_ms = outcome.every_ms;
        for line in &mut outcome.counts {
            let mut at_ms = 0.0;
            for count in line {
                if at_ms > loss.at_ms {
                    *count = 0;
                }
                at_ms += every_ms;
            }
        }
    }
}
