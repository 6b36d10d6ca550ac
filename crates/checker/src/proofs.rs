//! What is found wrong with a history, of whatever kind it is.

use std::fmt::{self, Formatter};

/// One thing found wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation<A> {
    /// What kind.
    pub anomaly: A,
    /// The proof; for a cycle one line an edge.
    pub proof: String,
}

/// All that was found, in the order it was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proofs<A> {
    kept: Vec<Violation<A>>,
    left_out: usize,
}

/// Proofs kept; one is enough to fail, and a broken history may hold thousands.
const KEPT_MAX: usize = 32;

impl<A: Copy + Ord> Proofs<A> {
    pub(crate) fn new() -> Self {
        Self {
            kept: Vec::new(),
            left_out: 0,
        }
    }

    pub(crate) fn note(&mut self, anomaly: A, proof: impl FnOnce() -> String) {
        if self.kept.len() == KEPT_MAX {
            self.left_out += 1;
            return;
        }
        let proof = proof();
        self.kept.push(Violation { anomaly, proof });
    }

    pub(crate) fn all(&self) -> &[Violation<A>] {
        &self.kept
    }

    /// The kinds, each once, ascending.
    pub(crate) fn kinds(&self) -> Vec<A> {
        let mut kinds: Vec<A> = self.kept.iter().map(|found| found.anomaly).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// All of it in words, below a line that says of which level.
    pub(crate) fn write(
        &self,
        level: &dyn fmt::Debug,
        name: impl Fn(A) -> String,
        formatter: &mut Formatter<'_>,
    ) -> fmt::Result {
        if self.kept.is_empty() {
            return write!(formatter, "valid at level {level:?}");
        }
        writeln!(formatter, "broken at level {level:?}")?;
        for violation in &self.kept {
            writeln!(formatter, "{}:", name(violation.anomaly))?;
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
