//! What was found, in words.

use std::fmt::{self, Display, Formatter};

use super::Level;

/// What can be wrong with a history, mildest cause last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// The history is not one of lists: an element was appended twice. A defect of the test.
    Malformed,
    /// A read found an element that nobody appended, or in another list than its own.
    Invented,
    /// A list has an element twice.
    Duplicate,
    /// Two reads of a list disagree on the order of its elements.
    IncompatibleOrder,
    /// An acknowledged append is not in the end state.
    LostAppend,
    /// A transaction did not see its own appends as it should, or two values of one list.
    Internal,
    /// G1a: a read saw an append of a failed transaction.
    AbortedRead,
    /// G1b: a read saw a part of what one transaction appended to a list.
    IntermediateRead,
    /// G0: a cycle of ww.
    DirtyWrite,
    /// G1c: a cycle of ww and wr.
    CircularInformation,
    /// G-single: a cycle with one rw, as a lost update or a read of two states.
    SingleAntiDependency,
    /// G2: a cycle with several rw, as write skew.
    AntiDependency,
    /// A serial order exists, but none in which each session's transactions keep their order.
    SessionOrder,
    /// Such a one exists, but none that agrees with real time.
    RealTimeOrder,
}

impl Anomaly {
    /// The name in the field.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::Malformed => "malformed history",
            Anomaly::Invented => "invented element",
            Anomaly::Duplicate => "duplicate element",
            Anomaly::IncompatibleOrder => "incompatible order",
            Anomaly::LostAppend => "lost append",
            Anomaly::Internal => "internal",
            Anomaly::AbortedRead => "G1a (aborted read)",
            Anomaly::IntermediateRead => "G1b (intermediate read)",
            Anomaly::DirtyWrite => "G0 (dirty write)",
            Anomaly::CircularInformation => "G1c (circular information flow)",
            Anomaly::SingleAntiDependency => "G-single",
            Anomaly::AntiDependency => "G2",
            Anomaly::SessionOrder => "session order",
            Anomaly::RealTimeOrder => "real-time order",
        }
    }
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
}

/// Proofs kept; one is enough to fail, and a broken history may hold thousands.
const PROOFS_MAX: usize = 32;

impl Verdict {
    pub(super) fn new(level: Level) -> Self {
        Self {
            level,
            violations: Vec::new(),
            left_out: 0,
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

    /// Whether the history is what the level promises.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.violations.is_empty()
    }

    /// What was found, in the order it was looked for.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
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
            writeln!(formatter, "{}:", violation.anomaly.name())?;
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
