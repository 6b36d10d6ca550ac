//! What an experiment found, whatever its kind.

use super::{Claim, Design, Experiment, ExperimentKind, Origin, Scale};
use crate::experiment::data::Data;
use crate::figure::FigureError;

/// A file of an experiment's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefact {
    /// Its name.
    pub name: &'static str,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// What an experiment found.
pub trait Results {
    /// Which experiment.
    fn experiment(&self) -> &'static dyn Experiment;

    /// How large it was.
    fn scale(&self) -> Scale;

    /// Simulated events in all.
    fn events(&self) -> u64;

    /// What others and we say, and whether it holds.
    fn claims(&self) -> Vec<Claim>;

    /// Claims whose verdict no change of the data moves: each is a defect.
    fn unmoved(&self) -> Vec<String>;

    /// `data.json` and `data.csv`.
    fn files(&self) -> [Artefact; 2];

    /// Figure, as SVG and PNG, and report.
    ///
    /// # Errors
    /// The figure cannot be drawn.
    fn pictures(&self, origin: &Origin) -> Result<[Artefact; 4], FigureError>;
}

/// The data of an experiment of one kind.
pub(super) struct Found<K: ExperimentKind> {
    pub design: &'static Design<K>,
    pub data: Data<K>,
}

impl<K: ExperimentKind> Results for Found<K> {
    fn experiment(&self) -> &'static dyn Experiment {
        self.design
    }

    fn scale(&self) -> Scale {
        self.data.scale
    }

    fn events(&self) -> u64 {
        let records = self.data.records.iter();
        records.map(|record| K::events(&record.outcome)).sum()
    }

    fn claims(&self) -> Vec<Claim> {
        self.design.claims(&self.data)
    }

    fn unmoved(&self) -> Vec<String> {
        self.design.unmoved(&self.data)
    }

    fn files(&self) -> [Artefact; 2] {
        let file = |name, text: String| Artefact {
            name,
            bytes: text.into_bytes(),
        };
        [
            file("data.json", self.data.to_json()),
            file("data.csv", self.data.to_csv()),
        ]
    }

    fn pictures(&self, origin: &Origin) -> Result<[Artefact; 4], FigureError> {
        self.design.pictures_of(&self.data, origin)
    }
}
