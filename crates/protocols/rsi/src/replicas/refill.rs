//! Copies what a new replica lacks, while transactions go on.
//!
//! Whoever writes to the region writes to the new replica as well, from the beginning of the epoch.
//! So a word that nobody changes again is copied whenever it is there. A record is copied under its
//! lock, as if somebody wrote it and changed nothing. One that nobody but its first writer knows is
//! written without a lock, and its head may be set under ours: so the lock is given back by a swap,
//! and when that finds another word the record is copied once more.

use manxdb_core::check::ensure;
use std::sync::Arc;

use manxdb_fabric::{Address, Fault, Operation, OperationOutcome, WORD, WORD_LENGTH};

use crate::block::{Block, Layout};
use crate::directory::PLACE;
use crate::machine::{Machine, Step, assert_all_answered, copy_of, fault};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::replicas::map::{Map, RegionKind};
use crate::vector::Snapshot;
use crate::version::{Head, Stamp};

/// Records that are looked at in one round trip.
const RECORDS: usize = 16;
/// Bytes of words that are.
const BYTES: u64 = 2048;

/// Copies one region to those of its replicas that are not whole. It is done when they have all
/// that the region has, and will have all that it gets ([`crate::Event::Filled`]).
#[derive(Debug, Clone)]
pub struct Refill {
    map: Arc<Map>,
    region: usize,
    /// What our locks say. Nothing is ever committed as it while this goes on.
    stamp: Stamp,
    /// Locks of these are nobody's.
    snapshot: Snapshot,
    /// From here on nothing was looked at.
    next: u64,
    /// Records under way.
    records: Vec<Record>,
    /// Rounds in which none of them got further.
    waits: u32,
    phase: Phase,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

/// A record by its offset, and what it is locked from and goes back to.
#[derive(Debug, Clone, Copy)]
struct Record {
    offset: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unseen,
    /// It had this head.
    Seen(Head),
    Locked,
    /// It is copied; without the lock it has this head.
    Copied(Head),
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begun,
    Looking,
    Locking,
    Reading,
    Writing,
    Unlocking,
    /// Words are read, and then written.
    Words,
    Copying,
}

impl Refill {
    /// Of the region of this number, by a session whose locks would be of a stamp
    /// ([`crate::Session::holder`]) and which commits nothing meanwhile; locks of what the snapshot
    /// admits are nobody's.
    #[must_use]
    pub fn new(map: Arc<Map>, region: usize, stamp: Stamp, snapshot: Snapshot) -> Self {
        Self {
            map,
            region,
            stamp,
            snapshot,
            next: 0,
            records: Vec::new(),
            waits: 0,
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

    /// Where the region is read, and where it is to be; none: there is nothing to be copied.
    fn ends(&self) -> Option<(Address, Vec<Address>)> {
        let replicas = self.map.regions().get(self.region)?.replicas();
        let first = replicas.first().filter(|first| first.is_whole)?;
        let lacking = replicas.iter().filter(|replica| !replica.is_whole);
        let lacking: Vec<Address> = lacking.map(|replica| replica.at).collect();
        (!lacking.is_empty()).then_some((first.at, lacking))
    }

    fn proceed(&mut self, outcomes: &[OperationOutcome]) -> Step<Result<(), Fault>> {
        let Some((from, to)) = self.ends() else {
            return Step::Done(Ok(()));
        };
        // It has ends, and so it is a region of the map.
        let region = self.map.regions().get(self.region);
        let Some((kind, bytes)) = region.map(|region| (region.kind(), region.bytes())) else {
            return Step::Done(Ok(()));
        };
        match (kind, self.phase) {
            (RegionKind::Records(layout), _) => self.records(layout, bytes, outcomes, (from, &to)),
            (_, Phase::Words) => self.copy(outcomes, &to),
            _ => self.words(bytes, from),
        }
    }

    /// Reads the next words.
    fn words(&mut self, bytes: u64, from: Address) -> Step<Result<(), Fault>> {
        if self.next >= bytes {
            return Step::Done(Ok(()));
        }
        self.phase = Phase::Words;
        let bytes = BYTES.min(bytes - self.next);
        let at = from.plus(self.next);
        Step::Post(vec![Operation::Read { at, bytes }])
    }

    /// Writes those that somebody has set.
    fn copy(&mut self, outcomes: &[OperationOutcome], to: &[Address]) -> Step<Result<(), Fault>> {
        let mut writes = Vec::new();
        // Words that were not read must not be taken for words that nobody has set.
        assert_all_answered(outcomes, 1);
        if let Some(Ok(copy)) = outcomes.first().map(copy_of) {
            let (words, _) = copy.as_chunks::<WORD_LENGTH>();
            for (word, offset) in words.iter().zip((self.next..).step_by(WORD_LENGTH)) {
                let is_set = *word != [0; WORD_LENGTH];
                writes.extend(to.iter().filter(|_| is_set).map(|to| Operation::Write {
                    at: to.plus(offset),
                    bytes: word.to_vec(),
                }));
            }
        }
        self.next += BYTES;
        self.phase = Phase::Copying;
        if writes.is_empty() {
            return self.proceed(&[]);
        }
        Step::Post(writes)
    }

    /// Goes on with the records under way, or to the next ones.
    fn records(
        &mut self,
        layout: Layout,
        bytes: u64,
        outcomes: &[OperationOutcome],
        (from, to): (Address, &[Address]),
    ) -> Step<Result<(), Fault>> {
        match self.phase {
            Phase::Looking => self.looked(layout, outcomes),
            Phase::Locking => self.locked(outcomes),
            Phase::Reading => return self.write(layout, outcomes, to),
            Phase::Unlocking => self.unlocked(outcomes),
            _ => {}
        }
        let next = match self.phase {
            Phase::Looking => self.lock(from),
            Phase::Locking => self.read(layout, from),
            Phase::Writing => self.unlock(from),
            _ => Vec::new(),
        };
        if !next.is_empty() {
            return Step::Post(next);
        }
        self.look(layout, bytes, from)
    }

    /// Reads records that are not copied yet.
    fn look(&mut self, layout: Layout, bytes: u64, from: Address) -> Step<Result<(), Fault>> {
        let count = self.records.len();
        self.records.retain(|record| record.state != State::Done);
        let is_stuck = count > 0 && self.records.len() == count;
        self.waits = if is_stuck { self.waits + 1 } else { 0 };
        let stride = (layout.bytes() as u64).next_multiple_of(PLACE);
        while self.records.len() < RECORDS && self.next + stride <= bytes {
            let (offset, state) = (self.next, State::Unseen);
            self.records.push(Record { offset, state });
            self.next += stride;
        }
        if self.records.is_empty() {
            return Step::Done(Ok(()));
        }
        for record in &mut self.records {
            record.state = State::Unseen;
        }
        self.phase = Phase::Looking;
        let reads = self.reads(layout, from, State::Unseen);
        match self.waits {
            0 => Step::Post(reads),
            waits => Step::Backoff(reads, waits),
        }
    }

    /// Records in such a state.
    fn count(&self, is_such: impl Fn(State) -> bool) -> usize {
        let records = self.records.iter();
        records.filter(|record| is_such(record.state)).count()
    }

    fn reads(&self, layout: Layout, from: Address, state: State) -> Vec<Operation> {
        let records = self.records.iter().filter(|record| record.state == state);
        let read = |record: &Record| Operation::Read {
            at: from.plus(record.offset),
            bytes: layout.bytes() as u64,
        };
        records.map(read).collect()
    }

    /// Records that nobody has are done; those that somebody else writes are for later.
    fn looked(&mut self, layout: Layout, outcomes: &[OperationOutcome]) {
        assert_all_answered(outcomes, self.records.len());
        for (record, outcome) in self.records.iter_mut().zip(outcomes) {
            let Ok(copy) = copy_of(outcome) else {
                continue; // faults were seen to
            };
            if copy.iter().all(|byte| *byte == 0) {
                record.state = State::Done;
                continue;
            }
            record.state = match Block::parse(layout, copy) {
                Ok((head @ Head::Free(_), _)) => State::Seen(head),
                Ok((head @ Head::Locked(holder), _)) if self.snapshot.admits(holder) => {
                    State::Seen(head)
                }
                _ => State::Unseen,
            };
        }
    }

    fn lock(&mut self, from: Address) -> Vec<Operation> {
        self.phase = Phase::Locking;
        let new = Head::Locked(self.stamp).word();
        let swap = |record: &Record| match record.state {
            State::Seen(head) => Some(Operation::CompareSwap {
                at: from.plus(record.offset),
                expected: head.word(),
                #[cfg(not(feature = "mutants"))]
                new,
                #[cfg(feature = "mutants")]
                new: if self.mutant == Some(Mutant::RefillsWithoutLocks) {
                    head.word()
                } else {
                    new
                },
            }),
            _ => None,
        };
        self.records.iter().filter_map(swap).collect()
    }

    fn locked(&mut self, outcomes: &[OperationOutcome]) {
        let is_seen = |state: State| matches!(state, State::Seen(_));
        assert_all_answered(outcomes, self.count(is_seen));
        let seen = self.records.iter_mut();
        let seen = seen.filter(|record| matches!(record.state, State::Seen(_)));
        for (record, outcome) in seen.zip(outcomes) {
            if let State::Seen(head) = record.state {
                let is_ours = *outcome == OperationOutcome::Word(head.word());
                record.state = if is_ours {
                    State::Locked
                } else {
                    State::Unseen
                };
            }
        }
    }

    /// Reads under the locks.
    fn read(&mut self, layout: Layout, from: Address) -> Vec<Operation> {
        self.phase = Phase::Reading;
        self.reads(layout, from, State::Locked)
    }

    /// Writes what is under the locks to the replicas that lack it.
    fn write(
        &mut self,
        layout: Layout,
        outcomes: &[OperationOutcome],
        to: &[Address],
    ) -> Step<Result<(), Fault>> {
        assert_all_answered(outcomes, self.count(|state| state == State::Locked));
        let locked = self.records.iter_mut();
        let locked = locked.filter(|record| record.state == State::Locked);
        let mut writes = Vec::new();
        for (record, outcome) in locked.zip(outcomes) {
            let Ok(copy) = copy_of(outcome) else {
                continue; // faults were seen to
            };
            let Some((_, body)) = copy.split_first_chunk::<WORD_LENGTH>() else {
                continue; // a layout has heads
            };
            // Under our lock nobody writes but the first writer of a record, who was before us.
            let newest = Block::parse(layout, copy).map(|(_, block)| block.newest());
            let head = Head::Free(newest.unwrap_or(Stamp::NOTHING));
            writes.extend(to.iter().map(|to| Operation::WriteThenSet {
                at: to.plus(record.offset + WORD),
                bytes: body.to_vec(),
                word_at: to.offset + record.offset,
                word: head.word(),
            }));
            record.state = State::Copied(head);
        }
        self.phase = Phase::Writing;
        Step::Post(writes)
    }

    fn unlock(&mut self, from: Address) -> Vec<Operation> {
        self.phase = Phase::Unlocking;
        let expected = Head::Locked(self.stamp).word();
        let swap = |record: &Record| match record.state {
            State::Copied(head) => Some(Operation::CompareSwap {
                at: from.plus(record.offset),
                expected,
                new: head.word(),
            }),
            _ => None,
        };
        self.records.iter().filter_map(swap).collect()
    }

    fn unlocked(&mut self, outcomes: &[OperationOutcome]) {
        let is_copied = |state: State| matches!(state, State::Copied(_));
        assert_all_answered(outcomes, self.count(is_copied));
        let expected = OperationOutcome::Word(Head::Locked(self.stamp).word());
        let copied = self.records.iter_mut();
        let copied = copied.filter(|record| matches!(record.state, State::Copied(_)));
        for (record, outcome) in copied.zip(outcomes) {
            let is_done = *outcome == expected;
            #[cfg(feature = "mutants")]
            let is_done = is_done || self.mutant == Some(Mutant::RefillsWithoutLocks);
            if is_done {
                record.state = State::Done;
            }
        }
    }
}

impl Machine for Refill {
    type Output = Result<(), Fault>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match fault(&outcomes) {
            Some(fault) => Step::Done(Err(fault)),
            None => self.proceed(&outcomes),
        }
    }

    fn check(&self) -> Result<(), String> {
        ensure(self.records.len() <= RECORDS, || {
            format!("{} records are copied at once", self.records.len())
        })?;
        let mut pairs = self.records.windows(2);
        ensure(pairs.all(|pair| pair[0].offset < pair[1].offset), || {
            "each record is copied once, in the order of the region".to_owned()
        })?;
        let is_behind = |record: &Record| record.offset < self.next;
        ensure(self.records.iter().all(is_behind), || {
            format!("records are copied up to {:#x}", self.next)
        })?;
        ensure(self.next.is_multiple_of(WORD), || {
            format!("what was looked at ends within a word, at {:#x}", self.next)
        })?;
        let is_of_words = matches!(self.phase, Phase::Words | Phase::Copying);
        ensure(self.records.is_empty() || !is_of_words, || {
            format!("{:?} of a region of records", self.phase)
        })?;
        let is_seen = |record: &Record| matches!(record.state, State::Seen(_));
        let may_be_seen = matches!(self.phase, Phase::Locking);
        ensure(may_be_seen || !self.records.iter().any(is_seen), || {
            format!(
                "a record that was looked at is not locked in {:?}",
                self.phase
            )
        })?;
        let is_copied = |record: &Record| matches!(record.state, State::Copied(_));
        let may_be_copied = matches!(self.phase, Phase::Writing | Phase::Unlocking);
        ensure(may_be_copied || !self.records.iter().any(is_copied), || {
            format!(
                "the lock of a copied record is forgotten in {:?}",
                self.phase
            )
        })?;
        let has_lock = |record: &Record| matches!(record.state, State::Locked);
        let may_lock = matches!(self.phase, Phase::Reading);
        ensure(may_lock || !self.records.iter().any(has_lock), || {
            format!("a record stays locked in {:?}", self.phase)
        })
    }
}
