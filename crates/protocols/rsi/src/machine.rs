//! How steps are carried out: a conversation between a protocol and a fabric.

use std::future::Future;

use manxdb_fabric::{Fault, Operation, Outcome};

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

    /// Goes on with the outcomes of what it asked for; with none at the beginning.
    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output>;
}

/// Operations that are done once, together; what comes of each.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Once {
    operations: Vec<Operation>,
    times: u32,
    is_begun: bool,
}

impl Once {
    /// These.
    #[must_use]
    pub fn new(operations: Vec<Operation>) -> Self {
        Self::late(operations, 0)
    }

    /// These, after a pause if they were asked for before.
    pub(crate) fn late(operations: Vec<Operation>, times: u32) -> Self {
        let is_begun = false;
        Self {
            operations,
            times,
            is_begun,
        }
    }
}

impl Machine for Once {
    type Output = Vec<Outcome>;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        if std::mem::replace(&mut self.is_begun, true) || self.operations.is_empty() {
            return Step::Done(outcomes);
        }
        let operations = std::mem::take(&mut self.operations);
        match self.times {
            0 => Step::Post(operations),
            times => Step::Backoff(operations, times),
        }
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
pub(crate) fn fault(outcomes: &[Outcome]) -> Option<Fault> {
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Failed(fault) => Some(*fault),
        _ => None,
    })
}
