//! Goes on where a thread has died.
//!
//! Only for a thread that writes nothing any more: it was shut out of all servers (reference: rack,
//! §2.5). One recovers a thread at a time; who dies over it is shut out too and followed by another,
//! which begins anew and finds what is done already ([`crate::membership`] sees to both).
//!
//! A transaction that is whole in one of the thread's logs is installed: its records are still
//! locked, or were installed by the thread itself. First it is written to the other logs: were
//! the only server that has it lost when half of it is installed, nobody could go on. One that is
//! in none has installed nothing (I4), so its locks are only in the way.
//!
//! Last comes a *closing*: a transaction that writes nothing, logged and published as any other. Its
//! number is the one under which the thread may have locked records when it died, so that by the
//! vector alone everybody knows that these locks are nobody's ([`Head`]). Whoever has the thread's
//! place next begins behind it, and no number is ever used twice. A closing is logged before it is
//! published because a line that somebody dies over says nothing any more.

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, Fault, Operation, OperationOutcome};

use crate::block::{Block, Layout};
use crate::log::{Fetch, Log, LogEntry, Redo, newest};
use crate::machine::{Machine, Step, assert_all_answered, copy_of, unwritten, word_of};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::vector::{Snapshot, Vector};
use crate::version::{Head, Stamp, ThreadId};

/// What was done for a dead thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Recovered {
    /// Its closing: locks of the thread up to this number are nobody's, and whoever has its place
    /// next begins behind it.
    pub last: Stamp,
    /// Records that were written for it.
    pub records: usize,
}

/// Installs and publishes what a dead thread has committed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recover {
    thread: ThreadId,
    vector: Vector,
    log: Log,
    /// Records that were written so far.
    records: usize,
    /// What was last in the log.
    last: Option<LogEntry>,
    /// What is logged and published now is the closing.
    is_closing: bool,
    phase: Phase,
    #[cfg(feature = "mutants")]
    pub(crate) mutant: Option<Mutant>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    /// Reads the vector, and the fronts of what is in the logs.
    Looking(Fetch),
    /// Reads the rest of it.
    Reading(Snapshot, Fetch),
    /// Writes the transaction to the logs that lack it.
    Logging(LogEntry),
    /// Reads the records.
    Comparing(LogEntry),
    /// Writes those that are still locked.
    Installing(LogEntry),
    /// Writes the thread's line.
    Publishing(LogEntry),
}

impl Recover {
    /// For a thread that writes nothing any more.
    #[must_use]
    pub fn new(thread: ThreadId, vector: Vector, log: Log) -> Self {
        Self {
            thread,
            vector,
            log,
            records: 0,
            last: None,
            is_closing: false,
            phase: Phase::Begun,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    fn look(&mut self) -> Step<Result<Recovered, Fault>> {
        let fetch = Fetch::new(self.log.all().collect());
        let mut operations = vec![self.vector.read()];
        operations.extend(fetch.fronts());
        self.phase = Phase::Looking(fetch);
        Step::Post(operations)
    }

    /// The vector is here, and the fronts of what is in the logs.
    fn looked(
        &mut self,
        mut fetch: Fetch,
        mut outcomes: Vec<OperationOutcome>,
    ) -> Step<Result<Recovered, Fault>> {
        assert_all_answered(&outcomes, 1 + self.log.count());
        let fronts = outcomes.split_off(1);
        let snapshot = match outcomes.first().map(copy_of) {
            Some(Ok(copy)) => self.vector.parse(copy),
            Some(Err(fault)) => return Step::Done(Err(fault)),
            None => return self.look(), // not reached: there are as many outcomes
        };
        // A line that the thread died over says nothing; the log then has what it was to say.
        let (seen, _) = snapshot;
        let rests = fetch.rests(fronts);
        if rests.is_empty() {
            return self.judge(seen, &fetch.copies(Vec::new()));
        }
        self.phase = Phase::Reading(seen, fetch);
        Step::Post(rests)
    }

    /// All that is in the logs is here. A server that is gone has its log elsewhere.
    fn judge(
        &mut self,
        seen: Snapshot,
        logs: &[OperationOutcome],
    ) -> Step<Result<Recovered, Fault>> {
        assert_eq!(
            logs.len(),
            self.log.count(),
            "there is a copy of each slot of the log"
        );
        let published = seen.of(self.thread);
        let last = newest(logs).filter(|entry| entry.stamp.thread == self.thread);
        self.last.clone_from(&last);
        match last {
            Some(entry) if entry.stamp.sequence > published => self.complete(entry, logs),
            // It has seen what its line says, which the vector holds.
            _ => self.close(published, seen),
        }
    }

    /// Logs the closing, everywhere.
    fn close(&mut self, last: u64, mut seen: Snapshot) -> Step<Result<Recovered, Fault>> {
        let stamp = Stamp {
            thread: self.thread,
            sequence: Stamp::SEQUENCE_MAX.min(last + 1),
        };
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::NeverCloses) {
            return self.recovered(Stamp {
                sequence: last,
                ..stamp
            });
        }
        assert!(
            stamp.sequence > last || last >= Stamp::SEQUENCE_MAX,
            "a closing is behind the last transaction: {stamp} after {last}"
        );
        seen.add(stamp);
        self.is_closing = true;
        let entry = LogEntry::closing(stamp, seen, self.last.as_ref());
        let writes = self.log.complete(&entry, &[]);
        self.phase = Phase::Logging(entry);
        Step::Post(writes)
    }

    fn recovered(&self, last: Stamp) -> Step<Result<Recovered, Fault>> {
        let records = self.records;
        Step::Done(Ok(Recovered { last, records }))
    }

    fn complete(
        &mut self,
        entry: LogEntry,
        logs: &[OperationOutcome],
    ) -> Step<Result<Recovered, Fault>> {
        let writes = self.log.complete(&entry, logs);
        if writes.is_empty() {
            return self.compare(entry);
        }
        self.phase = Phase::Logging(entry);
        Step::Post(writes)
    }

    /// The logs have it, but for those whose servers are gone since; the closing is in one at least.
    fn completed(
        &mut self,
        entry: LogEntry,
        outcomes: &[OperationOutcome],
    ) -> Step<Result<Recovered, Fault>> {
        let mut faults = outcomes.iter().filter_map(|outcome| match outcome {
            OperationOutcome::Failed(fault) => Some(*fault),
            _ => None,
        });
        let is_answer = |one: &OperationOutcome| {
            matches!(one, OperationOutcome::Written | OperationOutcome::Failed(_))
        };
        assert!(
            outcomes.iter().all(is_answer),
            "writes are answered as writes"
        );
        let is_nowhere = self.is_closing && !outcomes.contains(&OperationOutcome::Written);
        match faults.find(|fault| is_nowhere || !matches!(fault, Fault::Gone(_))) {
            Some(fault) => Step::Done(Err(fault)),
            None => self.compare(entry),
        }
    }

    fn compare(&mut self, entry: LogEntry) -> Step<Result<Recovered, Fault>> {
        if entry.redo.is_empty() {
            return self.publish(entry);
        }
        let read = |redo: &Redo| Operation::Read {
            at: redo.at,
            bytes: redo.layout.bytes() as u64,
        };
        let reads = entry.redo.iter().map(read).collect();
        self.phase = Phase::Comparing(entry);
        Step::Post(reads)
    }

    fn compared(
        &mut self,
        entry: LogEntry,
        outcomes: &[OperationOutcome],
    ) -> Step<Result<Recovered, Fault>> {
        assert_all_answered(outcomes, entry.redo.len());
        let mut writes = Vec::new();
        for (redo, outcome) in entry.redo.iter().zip(outcomes) {
            match copy_of(outcome) {
                Ok(copy) => writes.extend(again(redo, entry.stamp, copy)),
                Err(fault) => return Step::Done(Err(fault)),
            }
        }
        self.records = writes.len();
        if writes.is_empty() {
            return self.publish(entry);
        }
        self.phase = Phase::Installing(entry);
        Step::Post(writes)
    }

    fn publish(&mut self, entry: LogEntry) -> Step<Result<Recovered, Fault>> {
        let line = self.vector.publish(entry.stamp, &entry.seen);
        self.phase = Phase::Publishing(entry);
        Step::Post(vec![line])
    }

    fn published(&mut self, entry: LogEntry) -> Step<Result<Recovered, Fault>> {
        if self.is_closing {
            self.recovered(entry.stamp)
        } else {
            self.close(entry.stamp.sequence, entry.seen)
        }
    }
}

/// The write that a record still needs; none if its thread has done it.
fn again(redo: &Redo, stamp: Stamp, copy: &[u8]) -> Option<Operation> {
    assert_eq!(
        copy.len(),
        redo.layout.bytes(),
        "a record is compared whole"
    );
    let head = Head::of_word(u64::from_le_bytes(*copy.first_chunk()?));
    // A record that was logged and is unlocked without ever having been written is one that nobody
    // else knew of.
    let is_own = redo.former == Stamp::NOTHING && head == Head::Free(Stamp::NOTHING);
    if head != Head::Locked(stamp) && !is_own {
        return None; // unlocked, and perhaps written by others since
    }
    let layout = redo.layout;
    let before = match Block::parse(layout, copy) {
        // There is nothing under its own version.
        _ if redo.former == Stamp::NOTHING => Block::keyed(layout, redo.generation, &redo.key),
        Ok((_, block)) => block.before(stamp),
        Err(_) => Block::lost(layout, redo.generation, &redo.key), // it died while it wrote the labels
    };
    let block = before.with(stamp, redo.value.as_deref());
    Some(block.install(redo.at))
}

impl Machine for Recover {
    type Output = Result<Recovered, Fault>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => self.look(),
            Phase::Looking(fetch) => self.looked(fetch, outcomes),
            Phase::Reading(seen, fetch) => self.judge(seen, &fetch.copies(outcomes)),
            Phase::Logging(entry) => self.completed(entry, &outcomes),
            Phase::Comparing(entry) => self.compared(entry, &outcomes),
            Phase::Installing(entry) => match unwritten(&outcomes) {
                Some(fault) => Step::Done(Err(fault)),
                None => self.publish(entry),
            },
            Phase::Publishing(entry) => match unwritten(&outcomes) {
                Some(fault) => Step::Done(Err(fault)),
                None => self.published(entry),
            },
        }
    }

    fn check(&self) -> Result<(), String> {
        ensure(self.thread.number() < self.vector.threads(), || {
            format!("the vector has a line for thread {}", self.thread)
        })?;
        ensure(
            self.last
                .as_ref()
                .is_none_or(|last| last.stamp.thread == self.thread),
            || "what is last in a log is its thread's".to_owned(),
        )?;
        let (Phase::Logging(entry)
        | Phase::Comparing(entry)
        | Phase::Installing(entry)
        | Phase::Publishing(entry)) = &self.phase
        else {
            return Ok(());
        };
        ensure(entry.stamp.thread == self.thread, || {
            format!("{} is recovered as thread {}", entry.stamp, self.thread)
        })?;
        ensure(!self.is_closing || entry.is_closing(), || {
            "a closing writes no record".to_owned()
        })
    }
}

/// Lets go of a lock that is nobody's. Nobody needs to: a transaction that writes the record takes
/// it over ([`crate::commit`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    at: Address,
    layout: Layout,
    last: Stamp,
    is_looking: bool,
}

impl Release {
    /// A lock on the record at an address, of a thread's transaction up to one that is published.
    #[must_use]
    pub fn new(at: Address, layout: Layout, last: Stamp) -> Self {
        Self {
            at,
            layout,
            last,
            is_looking: false,
        }
    }

    fn look(&mut self, tries: u32) -> Step<Result<bool, Fault>> {
        self.is_looking = true;
        let read = vec![Operation::Read {
            at: self.at,
            bytes: self.layout.bytes() as u64,
        }];
        if tries == 0 {
            Step::Post(read)
        } else {
            Step::Backoff(read, tries)
        }
    }

    fn looked(&mut self, copy: &[u8]) -> Step<Result<bool, Fault>> {
        let head = copy.first_chunk().map(|word| u64::from_le_bytes(*word));
        let Some(Head::Locked(holder)) = head.map(Head::of_word) else {
            return Step::Done(Ok(false));
        };
        if holder.thread != self.last.thread || holder > self.last {
            return Step::Done(Ok(false));
        }
        let Ok((head, block)) = Block::parse(self.layout, copy) else {
            return self.look(1); // somebody else has taken it over since, and writes
        };
        self.is_looking = false;
        Step::Post(vec![Operation::CompareSwap {
            at: self.at,
            expected: head.word(),
            new: Head::Free(block.newest()).word(),
        }])
    }
}

impl Machine for Release {
    /// Whether a lock was let go of.
    type Output = Result<bool, Fault>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match outcomes.first() {
            None => self.look(0),
            Some(OperationOutcome::Failed(fault)) => Step::Done(Err(*fault)),
            Some(OperationOutcome::Read(copy)) if self.is_looking => self.looked(copy),
            Some(swapped) => match word_of(swapped) {
                Ok(_) => Step::Done(Ok(true)), // swapped: by us, or by another who let go
                Err(fault) => Step::Done(Err(fault)),
            },
        }
    }

    fn check(&self) -> Result<(), String> {
        ensure(self.last.sequence <= Stamp::SEQUENCE_MAX, || {
            format!("{} is published", self.last)
        })
    }
}
