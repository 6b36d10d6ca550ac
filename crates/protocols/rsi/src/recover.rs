//! Goes on where a thread has died.
//!
//! Only for a thread that writes nothing any more: it was shut out of all servers (reference: rack,
//! §2.5). One recovers a thread at a time; who dies over it is followed by another, which begins
//! anew and finds what is done already.
//!
//! A transaction that is whole in one of the thread's logs is installed: its records are still
//! locked, or were installed by the thread itself. First it is written to the other logs: were
//! the only server that has it lost when half of it is installed, nobody could go on. One that is
//! in none has installed nothing (I4), so its locks need only be let go, which whoever meets one
//! may do ([`Release`]).

use manxdb_fabric::{Address, Fault, Operation, Outcome};

use crate::block::{Block, Layout};
use crate::log::{Entry, Log, Redo};
use crate::vector::{Snapshot, Vector};
use crate::version::{Head, Stamp, ThreadId};
use crate::work::{Step, Work};

/// What was done for a dead thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Recovered {
    /// Its last transaction that is installed and published.
    pub last: u64,
    /// Records that were written for it.
    pub records: usize,
}

/// Installs and publishes what a dead thread has committed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recover {
    thread: ThreadId,
    vector: Vector,
    log: Log,
    phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    /// Reads the vector and the logs.
    Looking,
    /// Writes the transaction to the logs that lack it.
    Logging(Entry),
    /// Reads the records.
    Comparing(Entry),
    /// Writes those that are still locked, so many.
    Installing(Entry, usize),
    /// Writes the thread's line, and leaves it so.
    Publishing(Recovered),
}

impl Recover {
    /// For a thread that writes nothing any more.
    #[must_use]
    pub fn new(thread: ThreadId, vector: Vector, log: Log) -> Self {
        Self {
            thread,
            vector,
            log,
            phase: Phase::Begun,
        }
    }

    fn look(&mut self) -> Step<Result<Recovered, Fault>> {
        self.phase = Phase::Looking;
        let mut operations = vec![self.vector.read()];
        operations.extend(self.log.read());
        Step::Ask(operations)
    }

    /// The vector and the logs are here. A server that is gone has its log elsewhere.
    fn looked(&mut self, mut outcomes: Vec<Outcome>) -> Step<Result<Recovered, Fault>> {
        let logs = outcomes.split_off(1.min(outcomes.len()));
        let snapshot = match outcomes.pop() {
            Some(Outcome::Failed(fault)) => return Step::Done(Err(fault)),
            Some(Outcome::Read(bytes)) => self.vector.parse(&bytes),
            _ => (Snapshot::empty(self.vector.threads()), 0), // no carrier answers so
        };
        // A line that the thread died over says nothing; the log then has what it was to say.
        let (line, _) = snapshot;
        let published = line.of(self.thread);
        let entries = logs.iter().filter_map(|outcome| match outcome {
            Outcome::Read(copy) => Entry::parse(copy),
            _ => None,
        });
        let own = entries.filter(|entry| entry.stamp.thread == self.thread);
        match own.max_by_key(|entry| entry.stamp.sequence) {
            Some(entry) if entry.stamp.sequence > published => self.complete(entry, &logs),
            _ => Step::Done(Ok(Recovered {
                last: published,
                records: 0,
            })),
        }
    }

    fn complete(&mut self, entry: Entry, logs: &[Outcome]) -> Step<Result<Recovered, Fault>> {
        let writes = self.log.complete(&entry, logs);
        if writes.is_empty() {
            return self.compare(entry);
        }
        self.phase = Phase::Logging(entry);
        Step::Ask(writes)
    }

    /// The logs have it, but for those whose servers are gone since.
    fn completed(&mut self, entry: Entry, outcomes: &[Outcome]) -> Step<Result<Recovered, Fault>> {
        let mut faults = outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::Failed(fault) => Some(*fault),
            _ => None,
        });
        match faults.find(|fault| !matches!(fault, Fault::Gone(_))) {
            Some(fault) => Step::Done(Err(fault)),
            None => self.compare(entry),
        }
    }

    fn compare(&mut self, entry: Entry) -> Step<Result<Recovered, Fault>> {
        let read = |redo: &Redo| Operation::Read {
            at: redo.at,
            bytes: redo.layout.bytes() as u64,
        };
        let reads = entry.redo.iter().map(read).collect();
        self.phase = Phase::Comparing(entry);
        Step::Ask(reads)
    }

    fn compared(&mut self, entry: Entry, outcomes: &[Outcome]) -> Step<Result<Recovered, Fault>> {
        let mut writes = Vec::new();
        for (redo, outcome) in entry.redo.iter().zip(outcomes) {
            match outcome {
                Outcome::Failed(fault) => return Step::Done(Err(*fault)),
                Outcome::Read(copy) => writes.extend(again(redo, entry.stamp, copy)),
                _ => {} // no carrier answers a read otherwise
            }
        }
        let records = writes.len();
        if writes.is_empty() {
            return self.publish(&entry, 0);
        }
        self.phase = Phase::Installing(entry, records);
        Step::Ask(writes)
    }

    fn publish(&mut self, entry: &Entry, records: usize) -> Step<Result<Recovered, Fault>> {
        self.phase = Phase::Publishing(Recovered {
            last: entry.stamp.sequence,
            records,
        });
        Step::Ask(vec![self.vector.publish(entry.stamp, &entry.seen)])
    }
}

/// The write that a record still needs; none if its thread has done it.
fn again(redo: &Redo, stamp: Stamp, copy: &[u8]) -> Option<Operation> {
    let head = Head::of_word(u64::from_le_bytes(*copy.first_chunk()?));
    // A record that was logged and is unlocked without ever having been written is one that nobody
    // else knew of.
    let is_own = redo.former == Stamp::NOTHING && head == Head::Free(Stamp::NOTHING);
    if head != Head::locked(stamp.thread, redo.former) && !is_own {
        return None; // unlocked, and perhaps written by others since
    }
    let layout = redo.layout;
    let before = match Block::parse(layout, copy) {
        _ if is_own => Block::keyed(layout, redo.generation, &redo.key),
        Ok((_, block)) => block.before(stamp),
        Err(_) => Block::lost(layout, redo.generation, &redo.key), // it died while it wrote the labels
    };
    let block = before.with(stamp, redo.value.as_deref());
    Some(block.install(redo.at))
}

impl Work for Recover {
    type Output = Result<Recovered, Fault>;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        let fault =
            |outcomes: &[Outcome]| match outcomes.iter().find(|one| **one != Outcome::Written) {
                Some(Outcome::Failed(fault)) => Some(*fault),
                _ => None,
            };
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => self.look(),
            Phase::Looking => self.looked(outcomes),
            Phase::Logging(entry) => self.completed(entry, &outcomes),
            Phase::Comparing(entry) => self.compared(entry, &outcomes),
            Phase::Installing(entry, records) => match fault(&outcomes) {
                Some(fault) => Step::Done(Err(fault)),
                None => self.publish(&entry, records),
            },
            Phase::Publishing(recovered) => match fault(&outcomes) {
                Some(fault) => Step::Done(Err(fault)),
                None => Step::Done(Ok(recovered)),
            },
        }
    }
}

/// Lets go of a lock of a thread that is dead and recovered: of a transaction that had installed
/// nothing. Whoever meets such a lock may do it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    at: Address,
    layout: Layout,
    owner: ThreadId,
    is_looking: bool,
}

impl Release {
    /// The lock of `owner` on the record at an address.
    #[must_use]
    pub fn new(at: Address, layout: Layout, owner: ThreadId) -> Self {
        Self {
            at,
            layout,
            owner,
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
            Step::Ask(read)
        } else {
            Step::Again(read, tries)
        }
    }

    fn looked(&mut self, copy: &[u8]) -> Step<Result<bool, Fault>> {
        let head = copy.first_chunk().map(|word| u64::from_le_bytes(*word));
        if !matches!(head.map(Head::of_word), Some(Head::Locked { owner, .. }) if owner == self.owner)
        {
            return Step::Done(Ok(false));
        }
        let Ok((head, block)) = Block::parse(self.layout, copy) else {
            return self.look(1); // somebody else has let go of it since, and writes
        };
        if head != Head::locked(self.owner, block.newest()) {
            return Step::Done(Ok(false));
        }
        self.is_looking = false;
        Step::Ask(vec![Operation::CompareSwap {
            at: self.at,
            expected: head.word(),
            new: Head::Free(block.newest()).word(),
        }])
    }
}

impl Work for Release {
    /// Whether a lock was let go of.
    type Output = Result<bool, Fault>;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        match outcomes.first() {
            None => self.look(0),
            Some(Outcome::Failed(fault)) => Step::Done(Err(*fault)),
            Some(Outcome::Read(copy)) if self.is_looking => self.looked(copy),
            Some(_) => Step::Done(Ok(true)), // swapped: by us, or by another who let go
        }
    }
}
