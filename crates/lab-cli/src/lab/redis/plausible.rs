//! Which outcomes can be true, and how they are made false to test verdicts.

use manxdb_lab::experiment::{Falsification, demand, within};

use super::trial::{Books, Load, Measure, Outcome, Trial, Work};

/// A command is read, looked up and answered in no less.
const CPU_FLOOR_US: f64 = 0.1;
/// A pipeline goes through two sockets in no less.
const LATENCY_FLOOR_MS: f64 = 0.002;
/// Threads of a server that are busy at a time: the loop, the log's, compactions.
const THREADS: f64 = 8.0;
/// Commands that a 99th percentile takes, at the least.
const SAMPLES_MIN: u64 = 300;

/// Whether an outcome can be true.
pub(super) fn check(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    let version = &outcome.version;
    demand(version.starts_with(trial.system.version()), || {
        format!(
            "{} says that its version is {version}",
            trial.system.title()
        )
    })?;
    for work in Work::ALL {
        let measure = outcome.of(work);
        let measure = measure.ok_or_else(|| format!("{} was not measured", work.title()))?;
        one(&trial.load(work), measure).map_err(|why| format!("{}: {why}", work.title()))?;
    }
    books(trial, outcome.books)
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
pub(super) fn one(load: &Load, measure: &Measure) -> Result<(), String> {
    let asked = load.all_commands(measure.work);
    demand(measure.commands == asked, || {
        format!("{} commands were answered, of {asked}", measure.commands)
    })?;
    within("seconds", measure.seconds, 1e-6, 86_400.0)?;
    within("CPU of a command (µs)", measure.cpu_us(), CPU_FLOOR_US, 1e6)?;
    let most = (measure.seconds + 0.1) * THREADS;
    within("CPU of the server (s)", measure.cpu, 0.0, most)?;
    let (p50, p99) = (measure.p50_ms, measure.p99_ms);
    within("the median (ms)", p50, LATENCY_FLOOR_MS, 1e6)?;
    within("the 99th percentile (ms)", p99, p50, 1e6)?;
    // Each client waits for one pipeline, so that half of them at least take no longer than the median.
    let most = f64::from(load.clients) * measure.seconds * 1e3;
    let pipelines = measure.commands as f64 / f64::from(load.pipeline);
    within(
        "waits for replies, of the time of all clients,",
        pipelines / 2.0 * p50 / most,
        0.0,
        2.1,
    )
}

fn books(trial: &Trial, books: Books) -> Result<(), String> {
    // The hash and the sorted set are keys too; a queue without elements is none.
    let keys = u64::from(trial.keys) + 2;
    demand(books.keys == keys, || {
        format!("{} keys are there, of {keys}", books.keys)
    })?;
    demand(books.queued == 0, || {
        format!("{} elements are left in the queue", books.queued)
    })?;
    for (what, found, work) in [
        ("fields", books.fields, Work::Hset),
        ("members", books.members, Work::Zadd),
    ] {
        drawn(what, found, &trial.load(work))?;
    }
    Ok(())
}

/// So many of all that may be drawn are.
pub(super) fn drawn(what: &str, found: u64, load: &Load) -> Result<(), String> {
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let share = found as f64 / load.drawn();
    let what = format!("{what}, of those that are drawn,");
    within(&what, share, 0.85, 1.15)
}

/// Of the work with the fewest commands: how many, and how many it takes.
pub(super) fn samples(measures: &[Measure]) -> (u64, u64) {
    let fewest = measures.iter().map(|one| one.commands).min();
    (fewest.unwrap_or(0), SAMPLES_MIN)
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut Outcome, how: Falsification) {
    falsify_measures(&mut outcome.measures, how);
    if how == Falsification::Zeros {
        outcome.books = Books::default();
    }
}

/// The same of measures alone.
pub(super) fn falsify_measures(measures: &mut [Measure], how: Falsification) {
    for measure in measures {
        let Some(by) = how.factor() else {
            measure.commands /= 2;
            continue;
        };
        let Measure {
            seconds,
            cpu,
            mean_ms,
            p50_ms,
            p99_ms,
            ..
        } = measure;
        for number in [seconds, cpu, mean_ms, p50_ms, p99_ms] {
            *number *= by;
        }
    }
}
