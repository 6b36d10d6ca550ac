//! Words that only ever go up, raised wherever they are less.

use std::collections::BTreeSet;

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, Fault, Operation, OperationOutcome};

use crate::machine::{Machine, Step, assert_all_answered, fault};

/// Swaps words until each is at least what it is to be, whoever else raises them meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RaiseMax {
    swaps: Vec<Operation>,
    is_begun: bool,
}

impl RaiseMax {
    /// Words of servers, each with what it is to be at least.
    pub(crate) fn new(words: impl IntoIterator<Item = (Address, u64)>) -> Self {
        let words = words.into_iter().filter(|(_, new)| *new > 0);
        let swap = |(at, new)| Operation::CompareSwap {
            at,
            expected: 0,
            new,
        };
        Self {
            swaps: words.map(swap).collect(),
            is_begun: false,
        }
    }
}

impl Machine for RaiseMax {
    type Output = Result<(), Fault>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        if let Some(fault) = fault(&outcomes) {
            return Step::Done(Err(fault));
        }
        if std::mem::replace(&mut self.is_begun, true) {
            assert_all_answered(&outcomes, self.swaps.len());
            let pairs = self.swaps.iter().zip(&outcomes);
            self.swaps = pairs
                .filter_map(|(swap, found)| again(swap, found))
                .collect();
        }
        if self.swaps.is_empty() {
            return Step::Done(Ok(()));
        }
        Step::Post(self.swaps.clone())
    }

    fn check(&self) -> Result<(), String> {
        let goes_up = |swap: &Operation| match swap {
            Operation::CompareSwap { expected, new, .. } => expected < new,
            _ => false,
        };
        ensure(self.swaps.iter().all(goes_up), || {
            "words are swapped upwards".to_owned()
        })?;
        let places = self.swaps.iter().map(|swap| match swap {
            Operation::CompareSwap { at, .. } => Some(*at),
            _ => None,
        });
        let places: BTreeSet<Option<Address>> = places.collect();
        ensure(places.len() == self.swaps.len(), || {
            format!("a word is to become two things: {:?}", self.swaps)
        })
    }
}

/// The swap that is to follow one which has found something else, when that is less than what it
/// was to become.
pub(super) fn again(swap: &Operation, outcome: &OperationOutcome) -> Option<Operation> {
    match (swap, outcome) {
        (Operation::CompareSwap { at, expected, new }, OperationOutcome::Word(found))
            if found != expected && found < new =>
        {
            Some(Operation::CompareSwap {
                at: *at,
                expected: *found,
                new: *new,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::ServerId;

    use super::*;

    #[test]
    fn what_is_more_already_stays_and_what_is_less_is_raised() {
        let at = |offset| Address {
            server: ServerId(0),
            offset,
        };
        let mut words = [3, 9, 5];
        let mut raise = RaiseMax::new([(at(0), 5), (at(1), 5), (at(2), 5), (at(2), 0)]);
        let mut outcomes = Vec::new();
        while let Step::Post(swaps) = raise.step(outcomes) {
            let mut swap = |swap: &Operation| {
                let Operation::CompareSwap { at, expected, new } = swap else {
                    panic!("{swap:?}");
                };
                let word = &mut words[usize::try_from(at.offset).unwrap()];
                let found = *word;
                if found == *expected {
                    *word = *new;
                }
                OperationOutcome::Word(found)
            };
            outcomes = swaps.iter().map(&mut swap).collect();
        }
        assert_eq!(words, [5, 9, 5]);
    }
}
