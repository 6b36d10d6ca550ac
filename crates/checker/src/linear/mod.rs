//! Linearizability, key by key, of objects whose behaviour a sequential [`Model`] gives.
//!
//! A history is linearizable if every operation can be given one instant between its invocation
//! and its completion so that the object, taken through the operations in the order of these
//! instants, gives every answer that a client saw (Herlihy and Wing, TOPLAS 1990). It is local: a
//! history is linearizable if and only if it is so for each key alone, so keys are judged apart.
//!
//! An operation of unknown outcome stays open: it may take effect at any time after its
//! invocation, also after everything else, which is the same as never.
//!
//! The search is Wing's and Gong's with Lowe's memory of visited configurations ("Testing for
//! linearizability", 2017), the one of Porcupine. It is exponential in the number of operations
//! that overlap, so it has a limit on its steps: past it the verdict is
//! [`Verdict::Undecided`], never "valid".
//!
//! [`check`] is the way in; [`models`] has registers, counters and lists.

pub mod models;
mod search;

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display, Formatter};

pub use models::{Counter, List, Register};

/// What an object does when it is alone.
pub trait Model {
    /// What the object remembers.
    type State: Clone + Ord + Debug;
    /// What is asked of it.
    type Input: Clone + Debug;
    /// What it answers.
    type Output: Clone + PartialEq + Debug;

    /// The object before the first operation.
    fn initial(&self) -> Self::State;

    /// The object and its answer after one operation.
    fn apply(&self, state: &Self::State, input: &Self::Input) -> (Self::State, Self::Output);
}

/// What a client learned of the end of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinearOutcome<O> {
    /// It took effect, and answered this.
    Answered {
        /// When the client learned of it, on the one clock of the history.
        at: u64,
        /// What it learned.
        output: O,
    },
    /// It did not and never will take effect.
    Refused,
    /// Nothing certain: it may take effect even later.
    Unknown,
}

/// One operation on one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinearOperation<K, I, O> {
    /// For messages.
    pub name: u64,
    /// The object.
    pub key: K,
    /// When it was invoked, on one clock for all.
    pub invoked: u64,
    /// What was asked.
    pub input: I,
    /// How it ended.
    pub outcome: LinearOutcome<O>,
}

/// The operations of a model's objects.
pub type OperationOf<K, M> = LinearOperation<K, <M as Model>::Input, <M as Model>::Output>;

/// The answer of [`check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<K> {
    /// Every key has an order that explains all answers.
    Linearizable,
    /// A key has none.
    Broken {
        /// Which, the lowest.
        key: K,
        /// The longest order found, and what could not follow it.
        proof: String,
    },
    /// The search ended at its limit before it knew.
    Undecided {
        /// At which key.
        key: K,
        /// Configurations looked at.
        steps: u64,
    },
}

impl<K> Verdict<K> {
    /// Whether an order was found for every key.
    #[must_use]
    pub fn is_linearizable(&self) -> bool {
        matches!(self, Self::Linearizable)
    }
}

impl<K: Debug> Display for Verdict<K> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linearizable => write!(formatter, "linearizable"),
            Self::Broken { key, proof } => {
                write!(formatter, "key {key:?} is not linearizable:\n{proof}")
            }
            Self::Undecided { key, steps } => {
                write!(formatter, "undecided at key {key:?} after {steps} steps")
            }
        }
    }
}

/// Judges a history; at most `steps_max` configurations are looked at for each key.
#[must_use]
pub fn check<K: Ord + Clone, M: Model>(
    model: &M,
    history: &[OperationOf<K, M>],
    steps_max: u64,
) -> Verdict<K> {
    let mut keys: BTreeMap<&K, Vec<&OperationOf<K, M>>> = BTreeMap::new();
    for operation in history {
        if operation.outcome != LinearOutcome::Refused {
            keys.entry(&operation.key).or_default().push(operation);
        }
    }
    for (key, operations) in keys {
        let found = search::search(model, &operations, steps_max);
        let key = key.clone();
        match found {
            search::Found::Order => {}
            search::Found::None { proof } => return Verdict::Broken { key, proof },
            search::Found::TooMany { steps } => return Verdict::Undecided { key, steps },
        }
    }
    Verdict::Linearizable
}
