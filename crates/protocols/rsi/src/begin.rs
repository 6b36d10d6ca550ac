//! Begins a transaction: takes a snapshot.

use manxdb_core::check::ensure;
use manxdb_fabric::{Fault, OperationOutcome};

use crate::machine::{Machine, Step, copy_of, only};
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

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        let Some(outcome) = only(outcomes) else {
            return Step::Post(vec![self.vector.read()]);
        };
        let (snapshot, torn) = match copy_of(&outcome) {
            Ok(copy) => self.vector.parse(copy),
            Err(fault) => return Step::Done(Err(fault)),
        };
        self.seen.join(&snapshot);
        self.tries += 1;
        if torn > 0 && self.tries < TRIES_MAX {
            return Step::Backoff(vec![self.vector.read()], self.tries);
        }
        Step::Done(Ok(self.seen.clone()))
    }

    fn check(&self) -> Result<(), String> {
        ensure(self.tries <= TRIES_MAX, || {
            format!("the vector was read {} times for torn lines", self.tries)
        })?;
        let numbers = self.seen.numbers().len();
        ensure(numbers == usize::from(self.vector.threads()), || {
            format!(
                "a snapshot of {numbers} threads, of a vector of {}",
                self.vector.threads()
            )
        })
    }
}
