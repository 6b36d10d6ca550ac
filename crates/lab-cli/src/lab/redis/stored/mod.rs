//! Experiments with `manxdb serve --redis-engine rocksdb` and what its store does beside the commands:
//! compactions, by the server or by a worker, and loads of values that memory does not hold.
//!
//! | question | answered in |
//! |---|---|
//! | what decides a run, and what is kept of it | [`trial`] |
//! | how it is run | [`run`] |
//! | what can be true | [`plausible`] |
//! | the experiments, their claims and figures | [`caas`], [`memory`] |

mod caas;
mod memory;
mod plausible;
mod run;
mod trial;

use std::fmt::Write as _;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{At, Design, ExperimentKind, Falsification, series};
use manxdb_lab::figure::{Axes, Line, Look, Panel, Scale as Along};
use manxdb_lab::trial_error::TrialError;

pub(super) use self::caas::EXPERIMENT as CAAS;
pub(super) use self::memory::EXPERIMENT as LARGER_THAN_MEMORY;
use self::trial::{Compactions, Outcome, Trial};
use super::trial::{Measure, Work};

/// A Redis server over its store, in processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored;

/// The runs of a work, by where they stand.
fn points<'a>(
    design: &Design<Stored>,
    data: &'a Data<Stored>,
    compactions: Compactions,
    work: Work,
) -> Vec<At<'a, Stored>> {
    let belongs = |record: &Record<Stored>| {
        record.trial.compactions == compactions && record.trial.works.contains(&work)
    };
    series(&data.records, belongs, |record| design.at(&record.trial))
}

/// A panel of one work with a line for each who compacts.
fn panel(
    (design, data): (&Design<Stored>, &Data<Stored>),
    work: Work,
    (what, y_label): (&str, &str),
    number: impl Fn(&Outcome) -> f64,
) -> Panel {
    let line = |(place, compactions): (usize, Compactions)| Line {
        name: compactions.title().into(),
        look: Look::of(place),
        points: points(design, data, compactions, work)
            .iter()
            .map(|at| at.point(&number))
            .collect(),
    };
    let lines = Compactions::ALL.into_iter().enumerate().map(line);
    Panel {
        title: format!("{}: {what}", work.title()),
        x_label: design.swept.into(),
        y_label: y_label.into(),
        axes: Axes {
            x: Along::Log,
            ..Axes::default()
        },
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        marks: Vec::new(),
    }
}

/// A number of a work.
type WorkNumber = fn(&Measure) -> f64;
/// A number of a run.
type Number = fn(&Outcome) -> f64;

/// Columns for each work.
const OF_WORKS: [(&str, WorkNumber); 5] = [
    ("per_second", Measure::rate),
    ("cpu_us", Measure::cpu_us),
    ("mean_ms", |one| one.mean_ms),
    ("p50_ms", |one| one.p50_ms),
    ("p99_ms", |one| one.p99_ms),
];
/// Columns for a run.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
const OF_RUNS: [(&str, Number); 11] = [
    ("errors", |run| run.errors as f64),
    ("found", |run| run.found as f64),
    ("evicted", |run| run.evicted as f64),
    ("loaded", |run| run.loaded as f64),
    ("outside", |run| run.outside as f64),
    ("memory", |run| run.memory as f64),
    ("drain_seconds", |run| run.drain_seconds),
    ("server_cpu", |run| run.server_cpu),
    ("pool_cpu", |run| run.pool_cpu),
    ("installed", |run| run.installed as f64),
    ("came_home", |run| run.came_home as f64),
];

impl ExperimentKind for Stored {
    type Trial = Trial;
    type Outcome = Outcome;

    const PART: &'static str = "redis";
    const SIMULATED: bool = false;

    fn seed(trial: &Trial) -> u64 {
        trial.seed
    }

    fn reseeded(trial: &Trial, seed: u64) -> Trial {
        Trial {
            seed,
            ..trial.clone()
        }
    }

    fn run(trial: &Trial, progress: &mut dyn FnMut(f64)) -> Result<Outcome, TrialError> {
        let outcome = run::run(trial).map_err(TrialError::Failed)?;
        progress(1.0);
        Ok(outcome)
    }

    fn columns() -> String {
        let mut columns =
            "compactions,version,value_bytes,keys,memory_mb,clients,quotas,seed".to_owned();
        for work in [Work::Get, Work::Set, Work::Hset] {
            for (number, _) in OF_WORKS {
                let _ = write!(columns, ",{}_{number}", work.title().to_lowercase());
            }
        }
        for (number, _) in OF_RUNS {
            let _ = write!(columns, ",{number}");
        }
        columns
    }

    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        let mut row = format!(
            "{},{},{},{},{},{},{},{}",
            trial.compactions.title(),
            outcome.version,
            trial.value_bytes,
            trial.keys,
            trial.memory_mb,
            trial.clients,
            outcome.quotas.name().replace(',', ""),
            trial.seed
        );
        for work in [Work::Get, Work::Set, Work::Hset] {
            for (_, number) in OF_WORKS {
                let _ = write!(row, ",{}", outcome.number(work, number));
            }
        }
        for (_, number) in OF_RUNS {
            let _ = write!(row, ",{}", number(outcome));
        }
        row
    }

    fn implausible(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn samples(outcome: &Outcome) -> (u64, u64) {
        super::plausible::samples(&outcome.measures)
    }

    fn system(trial: &Trial) -> String {
        trial.compactions.title().to_owned()
    }

    fn falsify(_: &Trial, outcome: &mut Outcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(design: &Design<Self>, data: &Data<Self>) -> String {
        let mut text = format!(
            "## Numbers\n\nMedians of the repetitions; CPU of a command is of all threads of the server, in the load.\n\n\
             | command | {} | store | commands/s | CPU of a command (µs) | mean, p50, p99 (ms) | errors | \
             values that left memory, came back | drain (s) | CPU of the server, of the pool (s) | \
             compactions by the worker, sent home |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
            design.swept
        );
        for work in Work::ALL {
            for compactions in Compactions::ALL {
                for at in points(design, data, compactions, work) {
                    rows(&mut text, &at, compactions, work);
                }
            }
        }
        text.push_str(if design.name == CAAS.name {
            caas::UNLIKE
        } else {
            memory::UNLIKE
        });
        text
    }
}

/// What came of a work at one point.
fn rows(text: &mut String, at: &At<'_, Stored>, compactions: Compactions, work: Work) {
    let of_work = OF_WORKS.map(|(_, number)| at.median(|run| run.number(work, number)));
    let [rate, cpu, mean, p50, p99] = of_work;
    let of_run = OF_RUNS.map(|(_, number)| at.median(number));
    let [
        errors,
        _,
        evicted,
        loaded,
        _,
        _,
        drain,
        server,
        pool,
        installed,
        home,
    ] = of_run;
    let _ = writeln!(
        text,
        "| {} | {} | {} | {rate:.0} | {cpu:.1} | {mean:.2}, {p50:.2}, {p99:.2} | {errors} | {evicted}, \
         {loaded} | {drain:.2} | {server:.2}, {pool:.2} | {installed}, {home} |",
        work.title(),
        at.x,
        compactions.title()
    );
}

#[cfg(test)]
mod tests;
