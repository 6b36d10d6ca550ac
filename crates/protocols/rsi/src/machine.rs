//! How steps are carried out: a conversation between a protocol and a fabric.

use std::future::Future;

use manxdb_core::check::{deep, ensure};
use manxdb_fabric::{Fault, Operation, OperationOutcome};

/// What a machine wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step<T> {
    /// Post these operations, all at once.
    Post(Vec<Operation>),
    /// Contended: back off, then post these operations. The number is the attempt, from 1.
    Backoff(Vec<Operation>, u32),
    /// The machine is done; this is its result.
    Done(T),
}

impl<T> Step<T> {
    /// What came of it; or what is wanted first, of whatever it is a part of.
    pub(crate) fn done<U>(self) -> Result<T, Step<U>> {
        match self {
            Self::Done(output) => Ok(output),
            Self::Post(operations) => Err(Step::Post(operations)),
            Self::Backoff(operations, times) => Err(Step::Backoff(operations, times)),
        }
    }
}

/// Something to be done with one-sided memory. What is done so far is a value that can be compared
/// and hashed: a checker goes through all that can become of it.
pub trait Machine {
    /// What comes of it.
    type Output;

    /// What a machine does in [`Machine::step`].
    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output>;

    /// What is true of the machine between two steps: how its parts relate, and what bounds them.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String>;

    /// Goes on with the outcomes of the operations that the last step has posted, one for each and in
    /// their order; with none at the beginning. At the level [`manxdb_core::check::deep`] the machine
    /// is checked after each step, and so are the machines inside it.
    fn step(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        let step = self.advance(outcomes);
        if deep() {
            let checked = self.check();
            assert!(checked.is_ok(), "an invariant is broken: {checked:?}");
        }
        step
    }
}

/// Operations that are done once, together; what comes of each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Once {
    operations: Vec<Operation>,
    times: u32,
    /// Operations under way; none before they are posted.
    posted: Option<usize>,
}

impl Once {
    /// These.
    #[must_use]
    pub fn new(operations: Vec<Operation>) -> Self {
        Self::late(operations, 0)
    }

    /// These, after a pause if they were asked for before.
    pub(crate) fn late(operations: Vec<Operation>, times: u32) -> Self {
        Self {
            operations,
            times,
            posted: None,
        }
    }
}

impl Machine for Once {
    type Output = Vec<OperationOutcome>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        let posted = self.posted.replace(self.operations.len());
        assert_eq!(
            outcomes.len(),
            posted.unwrap_or(0),
            "every operation that was posted has an outcome"
        );
        if posted.is_some() || self.operations.is_empty() {
            return Step::Done(outcomes);
        }
        let operations = std::mem::take(&mut self.operations);
        match self.times {
            0 => Step::Post(operations),
            times => Step::Backoff(operations, times),
        }
    }

    fn check(&self) -> Result<(), String> {
        ensure(self.posted.is_none() || self.operations.is_empty(), || {
            "what was posted is not posted again".to_owned()
        })
    }
}

/// Who carries pieces of work out: over memory shared by processes at once, in a simulator whenever
/// their time has come. What is put together of several pieces is written against this.
pub trait Carrier {
    /// Why it cannot.
    type Error;

    /// Carries a piece of work out to its end.
    fn run<W: Machine>(&mut self, work: W) -> impl Future<Output = Result<W::Output, Self::Error>>;
}

/// The first fault in what has come of operations.
pub(crate) fn fault(outcomes: &[OperationOutcome]) -> Option<Fault> {
    outcomes.iter().find_map(|outcome| match outcome {
        OperationOutcome::Failed(fault) => Some(*fault),
        _ => None,
    })
}

/// The copy that a read has brought.
///
/// # Errors
/// Its fault.
pub(crate) fn copy_of(outcome: &OperationOutcome) -> Result<&[u8], Fault> {
    match outcome {
        OperationOutcome::Read(copy) => Ok(copy),
        OperationOutcome::Failed(fault) => Err(*fault),
        other => {
            assert!(
                matches!(other, OperationOutcome::Read(_)),
                "a read is answered by a copy: {other:?}"
            );
            Ok(&[])
        }
    }
}

/// The word that a swap or an addition has found.
///
/// # Errors
/// Its fault.
pub(crate) fn word_of(outcome: &OperationOutcome) -> Result<u64, Fault> {
    match outcome {
        OperationOutcome::Word(word) => Ok(*word),
        OperationOutcome::Failed(fault) => Err(*fault),
        other => {
            assert!(
                matches!(other, OperationOutcome::Word(_)),
                "a swap is answered by a word: {other:?}"
            );
            Ok(u64::MAX)
        }
    }
}

/// The only outcome of a machine that posts one operation at a time; none at its beginning.
pub(crate) fn only(outcomes: Vec<OperationOutcome>) -> Option<OperationOutcome> {
    assert!(
        outcomes.len() <= 1,
        "one operation was posted, and has one outcome"
    );
    outcomes.into_iter().next()
}

/// Fails unless what was posted has as many outcomes.
pub(crate) fn assert_all_answered(outcomes: &[OperationOutcome], posted: usize) {
    assert_eq!(
        outcomes.len(),
        posted,
        "every operation that was posted has an outcome"
    );
}

/// The first fault of writes that were all answered.
pub(crate) fn unwritten(outcomes: &[OperationOutcome]) -> Option<Fault> {
    let is_answer = |one: &OperationOutcome| {
        matches!(one, OperationOutcome::Written | OperationOutcome::Failed(_))
    };
    assert!(
        outcomes.iter().all(is_answer),
        "writes are answered as writes: {outcomes:?}"
    );
    fault(outcomes)
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::{Address, ServerId};

    use super::*;

    fn read() -> Operation {
        let at = Address {
            server: ServerId(0),
            offset: 0,
        };
        Operation::Read { at, bytes: 8 }
    }

    #[test]
    #[should_panic(expected = "every operation that was posted has an outcome")]
    fn an_outcome_that_did_not_come_is_not_taken_for_success() {
        let mut once = Once::new(vec![read(), read()]);
        let _ = once.step(Vec::new());
        let _ = once.step(vec![OperationOutcome::Read(vec![0; 8])]);
    }

    #[test]
    #[should_panic(expected = "a read is answered by a copy")]
    fn a_read_that_is_answered_as_a_write_is_not_taken_for_zeros() {
        let _ = copy_of(&OperationOutcome::Written);
    }

    #[test]
    #[should_panic(expected = "writes are answered as writes")]
    fn a_word_is_not_taken_for_a_write_that_is_done() {
        let _ = unwritten(&[OperationOutcome::Written, OperationOutcome::Word(0)]);
    }

    /// A machine whose invariant is broken.
    struct Broken;

    impl Machine for Broken {
        type Output = ();

        fn advance(&mut self, _: Vec<OperationOutcome>) -> Step<()> {
            Step::Done(())
        }

        fn check(&self) -> Result<(), String> {
            ensure(false, || "planted".to_owned())
        }
    }

    #[test]
    #[should_panic(expected = "an invariant is broken: Err(\"planted\")")]
    fn a_machine_is_checked_after_each_step() {
        manxdb_core::check::enable_deep();
        let _ = Broken.step(Vec::new());
    }
}
