//! Begins a transaction: takes a snapshot.

use manxdb_fabric::{Fault, Outcome};

use crate::vector::{Snapshot, Vector};
use crate::work::{Step, Work};

/// Reads the vector until a copy of it is whole.
#[derive(Debug, Clone)]
pub struct Begin {
    vector: Vector,
    /// What the session has seen before: it never sees less.
    seen: Snapshot,
    torn: u32,
}

impl Begin {
    pub(crate) fn new(vector: Vector, seen: Snapshot) -> Self {
        let torn = 0;
        Self { vector, seen, torn }
    }
}

impl Work for Begin {
    type Output = Result<Snapshot, Fault>;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        match outcomes.into_iter().next() {
            None => Step::Ask(vec![self.vector.read()]),
            Some(Outcome::Failed(fault)) => Step::Done(Err(fault)),
            Some(Outcome::Read(bytes)) => match self.vector.parse(&bytes) {
                Ok(mut snapshot) => {
                    snapshot.join(&self.seen);
                    Step::Done(Ok(snapshot))
                }
                Err(_) => self.again(),
            },
            Some(_) => self.again(), // no carrier answers a read otherwise
        }
    }
}

impl Begin {
    fn again(&mut self) -> Step<<Self as Work>::Output> {
        self.torn += 1;
        Step::Again(vec![self.vector.read()], self.torn)
    }
}
