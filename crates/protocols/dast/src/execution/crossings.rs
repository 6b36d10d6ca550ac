//! The cross-region transactions of a region, whether they touch this shard or not: what a strict
//! answer may depend on through other shards.
//!
//! A local transaction of two shards carries what it saw on one to the other: who comes after it
//! there comes after every cross-region transaction before it, on any shard of the region.

use std::collections::BTreeSet;

use manxdb_core::check::ensure;
use serde::{Deserialize, Serialize};

use crate::call::Planned;
use crate::timestamp::Timestamp;

/// Their places, as far as transactions have not had their turn beyond them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Crossings {
    /// Anticipated timestamps that are not decided.
    open: BTreeSet<Timestamp>,
    /// Final ones.
    decided: BTreeSet<Timestamp>,
    /// The last one before everything that was asked for.
    passed: Timestamp,
    /// The newest one that what has had its turn here may depend on.
    high: Timestamp,
    #[cfg(feature = "mutants")]
    #[serde(skip)]
    mutant: Option<crate::mutants::Mutant>,
}

impl Crossings {
    /// One has an anticipated timestamp.
    pub(super) fn open(&mut self, anticipated: Timestamp) {
        self.open.insert(anticipated);
    }

    /// It is decided; without a place it never runs.
    pub(super) fn decide(&mut self, anticipated: Timestamp, at: Option<Timestamp>) {
        self.open.remove(&anticipated);
        self.decided.extend(at);
    }

    /// A transaction has its turn here, at which every cut has passed it.
    pub(super) fn turn(&mut self, at: Timestamp, planned: &Planned) {
        #[cfg(feature = "mutants")]
        if self.is_overlooked(planned) {
            return;
        }
        if planned.crosses_regions {
            // From its turn on, not from its end: what passes its deferred pieces has seen the
            // others.
            self.high = at;
        } else if planned.shards.len() > 1 {
            let before = self.before(at);
            self.high = self.high.max(before);
        }
    }

    /// The newest one that what has had its turn here may depend on.
    pub(super) fn high(&self) -> Timestamp {
        self.high
    }

    /// What is true of them between any two turns.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        let (passed, high) = (self.passed, self.high);
        ensure(passed <= high, || {
            format!("X12: {passed:?} is passed, and {high:?} is the newest that was seen")
        })
    }

    #[cfg(feature = "mutants")]
    fn is_overlooked(&self, planned: &Planned) -> bool {
        use crate::mutants::Mutant;
        let mut pieces = planned.pieces.iter();
        match self.mutant {
            Some(Mutant::HighWithoutDeferred) => pieces.any(|piece| piece.needs().next().is_some()),
            Some(Mutant::HighOfOwnShard) => !planned.crosses_regions,
            _ => false,
        }
    }

    /// Plants a defect.
    #[cfg(feature = "mutants")]
    pub(super) fn plant(&mut self, mutant: Option<crate::mutants::Mutant>) {
        self.mutant = mutant;
    }

    /// The newest one that may lie before `at`, at which every cut has passed; it is asked for in
    /// ascending order. One that is not decided may lie anywhere.
    fn before(&mut self, at: Timestamp) -> Timestamp {
        while let Some(first) = self.decided.first().copied().filter(|first| *first < at) {
            self.decided.pop_first();
            self.passed = self.passed.max(first);
        }
        assert!(
            self.passed < at,
            "places are asked for in ascending order: {at:?} after {:?}",
            self.passed
        );
        match self.open.first() {
            Some(open) if *open < at => at,
            _ => self.passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::at(micros, 1)
    }

    #[test]
    fn the_newest_that_may_lie_before_is_found() {
        let mut crossings = Crossings::default();
        assert_eq!(crossings.before(at(5)), Timestamp::ZERO);
        crossings.open(at(10));
        crossings.open(at(20));
        assert_eq!(crossings.before(at(9)), Timestamp::ZERO);
        assert_eq!(crossings.before(at(12)), at(12), "it may lie at 11");
        crossings.decide(at(10), Some(at(15)));
        assert_eq!(crossings.before(at(14)), Timestamp::ZERO);
        assert_eq!(crossings.before(at(16)), at(15));
        crossings.decide(at(20), None);
        assert_eq!(crossings.before(at(30)), at(15));
    }
}
