//! Trials on several threads, and how far they are.

use std::io::{IsTerminal as _, stderr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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
    let progress = Progress::new(trials.iter().map(steps).sum());
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
                    let outcome = run_one(&trials[*place], &progress);
                    failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes[*place] = Some(outcome);
                    }
                }
            });
        }
    });
    progress.bar.finish_and_clear();
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
fn run_one(trial: &Trial, progress: &Progress) -> Result<Outcome, TrialError> {
    let all = steps(trial);
    let mut told = 0;
    let outcome = trial.run(&mut |share| {
        let now = ((all as f64 * share) as u64).min(all);
        progress.add(now.saturating_sub(told));
        told = told.max(now);
    });
    progress.add(all - told);
    outcome
}

/// A bar on a terminal; elsewhere a line for each tenth.
struct Progress {
    bar: ProgressBar,
    steps: u64,
    lines: bool,
    /// Tenths told of.
    told: AtomicU64,
}

impl Progress {
    fn new(steps: u64) -> Self {
        let bar = ProgressBar::new(steps);
        let style = "[{bar:40}] {percent:>3} %, {elapsed} passed, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Self {
            bar,
            steps,
            lines: !stderr().is_terminal(),
            told: AtomicU64::new(0),
        }
    }

    fn add(&self, steps: u64) {
        self.bar.inc(steps);
        let tenths = self.bar.position() * 10 / self.steps.max(1);
        if self.lines && self.told.fetch_max(tenths, Ordering::Relaxed) < tenths {
            let (passed, left) = (self.bar.elapsed(), self.bar.eta());
            let percent = tenths * 10;
            eprintln!(
                "{percent:>3} %, {} s passed, {} s left",
                passed.as_secs(),
                left.as_secs()
            );
        }
    }
}
