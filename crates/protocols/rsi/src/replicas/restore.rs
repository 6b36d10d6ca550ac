//! Brings all replicas to rest after the loss of a server.
//!
//! Only when every server of the new map has shut out everybody of the epoch before; one at a time,
//! as for a dead thread ([`crate::recover`]): who dies over it is shut out and followed by another,
//! which begins anew.
//!
//! Nobody has locks any more that matter: those of the lost primaries are lost, and those of others
//! are of numbers that are closed here. What somebody was about to install is in a log that is left,
//! for nobody installs anything before all logs have it, and not published. Nobody can have written
//! over it since, for that takes a snapshot that admits it. So it is installed whatever is there.
//!
//! Whether something is published is said by more than its thread's line: a line may have come to
//! the lost replica of the vector alone, where somebody saw it, and wrote over what it stands for.
//! Who has done so says it in a log, or in a line: both hold what their thread had seen.
//!
//! New replicas of logs get all that is in the others: a log archiver may not have written it to disk yet.
//! Nobody waits for it here, for it is shut out as well ([`crate::log`]).

use manxdb_core::check::ensure;
use std::sync::Arc;

use manxdb_fabric::{Fault, Operation, OperationOutcome};

use crate::block::Block;
use crate::client_slots::Owner;
use crate::log::{Fetch, Log, LogEntry, Redo, by_log, newest};
use crate::machine::{Machine, Step, assert_all_answered, copy_of, fault};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::replicas::map::Map;
use crate::vector::{Snapshot, Vector};
use crate::version::{Stamp, ThreadId};

/// What became of an owner of a thread's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Closed {
    /// Who.
    pub owner: Owner,
    /// Under this number nothing was committed, nor will be: the owner, if it lives, goes on behind it.
    pub by: Stamp,
}

impl Closed {
    /// Whether a transaction that was being committed when its session ended is committed.
    #[must_use]
    pub fn has(self, stamp: Stamp) -> bool {
        stamp.thread == self.by.thread && stamp.sequence < self.by.sequence
    }
}

/// Installs, publishes and closes everything, on all servers of a new map.
#[derive(Debug, Clone)]
pub struct Restore {
    map: Arc<Map>,
    vector: Vector,
    /// Of every thread of the vector, in their order, where the new map has them.
    logs: Vec<Log>,
    owners: Vec<Owner>,
    /// Reads the logs.
    fetch: Fetch,
    /// What the vectors say.
    seen: Snapshot,
    found: Found,
    phase: Phase,
    /// Operations under way.
    posted: usize,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begun,
    /// Reads all vectors, and the fronts of what is in all logs.
    Looking,
    /// Reads the rest of it.
    Reading,
    /// Writes to logs what they lack.
    Logging,
    /// Reads the records.
    Comparing,
    Installing,
    /// Writes the lines of all: before a closing is logged over what it closes, that is published.
    Publishing,
    /// Logs the closings.
    Closing,
    /// Writes the lines of all, closed.
    Ending,
}

/// What the vectors and the logs say.
#[derive(Debug, Clone, Default)]
struct Found {
    /// What is last in each thread's log.
    entries: Vec<Option<LogEntry>>,
    /// Each thread's last transaction.
    last: Vec<u64>,
    /// To be installed.
    pending: Vec<LogEntry>,
    closed: Vec<Closed>,
}

impl Restore {
    /// For a map that nobody uses yet. `logs` are those of all threads of the vector, in their
    /// order; `owners` all whose places are not free, alive or not.
    #[must_use]
    pub fn new(map: Arc<Map>, vector: Vector, logs: Vec<Log>, owners: Vec<Owner>) -> Self {
        let slots = logs.iter().flat_map(Log::all);
        Self {
            fetch: Fetch::new(slots.collect()),
            seen: Snapshot::empty(vector.threads()),
            map,
            vector,
            logs,
            owners,
            found: Found::default(),
            phase: Phase::Begun,
            posted: 0,
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

    fn go(&mut self, phase: Phase, operations: Vec<Operation>) -> Step<Result<Vec<Closed>, Fault>> {
        self.phase = phase;
        self.posted = operations.len();
        if operations.is_empty() {
            return self.proceed(Vec::new());
        }
        Step::Post(operations)
    }

    fn proceed(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Result<Vec<Closed>, Fault>> {
        match self.phase {
            Phase::Begun => self.look(),
            Phase::Looking => self.looked(outcomes),
            Phase::Reading => self.read(outcomes),
            Phase::Logging => self.compare(),
            Phase::Comparing => self.install(outcomes),
            Phase::Installing => self.publish(),
            Phase::Publishing => self.close(),
            Phase::Closing => self.end(),
            Phase::Ending => Step::Done(Ok(std::mem::take(&mut self.found.closed))),
        }
    }

    fn look(&mut self) -> Step<Result<Vec<Closed>, Fault>> {
        let vectors = self.map.vectors(self.vector).into_iter();
        let mut reads: Vec<Operation> = vectors.map(Vector::read).collect();
        reads.extend(self.fetch.fronts());
        self.go(Phase::Looking, reads)
    }

    fn looked(&mut self, mut outcomes: Vec<OperationOutcome>) -> Step<Result<Vec<Closed>, Fault>> {
        let vectors = self.map.all(self.vector.base()).len();
        assert!(vectors > 0, "a vector is read from a server at least");
        let fronts = outcomes.split_off(vectors);
        for line in &outcomes {
            if let Ok(copy) = copy_of(line) {
                self.seen.join(&self.vector.parse(copy).0);
            }
        }
        let rests = self.fetch.rests(fronts);
        self.go(Phase::Reading, rests)
    }

    /// All that is in logs is here.
    fn read(&mut self, rests: Vec<OperationOutcome>) -> Step<Result<Vec<Closed>, Fault>> {
        let fetch = std::mem::replace(&mut self.fetch, Fetch::new(Vec::new()));
        let all = fetch.copies(rests);
        let (mut entries, mut writes) = (Vec::new(), Vec::new());
        for (log, own) in by_log(&self.logs, &all) {
            entries.push(newest(own));
            writes.extend(log.level(own));
        }
        self.found = self.judge(entries);
        self.go(Phase::Logging, writes)
    }

    /// What is published, what is to be, and how everybody ends.
    fn judge(&self, entries: Vec<Option<LogEntry>>) -> Found {
        let mut found = Found::default();
        assert_eq!(
            entries.len(),
            usize::from(self.vector.threads()),
            "each thread of the vector has a log"
        );
        for (number, own) in (0..self.vector.threads()).zip(&entries) {
            let Some(thread) = ThreadId::new(number) else {
                continue; // a vector has no more lines than there are threads
            };
            let others = entries.iter().flatten();
            let others = others.filter(|entry| entry.stamp.thread != thread);
            #[cfg(feature = "mutants")]
            let others = others.filter(|_| self.mutant != Some(Mutant::DrainsWhatWasPublished));
            let by_others = others.map(|entry| entry.seen.of(thread)).max();
            let published = self.seen.of(thread).max(by_others.unwrap_or(0));
            let own = own.as_ref().filter(|entry| entry.stamp.thread == thread);
            let logged = own.map_or(0, |entry| entry.stamp.sequence);
            found.last.push(published.max(logged));
            if logged > published {
                found.pending.extend(own.cloned());
            }
            let mut owners = self.owners.iter();
            if let Some(owner) = owners.find(|owner| owner.thread == thread) {
                let by = closing(*owner, published, own);
                found.closed.push(Closed { owner: *owner, by });
            }
        }
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::PromotesWithoutDraining) {
            found.pending.clear();
        }
        found.entries = entries;
        found
    }

    /// Records with the transactions that are to write them.
    fn redo(&self) -> impl Iterator<Item = (Stamp, &Redo)> {
        let entries = self.found.pending.iter();
        entries.flat_map(|entry| entry.redo.iter().map(|redo| (entry.stamp, redo)))
    }

    fn compare(&mut self) -> Step<Result<Vec<Closed>, Fault>> {
        let read = |(_, redo): (Stamp, &Redo)| {
            let bytes = redo.layout.bytes() as u64;
            let whole = self.map.whole(redo.at).into_iter();
            whole.map(move |at| Operation::Read { at, bytes })
        };
        let reads = self.redo().flat_map(read).collect();
        self.go(Phase::Comparing, reads)
    }

    fn install(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Result<Vec<Closed>, Fault>> {
        let mut outcomes = outcomes.into_iter();
        let mut writes = Vec::new();
        for (stamp, redo) in self.redo() {
            let places = self.map.all(redo.at);
            let copies = outcomes.by_ref().take(self.map.whole(redo.at).len());
            let block = redone(stamp, redo, copies.collect());
            writes.extend(places.into_iter().map(|at| block.clone().install(at)));
        }
        assert!(
            outcomes.next().is_none(),
            "every copy is of a record that is installed"
        );
        self.go(Phase::Installing, writes)
    }

    /// What everybody sees when all that is pending is installed.
    fn installed(&self) -> Snapshot {
        Snapshot::of_numbers(self.found.last.clone())
    }

    /// And when all are closed.
    fn closed(&self) -> Snapshot {
        let mut all = self.installed();
        for closed in &self.found.closed {
            all.add(closed.by);
        }
        all
    }

    fn publish(&mut self) -> Step<Result<Vec<Closed>, Fault>> {
        let lines = self.lines(&self.installed());
        self.go(Phase::Publishing, lines)
    }

    fn close(&mut self) -> Step<Result<Vec<Closed>, Fault>> {
        let all = self.closed();
        let mut writes = Vec::new();
        for closed in &self.found.closed {
            let place = usize::from(closed.by.thread.number());
            assert!(
                place < self.logs.len(),
                "the thread of {} has a log",
                closed.by
            );
            let last = self.found.entries.get(place).and_then(Option::as_ref);
            if last.is_some_and(|last| last.stamp == closed.by && last.is_closing()) {
                continue; // all logs have it already
            }
            let entry = LogEntry::closing(closed.by, all.clone(), last);
            let log = self.logs.get(place);
            writes.extend(log.into_iter().flat_map(|log| log.complete(&entry, &[])));
        }
        self.go(Phase::Closing, writes)
    }

    fn end(&mut self) -> Step<Result<Vec<Closed>, Fault>> {
        let closed = self.closed();
        assert!(
            closed.includes(&self.installed()) && closed.includes(&self.seen),
            "what was published stays published"
        );
        let lines = self.lines(&closed);
        self.go(Phase::Ending, lines)
    }

    /// Every thread's line, on all replicas of the vector.
    fn lines(&self, all: &Snapshot) -> Vec<Operation> {
        let vectors = self.map.vectors(self.vector);
        let threads = (0..self.vector.threads()).filter_map(ThreadId::new);
        let stamps = threads.map(|thread| Stamp {
            thread,
            sequence: all.of(thread),
        });
        let written = stamps.filter(|stamp| stamp.sequence > 0);
        let lines = written.flat_map(|stamp| vectors.iter().map(move |one| (one, stamp)));
        lines
            .map(|(vector, stamp)| vector.publish(stamp, all))
            .collect()
    }
}

/// The number that closes an owner. One that was closed over a restoration which somebody died over
/// keeps its closing, so that it hears the same from it; no other entry writes nothing.
fn closing(owner: Owner, published: u64, own: Option<&LogEntry>) -> Stamp {
    let thread = owner.thread;
    let (logged, is_closing) = own.map_or((0, false), |entry| {
        (entry.stamp.sequence, entry.redo.is_empty())
    });
    let is_closed = is_closing && logged >= published && logged > owner.after;
    let last = published.max(logged).max(owner.after);
    let sequence = if is_closed { logged } else { last + 1 };
    assert!(
        sequence > owner.after,
        "an owner is closed behind what came before it: {sequence} behind {}",
        owner.after
    );
    Stamp {
        thread,
        sequence: sequence.min(Stamp::SEQUENCE_MAX),
    }
}

/// A record with the version that a transaction was to install, on top of what is left of the
/// others by the first copy that says something.
fn redone(stamp: Stamp, redo: &Redo, copies: Vec<OperationOutcome>) -> Block {
    let parse = |outcome| match outcome {
        OperationOutcome::Read(copy) => Block::parse(redo.layout, copy).ok(),
        _ => None,
    };
    let mut whole = copies.into_iter().filter_map(parse);
    let before = match whole.next() {
        _ if redo.former == Stamp::NOTHING => Block::keyed(redo.layout, redo.generation, &redo.key),
        Some((_, block)) => block.before(stamp),
        None => Block::lost(redo.layout, redo.generation, &redo.key),
    };
    before.with(stamp, redo.value.as_deref())
}

impl Machine for Restore {
    /// How those who had places end, or why it is to be begun anew.
    type Output = Result<Vec<Closed>, Fault>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        assert_all_answered(&outcomes, std::mem::take(&mut self.posted));
        match fault(&outcomes) {
            Some(fault) => Step::Done(Err(fault)),
            None => self.proceed(outcomes),
        }
    }

    fn check(&self) -> Result<(), String> {
        let threads = usize::from(self.vector.threads());
        ensure(self.logs.len() == threads, || {
            format!("{} logs of {threads} threads", self.logs.len())
        })?;
        let mut owners: Vec<ThreadId> = self.owners.iter().map(|owner| owner.thread).collect();
        owners.sort_unstable();
        ensure(owners.windows(2).all(|pair| pair[0] < pair[1]), || {
            "a slot has one owner".to_owned()
        })?;
        let Found {
            entries,
            last,
            pending,
            closed,
        } = &self.found;
        ensure(entries.len() == last.len(), || {
            "what is last in each log is known with its number".to_owned()
        })?;
        ensure(
            pending.len() <= entries.len() && closed.len() <= self.owners.len(),
            || {
                format!(
                    "{} transactions are installed, {} owners closed",
                    pending.len(),
                    closed.len()
                )
            },
        )?;
        let is_owner = |closed: &Closed| {
            closed.by.thread == closed.owner.thread && self.owners.contains(&closed.owner)
        };
        ensure(closed.iter().all(is_owner), || {
            "an owner is closed as its own thread".to_owned()
        })
    }
}
