//! Which outcomes of loads can be true, and how they are made false to test verdicts.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Falsification, demand, within};

use super::Filling;
use super::cgroup::Quotas;
use super::outcome::{Filled, Outcome};
use super::trial::{Database, Mode, Trial};

/// A put into a memtable takes more than two tenths of a microsecond.
const PUT_FLOOR_US: f64 = 0.2;
/// Shares of a core are enforced over tenths of a second: a short run may have a little more.
const OVER_QUOTA: f64 = 1.15;
/// Puts that a 99.9th percentile takes, at the least.
const SAMPLES_MIN: u64 = 10_000;

/// Whether an outcome can be true.
pub(super) fn check(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    demand(outcome.databases.len() == trial.databases.len(), || {
        "databases are missing".to_owned()
    })?;
    let is_local = trial.mode == Mode::Local;
    for (database, filled) in trial.databases.iter().zip(&outcome.databases) {
        puts(trial, database, filled)?;
        times(trial, filled)?;
        if outcome.quotas != Quotas::None {
            let cores = filled.load_cpu / filled.seconds;
            let most = database.placement.cpus * OVER_QUOTA;
            within("cores that a database used", cores, 0.01, most)?;
        }
        demand(!is_local || filled.installed == 0, || {
            "workers compacted where there are none".to_owned()
        })?;
    }
    demand(is_local || outcome.worker_cpu > 0.0, || {
        "no worker did anything".to_owned()
    })
}

/// Everything was put, and is there; what was put twice is there once.
fn puts(trial: &Trial, database: &Database, filled: &Filled) -> Result<(), String> {
    let asked = u64::from(database.puts) * u64::from(trial.shape.threads);
    demand(filled.puts == asked, || {
        format!("{} puts, of {asked}", filled.puts)
    })?;
    // Keys are drawn from as many as there are puts: 1 - 1/e of them are drawn.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    within(
        "entries for each put",
        filled.entries as f64 / asked as f64,
        0.60,
        0.66,
    )
}

/// Threads put all the time: a put's mean time is what ties rates to latencies.
#[allow(clippy::cast_precision_loss)] // far below 2^53
fn times(trial: &Trial, filled: &Filled) -> Result<(), String> {
    within("seconds of a load", filled.seconds, 1e-3, 1e6)?;
    let parts = [
        PUT_FLOOR_US,
        filled.p50_us,
        filled.p99_us,
        filled.p999_us,
        filled.max_us,
    ];
    demand(parts.is_sorted() && filled.max_us.is_finite(), || {
        format!("a put takes {parts:?} µs: floor, then percentiles that must rise")
    })?;
    let threads = f64::from(trial.shape.threads);
    let under_way = filled.puts as f64 * filled.mean_us / 1e6 / filled.seconds / threads;
    within(
        "puts under way, of one for each thread,",
        under_way,
        0.5,
        1.1,
    )
}

/// Equal seeds put equal values under equal keys, whoever compacts them.
pub(super) fn contradiction(data: &Data<Filling>) -> Option<String> {
    let of = |place: usize| data.records.get(place);
    for (place, record) in data.records.iter().enumerate() {
        let before = (0..place).filter_map(of).find(|other| {
            other.trial.seed == record.trial.seed
                && other.trial.databases.len() == record.trial.databases.len()
        });
        let Some(before) = before else { continue };
        let pairs = before
            .outcome
            .databases
            .iter()
            .zip(&record.outcome.databases);
        for (one, other) in pairs {
            if one.puts == other.puts && one.content_hash != other.content_hash {
                return Some(format!(
                    "{} and {} with seed {} have other contents",
                    before.trial.mode.name(),
                    record.trial.mode.name(),
                    record.trial.seed
                ));
            }
        }
    }
    None
}

/// Of the database with the fewest puts: how many, and how many it takes.
pub(super) fn samples(outcome: &Outcome) -> (u64, u64) {
    let fewest = outcome.databases.iter().map(|one| one.puts).min();
    (fewest.unwrap_or(0), SAMPLES_MIN)
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut Outcome, how: Falsification) {
    match how {
        Falsification::Zeros => {
            let quotas = outcome.quotas;
            scale(outcome, 0.0);
            outcome.quotas = quotas;
            for filled in &mut outcome.databases {
                (filled.puts, filled.entries) = (0, 0);
            }
        }
        Falsification::TooFast => scale(outcome, 1e-4),
        Falsification::Lost => {
            for filled in &mut outcome.databases {
                filled.entries /= 2;
            }
        }
        Falsification::Worse(by) => scale(outcome, by),
    }
}

fn scale(outcome: &mut Outcome, by: f64) {
    outcome.worker_cpu *= by;
    outcome.control_cpu *= by;
    for filled in &mut outcome.databases {
        for number in [
            &mut filled.seconds,
            &mut filled.mean_us,
            &mut filled.p50_us,
            &mut filled.p99_us,
            &mut filled.p999_us,
            &mut filled.max_us,
            &mut filled.stall_seconds,
            &mut filled.drain_seconds,
            &mut filled.load_cpu,
            &mut filled.drain_cpu,
        ] {
            *number *= by;
        }
    }
}
