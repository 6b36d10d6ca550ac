//! Trials on several threads, and how far they are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use manxdb_lab::experiment::Experiment;
use manxdb_lab::trial::{Outcome, Trial, TrialError};

use crate::fault::Fault;

/// Steps of the bar: what an event is expected to be, in thousands.
const EVENTS_A_STEP: f64 = 1_000.0;

/// Runs all trials, the longest first, so that no thread is left with one at the end. The order of
/// outcomes is that of the trials, and each depends on its trial alone.
pub fn run(
    experiment: &Experiment,
    trials: &[Trial],
    threads: usize,
) -> Result<Vec<Outcome>, Fault> {
    let mut order: Vec<usize> = (0..trials.len()).collect();
    order.sort_by(|one, other| {
        let expected = |place: usize| trials[place].expected_events();
        expected(*other).total_cmp(&expected(*one))
    });
    let bar = bar(trials.iter().map(steps).sum());
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let outcomes: Mutex<Vec<Option<Result<Outcome, TrialError>>>> =
        Mutex::new(trials.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(place) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if failed.load(Ordering::Relaxed) {
                        break;
                    }
                    let outcome = run_one(&trials[*place], &bar);
                    failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes[*place] = Some(outcome);
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    let outcomes = outcomes.into_inner();
    let outcomes = outcomes.map_err(|_| Fault::Other("a trial panicked".into()))?;
    let mut found = Vec::with_capacity(trials.len());
    for (outcome, trial) in outcomes.into_iter().zip(trials) {
        match outcome {
            Some(Ok(outcome)) => found.push(outcome),
            Some(Err(error)) => {
                return Err(Fault::Other(format!(
                    "{} at {}, seed {}: {error}",
                    experiment.name,
                    experiment.label(trial),
                    trial.seed
                )));
            }
            // Left undone because a later one failed first: that one is named.
            None => {}
        }
    }
    Ok(found)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count for a bar
fn steps(trial: &Trial) -> u64 {
    (trial.expected_events() / EVENTS_A_STEP) as u64 + 1
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)] // a position on a bar
fn run_one(trial: &Trial, bar: &ProgressBar) -> Result<Outcome, TrialError> {
    let all = steps(trial);
    let mut told = 0;
    let outcome = trial.run(&mut |share| {
        let now = ((all as f64 * share) as u64).min(all);
        bar.inc(now.saturating_sub(told));
        told = told.max(now);
    });
    bar.inc(all - told);
    outcome
}

/// Drawn on a terminal only.
fn bar(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    let style =
        ProgressStyle::with_template("[{bar:40}] {percent:>3} %, {elapsed} passed, {eta} left");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
