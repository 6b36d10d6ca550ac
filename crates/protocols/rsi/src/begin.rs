//! Begins a transaction: takes a snapshot.

use manxdb_fabric::{Fault, Outcome};

use crate::machine::{Machine, Step};
use crate::vector::{Snapshot, Vector};

/// Lines that are being written are waited for this often. Without them the snapshot is older.
const TRIES_MAX: u32 = 3;

/// Reads the vector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Begin {
    vector: Vector,
    /// What the session has seen before: it never sees less.
    seen: Snapshot,
    tries: u32,
}

impl Begin {
    pub(crate) fn new(vector: Vector, seen: Snapshot) -> Self {
        let tries = 0;
        Self {
            vector,
            seen,
            tries,
        }
    }
}

impl Machine for Begin {
    type Output = Result<Snapshot, Fault>;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        let bytes = match outcomes.into_iter().next() {
            None => return Step::Post(vec![self.vector.read()]),
            Some(Outcome::Failed(fault)) => return Step::Done(Err(fault)),
            Some(Outcome::Read(bytes)) => bytes,
            Some(_) => Vec::new(), // no carrier answers a read otherwise
        };
        let (snapshot, torn) = self.vector.parse(&bytes);
        self.seen.join(&snapshot);
        self.tries += 1;
        if torn > 0 && self.tries < TRIES_MAX {
            return Step::Backoff(vec![self.vector.read()], self.tries);
        }
        Step::Done(Ok(self.seen.clone()))
    }
}
