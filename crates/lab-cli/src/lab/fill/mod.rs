//! Experiments with databases under load whose compactions others do: real processes, each with
//! its share of a core.
//!
//! | question | answered in |
//! |---|---|
//! | what decides a run | [`trial`] |
//! | what is kept of it | [`outcome`] |
//! | how processes are started, watched and read | [`run`], [`process`] |
//! | how each is kept to its share of a core | [`cgroup`] |
//! | how far zones are apart | [`delay`] |
//! | the experiments, their claims and figures | [`fillrandom`], [`crossdc`] |
//! | what their figures and reports have in common | [`lines`], [`details`] |

mod cgroup;
mod crossdc;
mod delay;
mod details;
mod fillrandom;
mod lines;
mod outcome;
mod plausible;
pub(super) mod process;
pub(super) mod run;
pub(super) mod trial;

use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_lab::experiment::data::Record;
use manxdb_lab::experiment::{Design, Experiment, ExperimentKind, Falsification};
use manxdb_lab::trial_error::TrialError;

pub use self::cgroup::{Group, Quotas};
pub(super) use self::fillrandom::{NO_QUOTAS, judge, open, percent, shape};
use self::outcome::{Filled, Outcome};
use self::trial::Trial;

/// The experiments, in the order of the list.
pub static ALL: [&dyn Experiment; 2] = [&fillrandom::EXPERIMENT, &crossdc::EXPERIMENT];

/// Databases under load, in processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Filling;

impl ExperimentKind for Filling {
    type Trial = Trial;
    type Outcome = Outcome;

    const PART: &'static str = "compaction";
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
        let mut columns = vec!["mode,databases,cpus,workers,worker_cpus,delay_ms,seed,quotas"];
        columns.extend(NUMBERS.map(|(name, _)| name));
        columns.join(",")
    }

    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        let list = |numbers: Vec<String>| numbers.join("+");
        let databases = trial.databases.iter();
        let mut cells = vec![
            trial.mode.name().to_owned(),
            trial.databases.len().to_string(),
            list(
                databases
                    .map(|one| one.placement.cpus.to_string())
                    .collect(),
            ),
            trial.workers.len().to_string(),
            list(
                trial
                    .workers
                    .iter()
                    .map(|one| one.cpus.to_string())
                    .collect(),
            ),
            trial.delay_ms.to_string(),
            trial.seed.to_string(),
            outcome.quotas.name().replace(',', ""),
        ];
        cells.extend(NUMBERS.map(|(_, number)| number(outcome).to_string()));
        cells.join(",")
    }

    fn implausible(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn contradiction(data: &manxdb_lab::experiment::data::Data<Self>) -> Option<String> {
        plausible::contradiction(data)
    }

    fn samples(outcome: &Outcome) -> (u64, u64) {
        plausible::samples(outcome)
    }

    fn system(trial: &Trial) -> String {
        trial.mode.name().to_owned()
    }

    fn falsify(_: &Trial, outcome: &mut Outcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(design: &Design<Self>, data: &manxdb_lab::experiment::data::Data<Self>) -> String {
        details::details(design, data)
    }
}

/// A number of a run.
type Number = fn(&Outcome) -> f64;

/// The numbers of `data.csv`: of several databases the worst, sums where the name says so.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
const NUMBERS: [(&str, Number); 24] = [
    ("ops_per_second", Outcome::ops),
    ("sustained_per_second", Outcome::sustained),
    ("load_seconds", |run| run.worst(|one| one.seconds)),
    ("mean_us", Outcome::mean_us),
    ("p50_us", |run| run.worst(|one| one.p50_us)),
    ("p99_us", |run| run.worst(|one| one.p99_us)),
    ("p999_us", |run| run.worst(|one| one.p999_us)),
    ("max_us", |run| run.worst(|one| one.max_us)),
    ("stall_seconds_sum", |run| run.sum(|one| one.stall_seconds)),
    ("drain_seconds", |run| run.worst(|one| one.drain_seconds)),
    ("database_load_cpu_sum", |run| run.sum(|one| one.load_cpu)),
    ("database_cpu_sum", Outcome::database_cpu),
    ("worker_cpu_sum", |run| run.worker_cpu),
    ("control_cpu", |run| run.control_cpu),
    ("total_cpu", Outcome::total_cpu),
    ("jobs_remote_sum", |run| run.sum(|one| one.installed as f64)),
    ("jobs_small_sum", |run| run.sum(|one| one.small as f64)),
    ("jobs_came_home_sum", |run| {
        run.sum(|one| one.came_home as f64)
    }),
    ("moved_mib_per_job", Outcome::moved_mib),
    ("database_stored_bytes_sum", |run| {
        run.sum(|one| one.stored_bytes as f64)
    }),
    ("worker_stored_bytes_sum", |run| run.worker_moved as f64),
    ("flushed_bytes_sum", |run| {
        run.sum(|one| one.flush_bytes as f64)
    }),
    ("compacted_here_bytes_sum", |run| {
        run.sum(|one| one.compacted_bytes as f64)
    }),
    ("entries_sum", |run| {
        run.sum(|one: &Filled| one.entries as f64)
    }),
];

/// A number that nothing else of this process has.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use manxdb_lab::experiment::data::Data;
    use manxdb_lab::experiment::{ClaimVerdict, Scale};

    use super::trial::Mode;
    use super::*;

    const EXPERIMENTS: [&Design<Filling>; 2] = [&fillrandom::EXPERIMENT, &crossdc::EXPERIMENT];

    /// Data in which a mode takes so many seconds, and as many for everything else.
    fn data(
        design: &Design<Filling>,
        quotas: Quotas,
        seconds: impl Fn(Mode) -> f64,
    ) -> Data<Filling> {
        let record = |trial: Trial| {
            let seconds = seconds(trial.mode);
            let filled = Filled {
                puts: 1_000,
                seconds,
                mean_us: seconds,
                p50_us: seconds,
                p99_us: seconds,
                p999_us: seconds,
                max_us: seconds,
                stall_seconds: seconds,
                drain_seconds: seconds,
                load_cpu: seconds,
                drain_cpu: seconds,
                flush_bytes: 1,
                compacted_bytes: 1,
                installed: u64::from(trial.mode != Mode::Local),
                moved_bytes: 2 << 20,
                stored_bytes: 0,
                small: 0,
                came_home: 0,
                entries: 630,
                content_hash: "0".into(),
            };
            let outcome = Outcome {
                quotas,
                databases: vec![filled; trial.databases.len()],
                worker_cpu: 0.1,
                control_cpu: 0.1,
                worker_moved: 0,
            };
            Record { trial, outcome }
        };
        Data {
            experiment: design.name.into(),
            scale: Scale::Laptop,
            seed: 1,
            version: "test".into(),
            records: design
                .plan(Scale::Smoke, 1)
                .into_iter()
                .map(record)
                .collect(),
        }
    }

    fn count(design: &Design<Filling>, data: &Data<Filling>, verdict: ClaimVerdict) -> usize {
        let claims = design.judged(data);
        claims
            .iter()
            .filter(|claim| claim.verdict() == verdict)
            .count()
    }

    #[test]
    fn every_claim_can_hold_and_fail_and_those_about_rates_need_quotas() {
        for design in EXPERIMENTS {
            let all = design.judged(&data(design, Quotas::None, |_| 1.0)).len();
            // What is published of Kvrocks is of another load.
            let of_kvrocks = 2;
            let best = |mode| match mode {
                Mode::Manxdb => 1.0,
                Mode::CaasLevel => 3.0,
                Mode::Static | Mode::Local => 10.0,
                Mode::Random => 30.0,
            };
            let best = data(design, Quotas::Version1, best);
            assert_eq!(
                count(design, &best, ClaimVerdict::Holds),
                all - of_kvrocks,
                "{:#?}",
                design.judged(&best)
            );
            let worst = |mode| if mode == Mode::Manxdb { 2.0 } else { 1.0 };
            let worst = data(design, Quotas::Version1, worst);
            assert_eq!(
                count(design, &worst, ClaimVerdict::Fails),
                all - of_kvrocks,
                "{:#?}",
                design.judged(&worst)
            );
            let free = data(design, Quotas::None, |_| 1.0);
            let judged = if design.name == "caas-fillrandom" {
                2
            } else {
                0
            };
            assert_eq!(count(design, &free, ClaimVerdict::Open), all - judged);
            let small = Data {
                scale: Scale::Smoke,
                ..best
            };
            assert_eq!(count(design, &small, ClaimVerdict::Open), all);
            let none = Data {
                records: Vec::new(),
                ..free
            };
            assert_eq!(count(design, &none, ClaimVerdict::Open), all);
        }
    }

    #[test]
    fn figures_reports_and_tables_have_every_mode() {
        for design in EXPERIMENTS {
            let data = data(design, Quotas::Version1, |_| 1.0);
            let [svg, _, _, report] = design.pictures(&data).unwrap();
            let (svg, report) = (
                String::from_utf8(svg.bytes).unwrap(),
                String::from_utf8(report.bytes).unwrap(),
            );
            for record in &data.records {
                let name = record.trial.mode.name();
                assert!(
                    svg.contains(name) && report.contains(&format!("| {name}")),
                    "{name}"
                );
            }
            let csv = data.to_csv();
            let columns = |line: &str| line.split(',').count();
            let names = columns(csv.lines().next().unwrap());
            assert!(csv.lines().all(|line| columns(line) == names), "{csv}");
        }
    }

    #[test]
    fn modes_take_turns_in_every_repetition() {
        for design in EXPERIMENTS {
            let plan = design.plan(Scale::Laptop, 1);
            let seeds: Vec<u64> = plan.iter().map(|trial| trial.seed).collect();
            assert!(seeds.is_sorted() && seeds.last() == Some(&5));
        }
    }
}
