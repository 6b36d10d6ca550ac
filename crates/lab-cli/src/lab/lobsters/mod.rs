//! Experiments with the pages of a link-sharing site, on `MariaDB`'s engines and on `ManxDB`, in processes of
//! this machine.
//!
//! | question | answered in |
//! |---|---|
//! | which systems are compared, and which are to come | [`system`] |
//! | what decides a run | [`trial`] |
//! | how servers are started, and what is said of those that are not here | [`servers`] |
//! | how they are filled and take turns | [`run`] |
//! | how the rate of pages is found | [`bisect`] |
//! | what is kept of a run | [`outcome`] |
//! | the experiments, their claims and figures | [`endpoints`], [`sizes`], [`memory`] |
//! | what claims have in common | [`compare`] |
//! | what reports say behind claims | [`details`] |
//! | which outcomes can be true | [`plausible`] |

mod bisect;
mod compare;
mod details;
mod endpoints;
mod memory;
mod outcome;
mod plausible;
mod run;
mod servers;
mod sizes;
mod system;
mod trial;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{Design, Experiment, ExperimentKind, Falsification};
use manxdb_lab::trial_error::TrialError;

use self::outcome::{Outcome, PAGES, Ran};
use self::trial::{Rate, Trial};

/// The experiments, in the order of the list.
pub static ALL: [&dyn Experiment; 3] = [
    &endpoints::EXPERIMENT,
    &sizes::EXPERIMENT,
    &memory::EXPERIMENT,
];

/// Readers of a site, in processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading;

impl ExperimentKind for Reading {
    type Trial = Trial;
    type Outcome = Outcome;

    const PART: &'static str = "lobsters";
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

    /// The largest site first where others take the rate of pages from it; otherwise all alike, so that
    /// they run in the order of the plan.
    fn work(trial: &Trial) -> f64 {
        match trial.rate {
            Rate::OfLargest(_) => trial.site,
            Rate::Given(_) | Rate::Bisected(_) => 1.0,
        }
    }

    fn run(trial: &Trial, progress: &mut dyn FnMut(f64)) -> Result<Outcome, TrialError> {
        run::run(trial, progress).map_err(TrialError::Failed)
    }

    fn columns() -> String {
        "comparison,site,seed,request_scale,system,missing,version,notifications,fill_seconds,\
         flat_out_per_second,flat_out_cpu_us,keeps_up_per_second,kept,served,cpu_us,client_cpu_us,\
         resident_empty,resident_filled,resident_loaded,disk_bytes,table_bytes,answer_bytes,\
         answer_of_work_bytes,page,count,p50_ms,p95_ms,p99_ms"
            .to_owned()
    }

    /// A line for each page of each system.
    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        let mut lines = Vec::new();
        for site in &outcome.sites {
            let head = [
                trial.comparison.name().to_owned(),
                trial.site.to_string(),
                trial.seed.to_string(),
                outcome.request_scale().to_string(),
                site.system.title().to_owned(),
                site.missing.clone().unwrap_or_default().replace(',', ""),
            ];
            let head = head.join(",");
            match &site.ran {
                Some(ran) => lines.extend(pages_of(ran).map(|page| format!("{head},{page}"))),
                None => lines.push(format!("{head}{}", ",".repeat(22))),
            }
        }
        lines.join("\n")
    }

    fn implausible(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn contradiction(data: &Data<Self>) -> Option<String> {
        plausible::contradiction(data)
    }

    fn samples(outcome: &Outcome) -> (u64, u64) {
        plausible::samples(outcome)
    }

    fn system(_: &Trial) -> String {
        "all".to_owned()
    }

    fn falsify(_: &Trial, outcome: &mut Outcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(_: &Design<Self>, data: &Data<Self>) -> String {
        details::details(data)
    }
}

/// The columns of a system that ran, for each of its pages.
fn pages_of(ran: &Ran) -> impl Iterator<Item = String> + '_ {
    let said = |number: Option<f64>| number.map(|one| one.to_string()).unwrap_or_default();
    let memory = &ran.memory;
    let numbers = [
        ran.version.clone(),
        ran.notifications.to_string(),
        ran.fill_seconds.to_string(),
        said(ran.flat_out.map(|one| one.rate)),
        said(ran.flat_out.map(|one| one.cpu_us)),
        said(ran.keeps_up),
        ran.kept().to_string(),
        ran.served.to_string(),
        ran.cpu_us.to_string(),
        ran.client_cpu_us.to_string(),
        memory.empty.to_string(),
        memory.filled.to_string(),
        memory.loaded.to_string(),
        memory.disk.to_string(),
        memory.tables.to_string(),
        memory.answers.to_string(),
        memory.answers_of_work.to_string(),
    ];
    let numbers = numbers.join(",");
    PAGES.iter().map(move |page| {
        let spread = ran.pages.get(*page).copied().unwrap_or_default();
        format!(
            "{numbers},{page},{},{},{},{}",
            spread.count, spread.p50, spread.p95, spread.p99
        )
    })
}

#[cfg(test)]
mod tests;
