//! What was found, in words.

use std::fmt::{self, Display, Formatter};

use super::Level;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What kind.
    pub anomaly: Anomaly,
    /// The proof; for a cycle one line an edge.
    pub proof: String,
}

/// The answer of [`super::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    level: Level,
    violations: Vec<Violation>,
    left_out: usize,
    skews: usize,
}

/// Proofs kept; one is enough to fail.
const PROOFS_MAX: usize = 32;

impl Verdict {
    pub(super) fn new(level: Level) -> Self {
        Self {
            level,
            violations: Vec::new(),
            left_out: 0,
            skews: 0,
        }
    }

    pub(super) fn note(&mut self, anomaly: Anomaly, proof: impl FnOnce() -> String) {
        if self.violations.len() == PROOFS_MAX {
            self.left_out += 1;
            return;
        }
        let proof = proof();
        self.violations.push(Violation { anomaly, proof });
    }

    pub(super) fn count_skew(&mut self) {
        self.skews += 1;
    }

    /// Whether the history is what the level promises.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }

    /// Knots of transactions without a serial order, where the level allows them.
    #[must_use]
    pub fn skews(&self) -> usize {
        self.skews
    }

    /// The kinds of what was found, each once, ascending.
    #[must_use]
    pub fn anomalies(&self) -> Vec<Anomaly> {
        let mut kinds: Vec<Anomaly> = self.violations.iter().map(|found| found.anomaly).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

impl Display for Verdict {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.is_valid() {
            return write!(formatter, "valid at level {:?}", self.level);
        }
        writeln!(formatter, "broken at level {:?}", self.level)?;
        for violation in &self.violations {
            writeln!(formatter, "{:?}:", violation.anomaly)?;
            for line in violation.proof.lines() {
                writeln!(formatter, "  {line}")?;
            }
        }
        if self.left_out > 0 {
            writeln!(formatter, "and {} more", self.left_out)?;
        }
        Ok(())
    }
}
