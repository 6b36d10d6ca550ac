//! An experiment of one kind: its trials, its figure, its claims.

use super::plan::Trials;
use super::results::Found;
use super::{
    Claim, Experiment, ExperimentKind, Origin, Plan, Results, Scale, falsify, report, review,
};
use crate::experiment::data::{Data, DataError};
use crate::figure::{Figure, FigureError, pdf, png};

use super::results::Artefact;

/// An experiment of one kind.
pub struct Design<K: ExperimentKind> {
    /// On the command line, and of its directory.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The paper's figure it repeats, or what it is instead.
    pub origin: &'static str,
    /// The parameter it sweeps, with its unit.
    pub swept: &'static str,
    /// Its trials, those of equal parameters with seeds from the one given on.
    pub plan: fn(Scale, u64) -> Vec<K::Trial>,
    /// Where a trial stands on the swept parameter.
    pub at: fn(&K::Trial) -> f64,
    /// The same, for people.
    pub label: fn(&Self, &K::Trial) -> String,
    /// The figure of some data.
    pub figure: fn(&Self, &Data<K>) -> Figure,
    /// What others and we say, and whether it holds if the data are true: [`Design::claims`] asks that.
    pub judge: fn(&Self, &Data<K>) -> Vec<Claim>,
}

impl<K: ExperimentKind> Design<K> {
    /// The trials at a scale, those of equal parameters with seeds from `seed` on.
    #[must_use]
    pub fn plan(&self, scale: Scale, seed: u64) -> Vec<K::Trial> {
        (self.plan)(scale, seed)
    }

    /// Where a trial stands on the swept parameter.
    #[must_use]
    pub fn at(&self, trial: &K::Trial) -> f64 {
        (self.at)(trial)
    }

    /// The same, for people.
    #[must_use]
    pub fn label(&self, trial: &K::Trial) -> String {
        (self.label)(self, trial)
    }

    /// What others and we say, and whether it holds; nothing does whose data cannot be true.
    #[must_use]
    pub fn claims(&self, data: &Data<K>) -> Vec<Claim> {
        review::review(self, data)
    }

    /// The same of data that are believed.
    #[must_use]
    pub fn judged(&self, data: &Data<K>) -> Vec<Claim> {
        (self.judge)(self, data)
    }

    /// Claims whose verdict no change of the data moves: each is a defect.
    #[must_use]
    pub fn unmoved(&self, data: &Data<K>) -> Vec<String> {
        falsify::unmoved(self, data)
    }

    /// The figure of some data.
    #[must_use]
    pub fn figure(&self, data: &Data<K>) -> Figure {
        (self.figure)(self, data)
    }

    /// Figure and report of some data of which no more is known.
    ///
    /// # Errors
    /// The figure cannot be drawn.
    pub fn pictures(&self, data: &Data<K>) -> Result<[Artefact; 4], FigureError> {
        self.pictures_of(data, &Origin::default())
    }

    /// Figure and report of some data.
    ///
    /// # Errors
    /// The figure cannot be drawn.
    pub fn pictures_of(
        &self,
        data: &Data<K>,
        origin: &Origin,
    ) -> Result<[Artefact; 4], FigureError> {
        let svg = self.figure(data).svg()?;
        let (picture, page) = (png(&svg)?, pdf(&svg)?);
        let report = report::report(self, data, origin);
        let file = |name, bytes| Artefact { name, bytes };
        Ok([
            file("figure.svg", svg.into_bytes()),
            file("figure.png", picture),
            file("figure.pdf", page),
            file("report.md", report.into_bytes()),
        ])
    }

    /// A label that is the number alone.
    pub fn number(&self, trial: &K::Trial) -> String {
        self.at(trial).to_string()
    }
}

impl<K: ExperimentKind> Experiment for Design<K> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn part(&self) -> &'static str {
        K::PART
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn swept(&self) -> &'static str {
        self.swept
    }

    fn is_simulated(&self) -> bool {
        K::SIMULATED
    }

    fn plan(&'static self, scale: Scale, seed: u64) -> Box<dyn Plan> {
        Box::new(Trials::new(self, scale, seed))
    }

    fn read(&'static self, json: &str) -> Result<Box<dyn Results>, DataError> {
        let data = Data::from_json(json, self.name)?;
        Ok(Box::new(Found { design: self, data }))
    }
}
