//! What was found, in words.

use std::fmt::{self, Display, Formatter};

use super::Level;
use crate::proofs::Proofs;

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
pub type Violation = crate::proofs::Violation<Anomaly>;

/// The answer of [`super::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    level: Level,
    proofs: Proofs<Anomaly>,
}

impl Verdict {
    pub(super) fn new(level: Level) -> Self {
        Self {
            level,
            proofs: Proofs::new(),
        }
    }

    pub(super) fn note(&mut self, anomaly: Anomaly, proof: impl FnOnce() -> String) {
        self.proofs.note(anomaly, proof);
    }

    /// Whether the history is what the level promises.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.proofs.all().is_empty()
    }

    /// What was found, in the order it was looked for.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        self.proofs.all()
    }

    /// The kinds of what was found, each once, ascending.
    #[must_use]
    pub fn anomalies(&self) -> Vec<Anomaly> {
        self.proofs.kinds()
    }
}

impl Display for Verdict {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let name = |anomaly: Anomaly| anomaly.name().to_owned();
        self.proofs.write(&self.level, name, formatter)
    }
}
