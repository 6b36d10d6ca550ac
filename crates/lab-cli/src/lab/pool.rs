//! Trials on several threads, and how far they are.

use std::fmt;
use std::io::{IsTerminal as _, stderr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use manxdb_lab::experiment::{Plan, Point, TrialError};

use crate::fault::Fault;

/// Steps of the bar in all.
const STEPS: f64 = 100_000.0;

/// Runs all trials that have not run, the longest first, so that no thread is left with one at the
/// end. The order of outcomes is that of the trials, and each depends on its trial alone. After each
/// trial `keep` keeps what there is.
///
/// # Errors
/// A trial failed, or could not be kept; those that had not begun by then are not run.
pub fn run(
    plan: &dyn Plan,
    threads: usize,
    keep: &(dyn Fn() -> Result<(), Fault> + Sync),
) -> Result<(), Fault> {
    let points = plan.points();
    let left = points.iter().enumerate();
    let mut order: Vec<(usize, &Point)> = left.filter(|(place, _)| !plan.is_done(*place)).collect();
    order.sort_by(|one, other| other.1.work.total_cmp(&one.1.work));
    let progress = Progress::new(order.iter().map(|(_, point)| point.work).sum());
    let keeping = Mutex::new(());
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<(usize, TrialError)>> = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((place, point)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ran = run_one(plan, *place, point, &progress).and_then(|()| {
                        let _one_at_a_time = keeping.lock().unwrap_or_else(PoisonError::into_inner);
                        keep().map_err(|error| TrialError::Failed(error.to_string()))
                    });
                    if let Err(error) = ran {
                        // The others end with the trial they are at.
                        next.store(order.len(), Ordering::Relaxed);
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.get_or_insert((*place, error));
                    }
                }
            });
        }
    });
    progress.bar.finish_and_clear();
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some((place, error)) = failed else {
        return Ok(());
    };
    let failing = points
        .get(place)
        .map(|point| (point.label.as_str(), point.seed));
    let (label, seed) = failing.unwrap_or_default();
    Err(Fault::Other(format!("{label}, seed {seed}: {error}")))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)] // a position on a bar
fn run_one(
    plan: &dyn Plan,
    place: usize,
    point: &Point,
    progress: &Progress,
) -> Result<(), TrialError> {
    let all = (point.work * progress.steps_each) as u64;
    let mut told = 0;
    plan.run(place, &mut |share| {
        let now = ((all as f64 * share) as u64).min(all);
        progress.add(now.saturating_sub(told));
        told = told.max(now);
    })?;
    progress.add(all - told);
    Ok(())
}

/// A bar on a terminal; elsewhere a line for each tenth.
struct Progress {
    bar: ProgressBar,
    /// Steps of the bar for a unit of work.
    steps_each: f64,
    lines: bool,
    /// Tenths told of.
    told: AtomicU64,
}

impl Progress {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a constant
    fn new(work: f64) -> Self {
        let bar = ProgressBar::new(STEPS as u64);
        let style = "[{bar:40}] {percent:>3} %, {elapsed} passed, {left} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            let left = |state: &ProgressState, text: &mut dyn fmt::Write| {
                let _ = write!(
                    text,
                    "{} s",
                    seconds_left(state.elapsed(), state.fraction())
                );
            };
            bar.set_style(style.progress_chars("=> ").with_key("left", left));
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Self {
            bar,
            steps_each: STEPS / work.max(f64::MIN_POSITIVE),
            lines: !stderr().is_terminal(),
            told: AtomicU64::new(0),
        }
    }

    #[allow(clippy::cast_precision_loss)] // tenths
    fn add(&self, steps: u64) {
        self.bar.inc(steps);
        let tenths = self.bar.position() * 10 / self.bar.length().unwrap_or(1).max(1);
        if self.lines && self.told.fetch_max(tenths, Ordering::Relaxed) < tenths {
            let passed = self.bar.elapsed();
            let percent = tenths * 10;
            let left = seconds_left(passed, percent as f32 / 100.0);
            eprintln!(
                "{percent:>3} %, {} s passed, {left} s left",
                passed.as_secs()
            );
        }
    }
}

/// Seconds until all is done, as long as each share of the work takes as long as the share before it on
/// average. The bar's own estimate follows the last few seconds, and trials report rarely: between two
/// reports it said millions of seconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded
fn seconds_left(passed: Duration, done: f32) -> u64 {
    let done = f64::from(done).clamp(0.001, 1.0);
    (passed.as_secs_f64() * (1.0 - done) / done).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_takes_as_long_as_what_is_done() {
        let passed = Duration::from_secs(100);
        assert_eq!(seconds_left(passed, 0.25), 300);
        assert_eq!(seconds_left(passed, 1.0), 0);
        // Nothing is done yet: a thousand times as long, and no division by zero.
        assert_eq!(seconds_left(passed, 0.0), 99_900);
    }
}
