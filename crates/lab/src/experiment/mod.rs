//! The experiments: which trials each runs, how it is drawn, and which claims it checks.
//!
//! Experiments come in [`ExperimentKind`]s: what decides a run and what is kept of it. All of one kind are
//! results of one part of ManxDB, in one directory.
//!
//! | kind | part | experiments in |
//! |---|---|---|
//! | [`Transactions`](crate::trial::Transactions): clusters that order transactions, simulated | `dast` | [`dast`] |
//! | [`Sharing`](crate::caas_many::Sharing): databases that share compaction workers, simulated | `compaction` | [`compaction`] |
//!
//! # Adding an experiment
//!
//! To a kind that is there: a module with a [`Design`] (name, plan, figure, claims) and its line in
//! that kind's list, such as [`dast::ALL`].
//!
//! Of a new kind: a type of trials, one of outcomes, and a type that implements [`ExperimentKind`] over them:
//! how a trial is run, its columns in `data.csv`, what a report says behind its claims, which outcomes
//! can be true, and how they are made false to test verdicts (`cargo test -p manxdb lab`: no claim
//! passes that no data refute). Then
//! designs of it, and their lines in the list of experiments: [`SIMULATED`] here, for kinds whose
//! trials are functions of their parameters; the program's own list for kinds that need processes,
//! files or clocks ([`ExperimentKind::SIMULATED`] is false then, and trials run one at a time). Data on disk,
//! seeds, scales, progress, claims, the index and figures come with it: [`Experiment`], [`Plan`]
//! and [`Results`] are the same for all kinds.

mod claim;
pub mod compaction;
pub mod dast;
pub mod data;
mod design;
mod falsify;
mod index;
mod kind;
mod origin;
mod plan;
mod report;
mod results;
mod review;
mod scale;
mod series;

use crate::experiment::data::DataError;

pub use self::claim::{Claim, ClaimVerdict, Measured, Source};
pub use self::design::Design;
pub use self::falsify::Falsification;
pub use self::index::index;
pub use self::kind::ExperimentKind;
pub use self::origin::Origin;
pub use self::plan::{Plan, Point};
pub use self::results::{Artefact, Results};
pub use self::review::{demand, within};
pub use self::scale::Scale;
pub use self::series::{At, series};

/// An experiment of any kind.
pub trait Experiment: Sync {
    /// On the command line, and of its directory.
    fn name(&self) -> &'static str;

    /// What it is about: the directory that its own is in.
    fn part(&self) -> &'static str;

    /// One line about it.
    fn about(&self) -> &'static str;

    /// The parameter it sweeps, with its unit.
    fn swept(&self) -> &'static str;

    /// Whether its trials are functions of their parameters: any number can run at a time, and
    /// equal seeds make equal data.
    fn is_simulated(&self) -> bool;

    /// Its trials, those of equal parameters with seeds from `seed` on.
    fn plan(&'static self, scale: Scale, seed: u64) -> Box<dyn Plan>;

    /// Its results from `data.json`.
    ///
    /// # Errors
    /// [`DataError`].
    fn read(&'static self, json: &str) -> Result<Box<dyn Results>, DataError>;
}

/// All experiments that are functions of their parameters, in the order of the list.
pub static SIMULATED: [&dyn Experiment; 8] = [
    &dast::ALL[0],
    &dast::ALL[1],
    &dast::ALL[2],
    &dast::ALL[3],
    &dast::ALL[4],
    &dast::ALL[5],
    &dast::ALL[6],
    &compaction::ALL[0],
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_experiment_has_a_plan_of_its_own_at_every_scale() {
        let names: BTreeSet<&str> = SIMULATED.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), SIMULATED.len());
        for experiment in SIMULATED {
            assert!(experiment.is_simulated());
            for scale in Scale::ALL {
                let points = experiment.plan(scale, 1).points();
                assert!(!points.is_empty());
                for (place, point) in points.iter().enumerate() {
                    assert!(!points[..place].contains(point), "{point:?} twice");
                    assert!(point.work > 0.0);
                }
            }
        }
    }

    #[test]
    fn data_of_one_experiment_are_not_read_as_anothers() {
        let written = SIMULATED[0].plan(Scale::Smoke, 1).results().files();
        let json = String::from_utf8(written[0].bytes.clone()).unwrap();
        assert!(SIMULATED[0].read(&json).is_ok());
        let refused = SIMULATED[1].read(&json).err().unwrap().to_string();
        assert!(refused.contains(SIMULATED[0].name()), "{refused}");
    }
}
