//! The trait that all carriers have.

use crate::address::ServerId;
use crate::grants::Grants;
use crate::operation::{Misuse, Operation, OperationOutcome};

/// A batch, by the number that its asker gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// A batch that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Which.
    pub batch: BatchId,
    /// What became of its operations, in the order in which they were given.
    pub outcomes: Vec<OperationOutcome>,
}

impl Completion {
    /// What became of a batch. Each operation has an outcome, and one that it can have: layers above
    /// pair them by their order.
    #[must_use]
    pub fn new(batch: BatchId, operations: &[Operation], outcomes: Vec<OperationOutcome>) -> Self {
        assert_eq!(
            outcomes.len(),
            operations.len(),
            "every operation of batch {} has an outcome",
            batch.0
        );
        for (operation, outcome) in operations.iter().zip(&outcomes) {
            assert!(
                operation.is_answered_by(outcome),
                "the outcome {outcome:?} is one that {operation:?} can have"
            );
        }
        Self { batch, outcomes }
    }
}
/// One client's way to the memory of servers.
///
/// All operations of a batch are under way at once and in no order: what must come after another
/// is asked for when that one is complete, but for the word of an [`Operation::WriteThenSet`].
pub trait Fabric {
    /// What it promises.
    fn grants(&self) -> Grants;

    /// Bytes that a server has registered; none when it is unknown.
    fn registered(&self, server: ServerId) -> Option<u64>;

    /// Starts operations; their completion comes out of [`Fabric::poll`].
    ///
    /// # Errors
    /// [`Misuse`]: none of them was started, and nothing will come.
    fn post(&mut self, batch: BatchId, operations: Vec<Operation>) -> Result<(), Misuse>;

    /// The next batch that is over, if there is one now.
    fn poll(&mut self) -> Option<Completion>;

    /// Servers that have been asked for something and have not answered all of it, each with a number
    /// that grows with whatever it answers: by which one who has a clock knows who is silent. None,
    /// of a carrier whose servers answer at once or are gone.
    fn awaited(&self) -> Vec<(ServerId, u64)> {
        Vec::new()
    }

    /// Waits no longer for a server that is awaited: whatever is under way there ends as
    /// [`Fault::Gone`](crate::Fault::Gone), and so does what comes after.
    fn give_up(&mut self, server: ServerId) {
        let _ = server;
    }
}

/// Checks a batch against what is registered.
///
/// # Errors
/// [`Misuse`] of the first operation that makes no sense.
pub fn check(
    operations: &[Operation],
    registered: impl Fn(ServerId) -> Option<u64>,
) -> Result<(), Misuse> {
    operations.iter().try_for_each(|operation| {
        let server = operation.server();
        operation.check(registered(server).ok_or(Misuse::Unknown(server))?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    fn read() -> Operation {
        let at = Address {
            server: ServerId(1),
            offset: 0,
        };
        Operation::Read { at, bytes: 8 }
    }

    #[test]
    #[should_panic(expected = "every operation of batch 7 has an outcome")]
    fn a_completion_with_too_few_outcomes_is_none() {
        let _ = Completion::new(
            BatchId(7),
            &[read(), read()],
            vec![OperationOutcome::Read(vec![0; 8])],
        );
    }

    #[test]
    #[should_panic(expected = "is one that")]
    fn a_read_is_not_answered_as_a_write() {
        let _ = Completion::new(BatchId(7), &[read()], vec![OperationOutcome::Written]);
    }
}
