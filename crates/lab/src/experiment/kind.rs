//! A kind of experiments: what decides a run, and what is kept of it.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Design, Falsification};
use crate::experiment::data::{Data, Record};
use crate::trial_error::TrialError;

/// What all experiments over one type of trials have in common.
pub trait ExperimentKind: Debug + Clone + PartialEq + Sized + 'static {
    /// All that decides a run.
    type Trial: Debug + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync;

    /// Everything that is kept of it.
    type Outcome: Debug + Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync;

    /// The part of ManxDB that it is about: the directory of its results.
    const PART: &'static str;

    /// Whether a trial is a function of its parameters. Others run one at a time.
    const SIMULATED: bool = true;

    /// The seed of a trial.
    fn seed(trial: &Self::Trial) -> u64;

    /// The same trial with another seed.
    fn reseeded(trial: &Self::Trial, seed: u64) -> Self::Trial;

    /// The same trial with another number of regions, or of shards in each, where it has such.
    ///
    /// # Errors
    /// [`TrialError`]: it has none.
    fn reshaped(
        _trial: &Self::Trial,
        _regions: Option<u32>,
        _shards: Option<u32>,
    ) -> Result<Self::Trial, TrialError> {
        let why = "there are no regions and shards in this experiment";
        Err(TrialError::Failed(why.to_owned()))
    }

    /// About how much work a trial is, in a unit that its kind has to itself: to run the longest
    /// first, and to say how much longer it will take. Unless a kind says more, trials are
    /// alike and run in the order of the plan, in which systems take turns.
    fn work(_trial: &Self::Trial) -> f64 {
        1.0
    }

    /// Simulated events of a run; 0 where nothing is simulated.
    fn events(_outcome: &Self::Outcome) -> u64 {
        0
    }

    /// Runs a trial; `progress` hears which share of it is done.
    ///
    /// # Errors
    /// [`TrialError`].
    fn run(trial: &Self::Trial, progress: &mut dyn FnMut(f64))
    -> Result<Self::Outcome, TrialError>;

    /// The names of the columns of `data.csv`, without a line's end.
    fn columns() -> String;

    /// A trial and what came of it, column by column.
    fn row(record: &Record<Self>) -> String;

    /// Whether an outcome can be true: no time below what light, memory or processors need, every call
    /// accounted for, a cause for each death.
    ///
    /// # Errors
    /// What cannot be.
    fn implausible(trial: &Self::Trial, outcome: &Self::Outcome) -> Result<(), String>;

    /// What two outcomes say that cannot both be true.
    fn contradiction(_data: &Data<Self>) -> Option<String> {
        None
    }

    /// Of the number that has the fewest samples: how many, and how many it takes to judge it.
    fn samples(outcome: &Self::Outcome) -> (u64, u64);

    /// What is compared with others by claims.
    fn system(trial: &Self::Trial) -> String;

    /// Makes an outcome wrong, for tests of verdicts.
    fn falsify(trial: &Self::Trial, outcome: &mut Self::Outcome, how: Falsification);

    /// What a report says behind its claims: parameters, numbers, what a reader must know.
    fn details(design: &Design<Self>, data: &Data<Self>) -> String;
}
