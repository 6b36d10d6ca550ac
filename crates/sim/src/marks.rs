//! When transactions reached the phases that cores mark, so that a latency can be split.

use std::collections::BTreeMap;

use manxdb_core::NodeId;

use crate::time::SimTime;

/// A transaction reached a phase on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// When the step that says so was done.
    pub at: SimTime,
    /// Where.
    pub node: NodeId,
    /// What was reached.
    pub phase: &'static str,
}

/// Marks by transaction, in the order of the steps that made them.
#[derive(Debug, Default)]
pub struct Marks {
    wanted: bool,
    by_txn: BTreeMap<u64, Vec<Mark>>,
}

impl Marks {
    /// Keeps marks only when they are wanted.
    pub(crate) fn new(wanted: bool) -> Self {
        Self {
            wanted,
            by_txn: BTreeMap::new(),
        }
    }

    pub(crate) fn note(&mut self, txn: u64, mark: Mark) {
        if self.wanted {
            self.by_txn.entry(txn).or_default().push(mark);
        }
    }

    /// The marks of a transaction so far, given up: who takes them keeps memory small.
    pub fn take(&mut self, txn: u64) -> Vec<Mark> {
        self.by_txn.remove(&txn).unwrap_or_default()
    }

    /// How many transactions have marks.
    pub fn len(&self) -> usize {
        self.by_txn.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_txn.is_empty()
    }
}
