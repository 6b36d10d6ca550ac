//! Which outcomes can be true, and how they are made false to test verdicts.

use manxdb_lab::experiment::{Falsification, demand, within};

use super::super::plausible::{drawn, falsify_measures, one};
use super::super::trial::System;
use super::trial::{Compactions, Outcome, Trial};

/// Of the time that clients have, at least so much is spent waiting for replies.
const WAITING_MIN: f64 = 0.1;
/// Keys and values take at most so many times the memory that they may: what commands wait for stays.
const OVER_MEMORY: f64 = 1.5;

/// Whether an outcome can be true.
pub(super) fn check(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    let version = &outcome.version;
    demand(version.starts_with(System::Manxdb.version()), || {
        format!("the server says that its version is {version}")
    })?;
    for work in &trial.works {
        let measure = outcome.measures.iter().find(|one| one.work == *work);
        let measure = measure.ok_or_else(|| format!("{} was not measured", work.title()))?;
        one(&trial.load(), measure).map_err(|why| format!("{}: {why}", work.title()))?;
        // Each client waits for one reply after the other: the mean ties latencies to rates.
        #[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
        let waited = measure.commands as f64 * measure.mean_ms / 1e3;
        let waiting = waited / measure.seconds / f64::from(trial.clients);
        within("waiting clients, of all,", waiting, WAITING_MIN, 1.1)?;
    }
    keys(trial, outcome)?;
    let is_local = trial.compactions == Compactions::Local;
    demand(is_local == (outcome.installed == 0), || {
        format!("the worker did {} compactions", outcome.installed)
    })?;
    demand(is_local == (outcome.pool_cpu <= 0.0), || {
        format!("the pool took {} CPU seconds", outcome.pool_cpu)
    })
}

/// All keys are there, and no more values in memory than fit.
fn keys(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    if trial.is_filled {
        let keys = u64::from(trial.keys);
        demand(outcome.found == keys || outcome.errors > 0, || {
            format!("{} keys are there, of {keys}", outcome.found)
        })?;
    } else {
        drawn("keys", outcome.found, &trial.load())?;
    }
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let times = outcome.memory as f64 / f64::from(trial.memory_mb) / f64::from(1_u32 << 20);
    within("memory taken, of what there is,", times, 1e-6, OVER_MEMORY)?;
    let is_larger = trial.times_memory() > OVER_MEMORY;
    demand(!is_larger || outcome.outside > 0, || {
        "more values are in memory than fit".to_owned()
    })
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut Outcome, how: Falsification) {
    falsify_measures(&mut outcome.measures, how);
    match how {
        Falsification::Zeros => (outcome.found, outcome.memory) = (0, 0),
        Falsification::Lost => outcome.found /= 2,
        Falsification::Worse(_) => outcome.errors += 1,
        Falsification::TooFast => {}
    }
}
