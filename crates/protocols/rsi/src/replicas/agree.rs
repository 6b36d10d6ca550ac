//! Agreement on a value among those who can reach most of a few words, whichever of their servers
//! is lost.
//!
//! Paxos with acceptors that do nothing: what an acceptor remembers fits into a word, and who
//! proposes changes it by a swap (as in Guerraoui et al., "Velos: One-sided Paxos for RDMA
//! applications", 2021):
//!
//! ```text
//! PROMISED:24 | ACCEPTED:24 | VALUE:16
//! ```
//!
//! A ballot is had by who has swapped it in, at more than half of the words. So ballots need not
//! differ: of two who try the same, no more than one gets it at any word, and not both at most of
//! them. Memory that is all zero has promised and accepted nothing.

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, Fault, Operation, OperationOutcome, WORD};

use crate::machine::{Machine, Step, assert_all_answered};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;

/// What an acceptor remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Acceptor {
    promised: u64,
    /// 0: nothing.
    accepted: u64,
    value: u16,
}

impl Acceptor {
    const BALLOT_MAX: u64 = (1 << 24) - 1;

    /// Two ballots and a value are a word.
    const FITS: () = assert!(
        2 * Self::BALLOT_MAX.count_ones() + u16::BITS == u64::BITS,
        "two ballots and a value are a word"
    );

    fn word(self) -> u64 {
        let () = Self::FITS;
        assert!(
            self.promised <= Self::BALLOT_MAX && self.accepted <= Self::BALLOT_MAX,
            "ballots are used up before they outgrow their bits: {self:?}"
        );
        self.promised << 40 | self.accepted << 16 | u64::from(self.value)
    }

    fn of_word(word: u64) -> Self {
        let [low, high, ..] = word.to_le_bytes();
        Self {
            promised: word >> 40,
            accepted: word >> 16 & Self::BALLOT_MAX,
            value: u16::from_le_bytes([low, high]),
        }
    }
}

/// What one who remembers has accepted, with the ballot, if anything.
pub(super) fn accepted(word: u64) -> Option<(u64, u16)> {
    let one = Acceptor::of_word(word);
    (one.accepted > 0).then_some((one.accepted, one.value))
}

/// Why nothing was agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Undecided {
    /// Half of the words or more cannot be reached. To be tried again when they can.
    #[error("most of those who remember do not answer: {0}")]
    Fault(#[from] Fault),
    /// There is no ballot left.
    #[error("all {} ballots are used up", Acceptor::BALLOT_MAX)]
    Exhausted,
}

/// Proposes a value, and finds what is agreed on: this or another's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decide {
    places: Vec<Address>,
    value: u16,
    tries: u32,
    phase: Phase,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

/// Each with what the words that it works on were before it: by their places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    Reading,
    Promising(Vec<(usize, Acceptor)>, u64),
    Accepting(Vec<(usize, Acceptor)>, u16),
}

type Decided = Result<u16, Undecided>;

impl Decide {
    /// Words on several servers, of which more than half must be there.
    #[must_use]
    pub fn new(places: Vec<Address>, value: u16) -> Self {
        Self {
            places,
            value,
            tries: 0,
            phase: Phase::Begun,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// The same with a defect.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    fn is_most(&self, count: usize) -> bool {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::DecidesWithoutMost) {
            return count > 0;
        }
        2 * count > self.places.len()
    }

    fn read(&mut self) -> Step<Decided> {
        self.phase = Phase::Reading;
        let read = |at: &Address| Operation::Read {
            at: *at,
            bytes: WORD,
        };
        let reads = self.places.iter().map(read).collect();
        let tries = self.tries;
        self.tries += 1;
        if tries == 0 {
            Step::Post(reads)
        } else {
            Step::Backoff(reads, tries)
        }
    }

    /// The words that answer; promises are asked of them, unless most have accepted the same.
    fn looked(&mut self, outcomes: &[OperationOutcome]) -> Step<Decided> {
        assert_all_answered(outcomes, self.places.len());
        let word = |(place, outcome): (usize, &OperationOutcome)| match outcome {
            OperationOutcome::Read(copy) => {
                let word = u64::from_le_bytes(*copy.first_chunk()?);
                Some((place, Acceptor::of_word(word)))
            }
            _ => None,
        };
        let found: Vec<_> = outcomes.iter().enumerate().filter_map(word).collect();
        if !self.is_most(found.len()) {
            return Step::Done(Err(fault(outcomes)));
        }
        for (_, one) in found.iter().filter(|(_, one)| one.accepted > 0) {
            let same = found
                .iter()
                .filter(|(_, other)| (other.accepted, other.value) == (one.accepted, one.value));
            if self.is_most(same.count()) {
                return Step::Done(Ok(one.value));
            }
        }
        let highest = found.iter().map(|(_, one)| one.promised).max();
        let ballot = highest.unwrap_or(0) + 1;
        if ballot > Acceptor::BALLOT_MAX {
            return Step::Done(Err(Undecided::Exhausted));
        }
        let swaps = found.iter().map(|(place, before)| {
            let promised = Acceptor {
                promised: ballot,
                ..*before
            };
            self.swap(*place, *before, promised)
        });
        let swaps = swaps.collect();
        self.phase = Phase::Promising(found, ballot);
        Step::Post(swaps)
    }

    fn swap(&self, place: usize, from: Acceptor, to: Acceptor) -> Operation {
        assert!(
            place < self.places.len(),
            "a word is swapped that was read: {place} of {}",
            self.places.len()
        );
        let nowhere = Address {
            server: manxdb_fabric::ServerId(u16::MAX),
            offset: 0,
        };
        Operation::CompareSwap {
            at: self.places.get(place).copied().unwrap_or(nowhere),
            expected: from.word(),
            new: to.word(),
        }
    }

    /// Who has the ballot proposes what was accepted last, if anything was.
    fn promised(
        &mut self,
        asked: Vec<(usize, Acceptor)>,
        ballot: u64,
        outcomes: &[OperationOutcome],
    ) -> Step<Decided> {
        assert!(
            asked.iter().all(|(_, before)| before.promised < ballot),
            "a ballot is above all that were promised"
        );
        let ours = swapped(asked, outcomes);
        if !self.is_most(ours.len()) {
            return self.read();
        }
        let last = ours
            .iter()
            .map(|(_, one)| one)
            .max_by_key(|one| one.accepted);
        let accepted = last.filter(|one| one.accepted > 0);
        #[cfg(feature = "mutants")]
        let accepted = accepted.filter(|_| self.mutant != Some(Mutant::ForgetsWhatWasAccepted));
        let value = accepted.map_or(self.value, |one| one.value);
        let promised = ours.into_iter().map(|(place, before)| {
            let promised = ballot;
            (place, Acceptor { promised, ..before })
        });
        let promised: Vec<_> = promised.collect();
        let accepted = Acceptor {
            promised: ballot,
            accepted: ballot,
            value,
        };
        let swaps = promised.iter();
        let swaps = swaps.map(|(place, before)| self.swap(*place, *before, accepted));
        let swaps = swaps.collect();
        self.phase = Phase::Accepting(promised, value);
        Step::Post(swaps)
    }

    fn accepted(
        &mut self,
        asked: Vec<(usize, Acceptor)>,
        value: u16,
        outcomes: &[OperationOutcome],
    ) -> Step<Decided> {
        if self.is_most(swapped(asked, outcomes).len()) {
            return Step::Done(Ok(value));
        }
        self.read()
    }
}

/// Those that were as they were expected to be.
fn swapped(asked: Vec<(usize, Acceptor)>, outcomes: &[OperationOutcome]) -> Vec<(usize, Acceptor)> {
    assert_all_answered(outcomes, asked.len());
    let pairs = asked.into_iter().zip(outcomes);
    let ours =
        pairs.filter(|((_, before), outcome)| **outcome == OperationOutcome::Word(before.word()));
    ours.map(|(asked, _)| asked).collect()
}

/// Why too few have answered.
fn fault(outcomes: &[OperationOutcome]) -> Undecided {
    match crate::machine::fault(outcomes) {
        Some(fault) => fault.into(),
        None => Undecided::Exhausted, // there are no words at all
    }
}

impl Machine for Decide {
    type Output = Decided;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => self.read(),
            Phase::Reading => self.looked(&outcomes),
            Phase::Promising(asked, ballot) => self.promised(asked, ballot, &outcomes),
            Phase::Accepting(asked, value) => self.accepted(asked, value, &outcomes),
        }
    }

    fn check(&self) -> Result<(), String> {
        let mut servers: Vec<_> = self.places.iter().map(|at| at.server).collect();
        servers.sort_unstable();
        servers.dedup();
        ensure(servers.len() == self.places.len(), || {
            "each acceptor is a server of its own".to_owned()
        })?;
        let (Phase::Promising(asked, _) | Phase::Accepting(asked, _)) = &self.phase else {
            return Ok(());
        };
        ensure(self.is_most(asked.len()), || {
            format!(
                "{} of {} acceptors are asked",
                asked.len(),
                self.places.len()
            )
        })?;
        ensure(
            asked.iter().all(|(_, one)| one.accepted <= one.promised),
            || "an acceptor accepts what it has promised".to_owned(),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_word_is_an_acceptors(word: u64) {
            prop_assert_eq!(Acceptor::of_word(word).word(), word);
        }
    }
}
