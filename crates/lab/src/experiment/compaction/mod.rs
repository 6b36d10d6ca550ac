//! Experiments about compaction as a service.
//!
//! | experiment | swept | in |
//! |---|---|---|
//! | `caas-many` | how much a greedy database writes, many databases on few workers | [`caas_many`] |
//!
//! The reference is CaaS-LSM (SIGMOD 2024) and its public code.

mod caas_many;
mod columns;
mod panels;
mod plausible;
mod report;

use super::report::each;
use super::{Claim, Design, ExperimentKind, Falsification, Measured, Scale, Source, series};
use crate::caas_many::{CaasOutcome, Sharing, Trial};
use crate::experiment::data;
use crate::trial_error::TrialError;

type Experiment = Design<Sharing>;
type Data = data::Data<Sharing>;
type Record = data::Record<Sharing>;
type At<'a> = super::At<'a, Sharing>;

/// All of them that are simulated, in the order of the list.
pub static ALL: [Experiment; 1] = [caas_many::EXPERIMENT];

impl ExperimentKind for Sharing {
    type Trial = Trial;
    type Outcome = CaasOutcome;

    const PART: &'static str = "compaction";

    fn seed(trial: &Trial) -> u64 {
        trial.seed
    }

    fn reseeded(trial: &Trial, seed: u64) -> Trial {
        Trial {
            seed,
            ..trial.clone()
        }
    }

    fn work(trial: &Trial) -> f64 {
        trial.expected_events()
    }

    fn events(outcome: &CaasOutcome) -> u64 {
        outcome.events
    }

    fn run(trial: &Trial, progress: &mut dyn FnMut(f64)) -> Result<CaasOutcome, TrialError> {
        trial.run(progress)
    }

    fn columns() -> String {
        columns::names()
    }

    fn row(record: &Record) -> String {
        columns::row(record)
    }

    fn implausible(trial: &Trial, outcome: &CaasOutcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn samples(outcome: &CaasOutcome) -> (u64, u64) {
        plausible::samples(outcome)
    }

    fn system(trial: &Trial) -> String {
        trial.who.title().to_owned()
    }

    fn falsify(_: &Trial, outcome: &mut CaasOutcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(experiment: &Experiment, data: &Data) -> String {
        report::details(experiment, data)
    }
}
