//! What must be on disk before a copy of memory needs nothing more.
//!
//! A copy of all memory is made while transactions go on, between two looks at the vector. All that
//! is in the first look was in memory before anything was copied. What is in the copy beside that was
//! installed by the end of it, and therefore logged. So a copy is complete, with the batches behind the
//! first look, when all that was logged by its end is on disk: whatever it has that is torn, locked or
//! newer they write again.

use manxdb_core::check::ensure;
use manxdb_fabric::{Fault, OperationOutcome};

use crate::durable_positions::DurablePositions;
use crate::log::{Fetch, Log, by_log, newest};
use crate::machine::{Machine, Step, fault};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::vector::{Snapshot, Vector};

/// Finds out what is logged by now, to be carried out when all memory is copied. The copy is complete
/// when this is synced.
#[derive(Debug, Clone)]
pub struct Survey {
    vector: Vector,
    kept: DurablePositions,
    logs: Vec<Log>,
    logged: Snapshot,
    phase: Phase,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

#[derive(Debug, Clone)]
enum Phase {
    Begun,
    /// Reads the fronts of what is in all logs,
    Fronts(Fetch),
    /// then the rests.
    Rests(Fetch),
    /// Reads the vector, and what the log archiver has written: what was in a slot that was written over
    /// meanwhile is in that.
    Ending,
}

impl Survey {
    /// Of all logs of the vector's threads, in their order, at servers ([`Log::on`]).
    #[must_use]
    pub fn new(vector: Vector, kept: DurablePositions, logs: Vec<Log>) -> Self {
        Self {
            vector,
            kept,
            logs,
            logged: Snapshot::empty(vector.threads()),
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

    fn read(&mut self) -> Step<Result<Snapshot, Fault>> {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::CompletesTooEarly) {
            return self.end();
        }
        let fetch = Fetch::new(self.logs.iter().flat_map(Log::all).collect());
        let fronts = fetch.fronts();
        self.phase = Phase::Fronts(fetch);
        Step::Post(fronts)
    }

    fn have_read(&mut self, all: &[OperationOutcome]) -> Step<Result<Snapshot, Fault>> {
        for (_, own) in by_log(&self.logs, all) {
            // What is installed is in all copies that are not gone.
            let is_read = own
                .iter()
                .any(|copy| matches!(copy, OperationOutcome::Read(_)));
            if let Some(fault) = fault(own).filter(|_| !is_read) {
                return Step::Done(Err(fault));
            }
            if let Some(entry) = newest(own) {
                self.logged.add(entry.stamp);
            }
        }
        self.end()
    }

    fn end(&mut self) -> Step<Result<Snapshot, Fault>> {
        self.phase = Phase::Ending;
        Step::Post(vec![self.vector.read(), self.kept.read()])
    }

    fn ended(&mut self, outcomes: &[OperationOutcome]) -> Step<Result<Snapshot, Fault>> {
        if let Some(fault) = fault(outcomes) {
            return Step::Done(Err(fault));
        }
        assert!(
            matches!(
                outcomes,
                [OperationOutcome::Read(_), OperationOutcome::Read(_)]
            ),
            "a survey ends with the vector and the positions"
        );
        if let [OperationOutcome::Read(lines), OperationOutcome::Read(words)] = outcomes {
            self.logged.join(&self.vector.parse(lines).0);
            self.logged.join(&self.kept.parse(words).0);
        }
        Step::Done(Ok(self.logged.clone()))
    }
}

impl Machine for Survey {
    type Output = Result<Snapshot, Fault>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => self.read(),
            Phase::Fronts(mut fetch) => {
                let rests = fetch.rests(outcomes);
                self.phase = Phase::Rests(fetch);
                if rests.is_empty() {
                    return self.step(Vec::new());
                }
                Step::Post(rests)
            }
            Phase::Rests(fetch) => self.have_read(&fetch.copies(outcomes)),
            Phase::Ending => self.ended(&outcomes),
        }
    }

    fn check(&self) -> Result<(), String> {
        let threads = self.vector.threads();
        ensure(self.logs.len() == usize::from(threads), || {
            format!("{} logs of {threads} threads", self.logs.len())
        })?;
        ensure(self.kept.threads() == threads, || {
            format!(
                "positions of {} threads, a vector of {threads}",
                self.kept.threads()
            )
        })
    }
}
