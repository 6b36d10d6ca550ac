//! Operations on their way: many at a time, whose ends are looked at later.

use std::collections::VecDeque;

use manxdb_fabric::{BatchId, Fabric, Operation, OperationOutcome, ServerId, WORD, turn};

use crate::error::OlapError;
use crate::traffic::Traffic;

/// Batches on their way at once: enough that nobody waits for a card that is busy.
const ON_THE_WAY: usize = 32;

/// A node's way to the memory of all nodes.
#[derive(Debug)]
pub(super) struct Pipe<F> {
    fabric: F,
    me: ServerId,
    last: u64,
    /// Batches that nobody waits for, oldest first.
    on_the_way: VecDeque<BatchId>,
    sent: Traffic,
}

impl<F: Fabric> Pipe<F> {
    pub fn new(fabric: F, me: u16) -> Self {
        Self {
            fabric,
            me: ServerId(me),
            last: 0,
            on_the_way: VecDeque::new(),
            sent: Traffic::default(),
        }
    }

    pub fn sent(&self) -> Traffic {
        self.sent
    }

    fn start(&mut self, operations: Vec<Operation>) -> Result<BatchId, OlapError> {
        for operation in &operations {
            if operation.server() != self.me {
                self.sent.count(bytes(operation));
            }
        }
        self.last += 1;
        let batch = BatchId(self.last);
        self.fabric.post(batch, operations)?;
        Ok(batch)
    }

    /// Starts a write, and waits only for others if there are many.
    ///
    /// # Errors
    /// It makes no sense, or an earlier one has failed.
    pub fn post(&mut self, write: Operation) -> Result<(), OlapError> {
        while self.on_the_way.len() >= ON_THE_WAY {
            self.hear(None)?;
        }
        let batch = self.start(vec![write])?;
        self.on_the_way.push_back(batch);
        Ok(())
    }

    /// Does operations, and waits for them.
    ///
    /// # Errors
    /// As [`Pipe::post`].
    pub fn ask(&mut self, operations: Vec<Operation>) -> Result<Vec<OperationOutcome>, OlapError> {
        let batch = self.start(operations)?;
        loop {
            if let Some(outcomes) = self.hear(Some(batch))? {
                return Ok(outcomes);
            }
        }
    }

    /// Waits until nothing is on its way: what was written is seen by all.
    ///
    /// # Errors
    /// A write has failed.
    pub fn drain(&mut self) -> Result<(), OlapError> {
        while !self.on_the_way.is_empty() {
            self.hear(None)?;
        }
        Ok(())
    }

    /// Waits for the end of some batch; the outcomes, if it is the one that is wanted.
    fn hear(
        &mut self,
        wanted: Option<BatchId>,
    ) -> Result<Option<Vec<OperationOutcome>>, OlapError> {
        let mut turns = 0;
        let completion = loop {
            match self.fabric.poll() {
                Some(completion) => break completion,
                None => turn(&mut turns),
            }
        };
        for outcome in &completion.outcomes {
            if let OperationOutcome::Failed(fault) = outcome {
                return Err((*fault).into());
            }
        }
        if wanted == Some(completion.batch) {
            return Ok(Some(completion.outcomes));
        }
        self.on_the_way.retain(|batch| *batch != completion.batch);
        Ok(None)
    }
}

/// What an operation moves.
fn bytes(operation: &Operation) -> u64 {
    match operation {
        Operation::Read { bytes, .. } => *bytes,
        Operation::Write { bytes, .. } => bytes.len() as u64,
        Operation::WriteThenSet { bytes, .. } => bytes.len() as u64 + WORD,
        Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => WORD,
    }
}
