//! What is committed, on disk: batches of it, and what they come to after all memory is gone.
//!
//! One log archiver at a time copies what is *published*, for all threads. A [`Batch`] is a copy of the
//! vector, which is a consistent cut whenever it was taken, and all transactions between the batch
//! before and this cut. So the whole batches of a file are a consistent state; what was logged and not
//! published was not committed for anybody (reference: rack, §5.2).
//!
//! | a log archiver | with |
//! |---|---|
//! | reads what is new | [`Drain`] |
//! | writes it to a file, and says so | [`Batch`], [`Progress`], [`DurablePositions::publish`](crate::DurablePositions::publish) |
//! | has copied all memory, and knows when no batch before that is needed | [`Survey`] |
//! | reads its files after all memory is gone | [`Replay`] |
//! | begins the database anew behind them | [`Bootstrap`] |
//!
//! **Nothing is skipped.** Sequences of a thread have no gaps ([`crate::log`]), and a slot is written
//! over when the log archiver has said that it has written what was in it. So what a cut holds and the
//! batch before does not is in the logs. What is not was written by a log archiver whose disk has lost it: that
//! is a gap, which a copy of all memory closes ([`Progress`]).
//!
//! How it works in whole: docs/internals/log-archiver.md. Alternatives: decision 23.

mod batch;
mod bootstrap;
mod progress;
mod replay;
mod survey;

use manxdb_core::check::{deep, ensure};
use manxdb_fabric::{Fault, Operation, OperationOutcome};

pub use self::batch::Batch;
pub use self::bootstrap::Bootstrap;
pub use self::progress::Progress;
pub use self::replay::{Replay, ReplayError, Replayed};
pub use self::survey::Survey;
use crate::log::{Fetch, Log, LogEntry};
use crate::machine::{Machine, Step, assert_all_answered, copy_of, fault};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::vector::{Snapshot, Vector};
use crate::version::{Stamp, ThreadId};

/// Slots that are read at once.
const PIECE: usize = 64;
/// What is not there is looked for so often: a slot may be written just then by who closes a place. To be
/// mistaken costs a copy of memory.
const TRIES_MAX: u32 = 1 << 8;

/// What was published since the last time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Drained {
    /// It is in logs.
    Batch {
        /// All of this is published. It includes what was drained before.
        cut: Snapshot,
        /// The transactions behind what was drained before, up to the cut, in no order that means
        /// anything; without closings, which write nothing.
        entries: Vec<LogEntry>,
    },
    /// Some of it is in no copy of its log, because it was written once, and files have lost it. The rest
    /// is of no use without it.
    Gap {
        /// All of this is published.
        cut: Snapshot,
        /// One that is lost.
        lost: Stamp,
    },
}

/// Reads all that was published since the last time: the vector, and then the slots of the
/// transactions that are new. Whoever asks is alone in it.
#[derive(Debug, Clone)]
pub struct Drain {
    vector: Vector,
    logs: Vec<Log>,
    cut: Snapshot,
    /// Up to where each thread's transactions are here.
    done: Snapshot,
    entries: Vec<LogEntry>,
    phase: Phase,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

#[derive(Debug, Clone)]
enum Phase {
    Begun,
    /// Reads the vector.
    Looking,
    /// Reads the slots of transactions at one place each.
    Reading(Vec<Stamp>, Fetch, Part),
    /// Reads all slots of a log at all places for one that is not in its own; counts the attempts.
    Searching(Stamp, Fetch, Part, u32),
}

/// What of slots is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Fronts,
    Rests,
}

type Back = Result<Option<Drained>, Fault>;

impl Drain {
    /// Of all logs of the vector's threads, in their order, at servers ([`Log::on`]), behind what is
    /// written.
    #[must_use]
    pub fn new(vector: Vector, logs: Vec<Log>, progress: &Progress) -> Self {
        Self {
            vector,
            logs,
            cut: progress.written().clone(),
            done: progress.written().clone(),
            entries: Vec::new(),
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

    fn looked(&mut self, outcomes: &[OperationOutcome]) -> Step<Back> {
        if let Some(fault) = fault(outcomes) {
            return Step::Done(Err(fault));
        }
        assert_all_answered(outcomes, 1);
        if let Some(Ok(copy)) = outcomes.first().map(copy_of) {
            self.cut.join(&self.vector.parse(copy).0);
        }
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::DrainsWhatIsLogged) {
            let next = self.cut.numbers().iter().map(|number| number + 1);
            self.cut = Snapshot::of_numbers(next.collect());
        }
        if self.cut == self.done {
            return Step::Done(Ok(None));
        }
        self.read()
    }

    /// Reads the next slots, if any are left.
    fn read(&mut self) -> Step<Back> {
        let (mut wanted, mut slots) = (Vec::new(), Vec::new());
        for (number, log) in (0..).zip(&self.logs) {
            let Some(thread) = ThreadId::new(number) else {
                continue; // a vector has no more lines than there are threads
            };
            // Those who drain at once do not all read from the same server.
            let turn = usize::from(number) % log.places().len().max(1);
            let first = self.done.of(thread) + 1;
            let last = self.cut.of(thread).min(first + log.slots() - 1);
            for (sequence, place) in (first..=last).zip(log.places().iter().cycle().skip(turn)) {
                wanted.push(Stamp { thread, sequence });
                slots.push(log.slot(*place, sequence));
            }
            if wanted.len() >= PIECE {
                break;
            }
        }
        if wanted.is_empty() {
            let cut = self.cut.clone();
            let entries = std::mem::take(&mut self.entries);
            assert!(self.done.includes(&cut), "all of the cut is drained");
            if deep() {
                let is_in = |entry: &LogEntry| cut.admits(entry.stamp);
                assert!(entries.iter().all(is_in), "what is drained is in the cut");
            }
            return Step::Done(Ok(Some(Drained::Batch { cut, entries })));
        }
        assert_eq!(wanted.len(), slots.len(), "each transaction is in a slot");
        let fetch = Fetch::new(slots);
        let fronts = fetch.fronts();
        self.phase = Phase::Reading(wanted, fetch, Part::Fronts);
        Step::Post(fronts)
    }

    /// Slots at one place each are here: takes what is in them, in order.
    fn have_read(&mut self, wanted: &[Stamp], copies: &[OperationOutcome]) -> Step<Back> {
        assert_eq!(
            copies.len(),
            wanted.len(),
            "each slot that was asked for is here"
        );
        let mut missing = None;
        for (stamp, copy) in wanted.iter().zip(copies) {
            let is_next = stamp.sequence == self.done.of(stamp.thread) + 1;
            if is_next && !self.take(*stamp, std::slice::from_ref(copy)) {
                missing = Some(*stamp);
            }
        }
        match missing {
            #[cfg(feature = "mutants")]
            Some(stamp) if self.mutant == Some(Mutant::DrainsWhatIsLogged) => {
                self.give_up(stamp);
                self.read()
            }
            Some(stamp) => self.search(stamp, 0),
            None => self.read(),
        }
    }

    /// Nothing of a thread is logged that is not drained.
    #[cfg(feature = "mutants")]
    fn give_up(&mut self, stamp: Stamp) {
        let mut numbers = self.cut.numbers().to_vec();
        if let Some(number) = numbers.get_mut(usize::from(stamp.thread.number())) {
            *number = stamp.sequence - 1;
        }
        self.cut = Snapshot::of_numbers(numbers);
    }

    /// Takes what a copy says became of a sequence; whether one does.
    fn take(&mut self, stamp: Stamp, copies: &[OperationOutcome]) -> bool {
        let mut entries = copies.iter().filter_map(|copy| match copy {
            OperationOutcome::Read(copy) => LogEntry::parse(copy),
            _ => None,
        });
        let Some(entry) = entries.find(|entry| entry.covers(stamp)) else {
            return false;
        };
        assert!(
            entry.stamp.sequence > self.done.of(stamp.thread),
            "each transaction is drained once: {} after {}",
            entry.stamp,
            self.done.of(stamp.thread)
        );
        self.done.add(entry.stamp);
        if !entry.is_closing() {
            self.entries.push(entry);
        }
        true
    }

    /// Looks for a transaction wherever its thread logs.
    fn search(&mut self, stamp: Stamp, times: u32) -> Step<Back> {
        let log = self.logs.get(usize::from(stamp.thread.number()));
        assert!(log.is_some(), "the thread of {stamp} has a log");
        let slots = log.into_iter().flat_map(Log::all);
        let fetch = Fetch::new(slots.collect());
        let fronts = fetch.fronts();
        self.phase = Phase::Searching(stamp, fetch, Part::Fronts, times);
        match times {
            0 => Step::Post(fronts),
            times => Step::Backoff(fronts, times),
        }
    }

    fn searched(&mut self, stamp: Stamp, copies: &[OperationOutcome], times: u32) -> Step<Back> {
        if self.take(stamp, copies) {
            return self.read();
        }
        match fault(copies) {
            Some(fault) => Step::Done(Err(fault)),
            #[cfg(feature = "mutants")]
            None if self.mutant == Some(Mutant::GoesOnOverAGap) => {
                self.done.add(stamp);
                self.read()
            }
            None if times < TRIES_MAX => self.search(stamp, times + 1),
            None => {
                let cut = self.cut.clone();
                Step::Done(Ok(Some(Drained::Gap { cut, lost: stamp })))
            }
        }
    }

    /// Asks for the rests of slots, if there are any.
    fn rests(&mut self, phase: Phase, rests: Vec<Operation>) -> Step<Back> {
        self.phase = phase;
        if rests.is_empty() {
            return self.step(Vec::new());
        }
        Step::Post(rests)
    }
}

impl Machine for Drain {
    type Output = Back;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => {
                self.phase = Phase::Looking;
                Step::Post(vec![self.vector.read()])
            }
            Phase::Looking => self.looked(&outcomes),
            Phase::Reading(wanted, mut fetch, Part::Fronts) => {
                let rests = fetch.rests(outcomes);
                self.rests(Phase::Reading(wanted, fetch, Part::Rests), rests)
            }
            Phase::Reading(wanted, fetch, Part::Rests) => {
                self.have_read(&wanted, &fetch.copies(outcomes))
            }
            Phase::Searching(stamp, mut fetch, Part::Fronts, times) => {
                let rests = fetch.rests(outcomes);
                let phase = Phase::Searching(stamp, fetch, Part::Rests, times);
                self.rests(phase, rests)
            }
            Phase::Searching(stamp, fetch, Part::Rests, times) => {
                self.searched(stamp, &fetch.copies(outcomes), times)
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let threads = self.vector.threads();
        ensure(self.logs.len() == usize::from(threads), || {
            format!("{} logs of {threads} threads", self.logs.len())
        })?;
        ensure(!self.entries.iter().any(LogEntry::is_closing), || {
            "closings write nothing, and are not drained".to_owned()
        })?;
        match &self.phase {
            Phase::Searching(stamp, _, _, times) => ensure(
                *times <= TRIES_MAX && stamp.thread.number() < threads,
                || format!("{stamp} is looked for {times} times"),
            ),
            Phase::Reading(wanted, _, _) => {
                ensure(!wanted.is_empty(), || "it reads what it wants".to_owned())
            }
            Phase::Begun | Phase::Looking => Ok(()),
        }
    }
}
