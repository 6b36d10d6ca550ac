//! The trials of an experiment, and what came of those that ran.

use std::sync::OnceLock;

use super::results::Found;
use super::{Design, ExperimentKind, Results, Scale};
use crate::experiment::data::{Data, DataError, Record};
use crate::trial_error::TrialError;

/// Trials to be run, in any order and by any number of threads.
pub trait Plan: Sync {
    /// All of them, in the order of data.
    fn points(&self) -> Vec<Point>;

    /// Leaves out the others.
    fn keep(&mut self, wanted: &dyn Fn(&Point) -> bool);

    /// So many repetitions of each point, with seeds from the first on.
    fn repeat(&mut self, count: u64);

    /// Another number of regions, or of shards in each, in all trials.
    ///
    /// # Errors
    /// [`TrialError`]: they have none.
    fn reshape(&mut self, regions: Option<u32>, shards: Option<u32>) -> Result<(), TrialError>;

    /// Takes over what came of trials that ran before, from `data.json`; how many there are.
    ///
    /// # Errors
    /// [`DataError`].
    fn resume(&mut self, json: &str) -> Result<usize, DataError>;

    /// Whether the trial at a place has run.
    fn is_done(&self, place: usize) -> bool;

    /// Runs the trial at a place of [`Plan::points`] and keeps its outcome; `progress` hears which
    /// share of it is done. Does nothing at a place behind the last.
    ///
    /// # Errors
    /// [`TrialError`].
    fn run(&self, place: usize, progress: &mut dyn FnMut(f64)) -> Result<(), TrialError>;

    /// What came of the trials that ran.
    fn results(&self) -> Box<dyn Results>;
}

/// A trial as a program sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Where it stands on the swept parameter.
    pub at: f64,
    /// The same, for people.
    pub label: String,
    /// All that decides it, to tell trials apart.
    pub parameters: String,
    /// Its seed.
    pub seed: u64,
    /// About how much work it is, in a unit of its kind.
    pub work: f64,
}

/// Trials of one kind.
pub(super) struct Trials<K: ExperimentKind> {
    design: &'static Design<K>,
    scale: Scale,
    seed: u64,
    rows: Vec<(K::Trial, OnceLock<K::Outcome>)>,
}

impl<K: ExperimentKind> Trials<K> {
    pub fn new(design: &'static Design<K>, scale: Scale, seed: u64) -> Self {
        let trials = design.plan(scale, seed).into_iter();
        Self {
            design,
            scale,
            seed,
            rows: trials.map(|trial| (trial, OnceLock::new())).collect(),
        }
    }

    fn point(&self, trial: &K::Trial) -> Point {
        Point {
            at: self.design.at(trial),
            label: self.design.label(trial),
            parameters: format!("{trial:?}"),
            seed: K::seed(trial),
            work: K::work(trial),
        }
    }
}

impl<K: ExperimentKind> Plan for Trials<K> {
    fn points(&self) -> Vec<Point> {
        let trials = self.rows.iter();
        trials.map(|(trial, _)| self.point(trial)).collect()
    }

    fn keep(&mut self, wanted: &dyn Fn(&Point) -> bool) {
        let points = self.points();
        let mut wanted = points.iter().map(wanted);
        self.rows.retain(|_| wanted.next().unwrap_or(false));
    }

    fn repeat(&mut self, count: u64) {
        let seed = self.seed;
        let known = self
            .points()
            .iter()
            .map(|one| one.seed.wrapping_sub(seed))
            .max();
        let known = known.map_or(0, |last| last + 1);
        self.keep(&|point| point.seed.wrapping_sub(seed) < count);
        let of_first = self.rows.iter().filter(|(trial, _)| K::seed(trial) == seed);
        let first: Vec<K::Trial> = of_first.map(|(trial, _)| trial.clone()).collect();
        for number in known..count {
            let again = first
                .iter()
                .map(|trial| K::reseeded(trial, seed.wrapping_add(number)));
            self.rows
                .extend(again.map(|trial| (trial, OnceLock::new())));
        }
    }

    fn reshape(&mut self, regions: Option<u32>, shards: Option<u32>) -> Result<(), TrialError> {
        let mut rows: Vec<(K::Trial, OnceLock<K::Outcome>)> = Vec::new();
        for (trial, _) in &self.rows {
            let trial = K::reshaped(trial, regions, shards)?;
            // Points of a sweep over regions are one when their number is given.
            if !rows.iter().any(|(known, _)| *known == trial) {
                rows.push((trial, OnceLock::new()));
            }
        }
        self.rows = rows;
        Ok(())
    }

    fn resume(&mut self, json: &str) -> Result<usize, DataError> {
        let before = Data::<K>::from_json(json, self.design.name)?;
        let mut taken = 0;
        for (trial, outcome) in &self.rows {
            let mut known = before.records.iter().filter(|one| one.trial == *trial);
            if let Some(found) = known.next() {
                taken += usize::from(outcome.set(found.outcome.clone()).is_ok());
            }
        }
        Ok(taken)
    }

    fn is_done(&self, place: usize) -> bool {
        let row = self.rows.get(place);
        row.is_some_and(|(_, outcome)| outcome.get().is_some())
    }

    fn run(&self, place: usize, progress: &mut dyn FnMut(f64)) -> Result<(), TrialError> {
        let Some((trial, outcome)) = self.rows.get(place) else {
            return Ok(());
        };
        let found = K::run(trial, progress)?;
        // Run a second time it has the same outcome, or one as good.
        let _ = outcome.set(found);
        Ok(())
    }

    fn results(&self) -> Box<dyn Results> {
        let records = self.rows.iter().filter_map(|(trial, outcome)| {
            Some(Record {
                trial: trial.clone(),
                outcome: outcome.get()?.clone(),
            })
        });
        let data = Data {
            experiment: self.design.name.into(),
            scale: self.scale,
            seed: self.seed,
            version: env!("CARGO_PKG_VERSION").into(),
            records: records.collect(),
        };
        let design = self.design;
        Box::new(Found { design, data })
    }
}

#[cfg(test)]
mod tests {
    use super::super::SIMULATED;
    use super::*;

    /// The files of a plan of which everything that is left is run.
    fn finished(plan: &dyn Plan) -> Vec<u8> {
        for place in 0..plan.points().len() {
            if !plan.is_done(place) {
                plan.run(place, &mut |_| {}).unwrap();
            }
        }
        let [json, _] = plan.results().files();
        json.bytes
    }

    #[test]
    fn what_was_interrupted_goes_on_to_the_same_bytes() {
        let experiment = SIMULATED[1];
        let plan = || experiment.plan(Scale::Smoke, 1);
        let interrupted = plan();
        interrupted.run(1, &mut |_| {}).unwrap();
        let [kept, _] = interrupted.results().files();
        let kept = String::from_utf8(kept.bytes).unwrap();
        let mut resumed = plan();
        assert_eq!(resumed.resume(&kept).unwrap(), 1);
        assert!(!resumed.is_done(0) && resumed.is_done(1));
        assert_eq!(finished(&*resumed), finished(&*plan()));
    }

    #[test]
    fn repetitions_and_shapes_are_as_many_as_asked_for() {
        let mut plan = SIMULATED[1].plan(Scale::Laptop, 7);
        let points = plan.points().len();
        plan.repeat(2);
        assert_eq!(plan.points().len(), points / 3 * 2);
        plan.repeat(5);
        assert_eq!(plan.points().len(), points / 3 * 5);
        let seeds: Vec<u64> = plan.points().iter().map(|point| point.seed).collect();
        assert_eq!(seeds.iter().max(), Some(&11));
        plan.reshape(Some(4), Some(2)).unwrap();
        let wanted = "regions: 4, shards_per_region: 2";
        assert!(
            plan.points()
                .iter()
                .all(|point| point.parameters.contains(wanted))
        );
        let mut sweep = SIMULATED[3].plan(Scale::Smoke, 1);
        sweep.reshape(Some(3), None).unwrap();
        let systems = crate::systems::SystemName::COMPARED.len();
        assert_eq!(sweep.points().len(), systems, "regions were what it swept");
        assert!(
            SIMULATED[7]
                .plan(Scale::Smoke, 1)
                .reshape(Some(3), None)
                .is_err()
        );
    }

    #[test]
    fn trials_of_other_seeds_and_data_of_other_experiments_are_not_taken_over() {
        let one = SIMULATED[1].plan(Scale::Smoke, 1);
        one.run(0, &mut |_| {}).unwrap();
        let [kept, _] = one.results().files();
        let kept = String::from_utf8(kept.bytes).unwrap();
        let mut later = SIMULATED[1].plan(Scale::Smoke, 2);
        assert_eq!(later.resume(&kept).unwrap(), 0);
        assert!(SIMULATED[0].plan(Scale::Smoke, 1).resume(&kept).is_err());
    }
}
