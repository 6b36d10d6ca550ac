//! When transactions reached the phases that cores mark, so that a latency can be split.

use std::collections::BTreeMap;

use manxdb_core::{Nanos, NodeId};

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

/// Splits the time from `begin` to `end`: each span bears the name of the phase that ends it, the
/// last one is `rest`. The spans add up to the whole.
pub fn split(
    begin: SimTime,
    marks: &[Mark],
    end: SimTime,
    rest: &'static str,
) -> Vec<(&'static str, Nanos)> {
    let mut marks: Vec<&Mark> = marks.iter().collect();
    marks.sort_by_key(|mark| mark.at);
    let mut since = begin;
    let mut spans = Vec::new();
    for mark in marks {
        let at = mark.at.clamp(since, end.max(since));
        spans.push((mark.phase, at.since(since)));
        since = at;
    }
    spans.push((rest, end.since(since)));
    spans
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_between_marks_add_up_to_the_whole() {
        let mark = |millis, phase| Mark {
            at: SimTime::from_millis(millis),
            node: NodeId(0),
            phase,
        };
        let marks = [mark(12, "executed"), mark(10, "ordered"), mark(30, "late")];
        let (begin, end) = (SimTime::from_millis(7), SimTime::from_millis(15));
        let expected = [("ordered", 3), ("executed", 2), ("late", 3), ("reply", 0)];
        let expected = expected.map(|(phase, millis)| (phase, Nanos::from_millis(millis)));
        assert_eq!(split(begin, &marks, end, "reply"), expected);
    }
}
