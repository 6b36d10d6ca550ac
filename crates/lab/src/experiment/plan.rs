//! The trials of an experiment, and what came of those that ran.

use std::sync::OnceLock;

use super::results::Found;
use super::{Design, Kind, Results, Scale, TrialError};
use crate::data::{Data, Record};

/// Trials to be run, in any order and by any number of threads.
pub trait Plan: Sync {
    /// All of them, in the order of data.
    fn points(&self) -> Vec<Point>;

    /// Leaves out the others.
    fn keep(&mut self, wanted: &dyn Fn(&Point) -> bool);

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
pub(super) struct Trials<K: Kind> {
    design: &'static Design<K>,
    scale: Scale,
    seed: u64,
    rows: Vec<(K::Trial, OnceLock<K::Outcome>)>,
}

impl<K: Kind> Trials<K> {
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

impl<K: Kind> Plan for Trials<K> {
    fn points(&self) -> Vec<Point> {
        let trials = self.rows.iter();
        trials.map(|(trial, _)| self.point(trial)).collect()
    }

    fn keep(&mut self, wanted: &dyn Fn(&Point) -> bool) {
        let points = self.points();
        let mut wanted = points.iter().map(wanted);
        self.rows.retain(|_| wanted.next().unwrap_or(false));
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
