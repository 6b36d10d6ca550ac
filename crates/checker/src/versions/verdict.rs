//! What was found, in words.

use std::fmt::{self, Display, Formatter};

use super::Level;
use crate::proofs::Proofs;

/// What can be wrong with a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// What is acknowledged is not among the versions: lost, or overwritten by one who had not
    /// seen it.
    LostWrite,
    /// A write upon a version that its transaction had not read.
    BlindWrite,
    /// A transaction is there in one record and not in another.
    HalfCommit,
    /// G1a: a version was read that nobody committed, or is there at the end.
    AbortedRead,
    /// G1b: a version was read with a value that it never had.
    ForeignValue,
    /// A read got a version that its snapshot has not, or not the newest that it has.
    NotOfSnapshot,
    /// A snapshot has a version, and not all that its writer had seen.
    BrokenCut,
    /// A session saw less than before, or not its own.
    SessionOrder,
    /// G0: a cycle of ww.
    DirtyWrite,
    /// G1c: a cycle of ww and wr.
    CircularInformation,
    /// G-single: a cycle with one rw.
    SingleAntiDependency,
    /// G2: a cycle with several rw, as write skew.
    AntiDependency,
}

/// One thing found wrong.
pub type Violation = crate::proofs::Violation<Anomaly>;

/// The answer of [`super::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    level: Level,
    proofs: Proofs<Anomaly>,
    skews: usize,
}

impl Verdict {
    pub(super) fn new(level: Level) -> Self {
        Self {
            level,
            proofs: Proofs::new(),
            skews: 0,
        }
    }

    pub(super) fn note(&mut self, anomaly: Anomaly, proof: impl FnOnce() -> String) {
        self.proofs.note(anomaly, proof);
    }

    pub(super) fn count_skew(&mut self) {
        self.skews += 1;
    }

    /// Whether the history is what the level promises.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.proofs.all().is_empty()
    }

    /// Knots of transactions without a serial order, where the level allows them.
    #[must_use]
    pub fn skews(&self) -> usize {
        self.skews
    }

    /// The kinds of what was found, each once, ascending.
    #[must_use]
    pub fn anomalies(&self) -> Vec<Anomaly> {
        self.proofs.kinds()
    }
}

impl Display for Verdict {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let name = |anomaly: Anomaly| format!("{anomaly:?}");
        self.proofs.write(&self.level, name, formatter)
    }
}
