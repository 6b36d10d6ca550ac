//! Commits: locks what is to be written, validates, installs, publishes.
//!
//! | phase | asked of the fabric | round trips |
//! |---|---|---|
//! | wait | where a log archiver writes logs to disk, a few times in a round of the thread's ring: read how far it has come | 1 |
//! | lock | swap each head: the version that was read, unlocked, for our lock | 1 |
//! | validate | serializable only: read the heads of what was read and is not written, and the buckets in which nothing was found | 1 |
//! | log | where the session has a log: write all changes to it, on several servers, and versions that are pushed out to the overflow area | 1 |
//! | install | write each block with its new version, then its head, which unlocks; of one in memory that is all zero only what is not | 1 |
//! | publish | write our line of the vector | 1 |
//!
//! The compare value of a swap is the version that was read, which must be the newest in the
//! block: the paper's example compares with the snapshot's number, and works only where the two
//! happen to be equal (reference: rack, §1.3). When a swap fails, somebody else has written or is
//! writing: the first one wins, and we let go of what we have. A lock that was nobody's when the
//! record was read, its owner dead and recovered, is what the swap expects then: it is taken over
//! ([`Head`]). Once it is logged everywhere, the transaction is committed: should we die now,
//! [`crate::recover`] installs it.

mod check;

use manxdb_core::check::ensure;
use manxdb_fabric::{Operation, OperationOutcome};

use self::check::Check;
use crate::abort::Abort;
use crate::change::Change;
use crate::directory::RecordAddress;
use crate::durable_positions::Need;
use crate::find::LookupResult;
use crate::log::{Log, LogEntry};
use crate::machine::{Machine, Step, assert_all_answered, copy_of, fault, unwritten};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::overflow::{self, Overflow};
use crate::read::Seen;
use crate::vector::{Snapshot, Vector};
use crate::version::{Head, Stamp};

/// What came of a commit: the version that was installed, or none if there was nothing to write.
pub type Committed = Result<Option<Stamp>, Abort>;

/// A transaction that is being committed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Commit {
    stamp: Stamp,
    publish: Operation,
    /// What must be written to disk before anything is locked.
    need: Option<Need>,
    /// Written before anything is installed; none where nothing is logged.
    log: Vec<Operation>,
    /// Read and not written.
    reads: Vec<Check>,
    /// By address; those that need no lock are the last.
    changes: Vec<Change>,
    /// Where the versions are kept that the first of them push out, as many as need a lock.
    kept: Vec<Option<RecordAddress>>,
    /// Writes them there.
    keeping: Vec<Operation>,
    phase: Phase,
    /// Operations under way.
    posted: usize,
    #[cfg(feature = "mutants")]
    pub(crate) mutant: Option<Mutant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    /// Looks how far the log archiver is; counts the attempts.
    Waiting(u32),
    Locking,
    Validating,
    /// Lets go of the locks.
    Giving(Abort),
    Logging,
    Installing,
    Publishing,
}

impl Commit {
    pub(crate) fn new(
        stamp: Stamp,
        (vector, seen): (Vector, &Snapshot),
        (log, overflow): (Option<&Log>, Option<&mut Overflow>),
        reads: &[LookupResult],
        changes: Vec<Change>,
    ) -> Result<Self, Abort> {
        for change in &changes {
            let (at, layout) = (change.seen.at, change.seen.layout);
            let length = change.value.as_ref().map_or(0, Vec::len);
            if length > layout.value_max() {
                return Err(Abort::TooLong(at, layout.value_max(), length));
            }
            if !change.seen.is_newest() {
                return Err(Abort::WriteConflict(at));
            }
        }
        let mut changes = changes;
        let order = |change: &Change| (change.seen.is_own, change.seen.at);
        changes.sort_by_key(order);
        let mut pairs = changes.windows(2);
        let twice = pairs.find(|pair| pair[0].seen.at == pair[1].seen.at);
        if let Some([first, _]) = twice {
            return Err(Abort::Twice(first.seen.at));
        }
        let is_written = |found: &LookupResult| match found {
            LookupResult::Record(seen) => changes
                .binary_search_by_key(&(false, seen.at), order)
                .is_ok(),
            LookupResult::Nothing(_) => false,
        };
        let others = reads.iter().filter(|found| !is_written(found));
        let reads = others.flat_map(Check::of).collect();
        let entry = |log: &Log| log.write(&LogEntry::of(stamp, seen, &changes));
        Ok(Self {
            stamp,
            publish: vector.publish(stamp, seen),
            need: None,
            log: log.map(entry).transpose()?.unwrap_or_default(),
            reads,
            kept: places(overflow, &changes),
            changes,
            keeping: Vec::new(),
            phase: Phase::Begun,
            posted: 0,
            #[cfg(feature = "mutants")]
            mutant: None,
        })
    }

    /// The same behind what must be written to disk first.
    pub(crate) fn behind(mut self, need: Option<Need>) -> Self {
        self.need = need.filter(|_| !self.changes.is_empty());
        self
    }

    fn go(&mut self, phase: Phase, operations: Vec<Operation>) -> Step<Committed> {
        self.phase = phase;
        self.posted = operations.len();
        assert!(self.posted > 0, "{phase:?} waits for something");
        Step::Post(operations)
    }

    /// Looks how far the log archiver is, if that matters.
    fn begin(&mut self, times: u32) -> Step<Committed> {
        let Some(need) = &self.need else {
            return self.lock();
        };
        let look = vec![need.operation.clone()];
        self.phase = Phase::Waiting(times);
        self.posted = look.len();
        match times {
            0 => Step::Post(look),
            Need::TRIES_MAX => Step::Done(Err(Abort::Unwritten(self.stamp.thread))),
            times => Step::Backoff(look, times),
        }
    }

    fn looked(&mut self, outcomes: &[OperationOutcome], times: u32) -> Step<Committed> {
        let Some((outcome, need)) = outcomes.first().zip(self.need.as_ref()) else {
            return self.begin(times + 1); // not reached: `check` says that it has a need
        };
        match copy_of(outcome) {
            Err(fault) => Step::Done(Err(fault.into())),
            Ok(copy) if need.is_met(copy) => self.lock(),
            Ok(_) => self.begin(times + 1),
        }
    }

    /// The records that others know of.
    fn locked_ones(&self) -> &[Change] {
        let count = self.changes.partition_point(|change| !change.seen.is_own);
        self.changes.get(..count).unwrap_or_default()
    }

    fn lock(&mut self) -> Step<Committed> {
        if self.locked_ones().is_empty() {
            return self.validate();
        }
        let swap = |change: &Change| Operation::CompareSwap {
            at: change.seen.at,
            expected: self.expected(change).word(),
            new: Head::Locked(self.stamp).word(),
        };
        let swaps = self.locked_ones().iter().map(swap);
        // What a front lacks and is to be kept: it stays as it is if the swap succeeds.
        let beyond = self
            .leaving()
            .filter(|(change, _)| change.seen.block.is_front());
        let beyond = beyond.map(|(change, _)| {
            let layout = change.seen.layout;
            Operation::Read {
                at: change.seen.at.plus(layout.front() as u64),
                bytes: layout.slot() as u64,
            }
        });
        let operations = swaps.chain(beyond).collect();
        self.go(Phase::Locking, operations)
    }

    /// Changes that push out a version which is to be kept, and where.
    fn leaving(&self) -> impl Iterator<Item = (&Change, RecordAddress)> {
        let places = self.changes.iter().zip(&self.kept);
        places.filter_map(|(change, kept)| Some((change, (*kept)?)))
    }

    /// Writes the versions that are pushed out, by copies of what was not there of them.
    fn keep(&mut self, copies: &[OperationOutcome]) {
        let mut copies = copies.iter();
        let mut keeping = Vec::new();
        for (change, kept) in self.changes.iter().zip(&mut self.kept) {
            let (Some(place), Seen { block, layout, .. }) = (*kept, &change.seen) else {
                continue;
            };
            let copy = if block.is_front() {
                let copy = copies.next();
                assert!(
                    copy.is_some(),
                    "what a front lacks of a version that is kept was read"
                );
                copy
            } else {
                None
            };
            let beyond = match copy.map(copy_of) {
                Some(Ok(copy)) => copy,
                _ => &[],
            };
            let Some((leaving, record)) = block
                .leaving(beyond)
                .zip(RecordAddress::new(change.seen.at))
            else {
                *kept = None; // nobody can have it any more
                continue;
            };
            keeping.push(overflow::keep(*layout, record, &leaving, place));
        }
        assert!(
            copies.next().is_none(),
            "every copy is of a version that is kept"
        );
        self.keeping = keeping;
    }

    /// The head that we lock.
    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn expected(&self, change: &Change) -> Head {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::TakesLocksOver) {
            return change.seen.head;
        }
        change.seen.head()
    }

    /// The heads are swapped, where they were what we have read.
    fn locked(&mut self, outcomes: &[OperationOutcome]) -> Step<Committed> {
        if let Some(fault) = fault(outcomes) {
            return Step::Done(Err(fault.into()));
        }
        let is_ours = |(change, outcome): &(&Change, &OperationOutcome)| {
            #[cfg(feature = "mutants")]
            if self.mutant == Some(Mutant::TakesEveryLock) {
                return true;
            }
            assert!(
                matches!(outcome, OperationOutcome::Word(_)),
                "a lock is won by the word that was there: {outcome:?}"
            );
            **outcome == OperationOutcome::Word(self.expected(change).word())
        };
        let mut pairs = self.locked_ones().iter().zip(outcomes);
        match pairs.find(|pair| !is_ours(pair)) {
            None => {
                let swaps = self.locked_ones().len();
                assert!(swaps <= outcomes.len(), "each lock has an outcome");
                self.keep(outcomes.get(swaps..).unwrap_or_default());
                self.validate()
            }
            Some((lost, _)) => {
                let abort = Abort::WriteConflict(lost.seen.at);
                let ours = self.locked_ones().iter().zip(outcomes).filter(is_ours);
                let back = ours.map(|(change, _)| give_back(change)).collect();
                self.give(abort, back)
            }
        }
    }

    fn give(&mut self, why: Abort, back: Vec<Operation>) -> Step<Committed> {
        if back.is_empty() {
            return Step::Done(Err(why));
        }
        self.go(Phase::Giving(why), back)
    }

    fn validate(&mut self) -> Step<Committed> {
        if self.reads.is_empty() {
            return self.write_log();
        }
        let again = self.reads.iter().map(Check::operation).collect();
        self.go(Phase::Validating, again)
    }

    /// What we have read, as it is now that everything that we write is locked.
    fn validated(&mut self, outcomes: &[OperationOutcome]) -> Step<Committed> {
        let mut pairs = self.reads.iter().zip(outcomes);
        match pairs.try_for_each(|(check, outcome)| check.judge(outcome)) {
            Ok(()) => self.write_log(),
            Err(abort) => {
                let back = self.locked_ones().iter().map(give_back).collect();
                self.give(abort, back)
            }
        }
    }

    fn write_log(&mut self) -> Step<Committed> {
        if self.changes.is_empty() {
            return Step::Done(Ok(None));
        }
        let mut log = std::mem::take(&mut self.log);
        if log.is_empty() {
            return self.install();
        }
        log.append(&mut self.keeping);
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::InstallsBeforeItLogs) {
            return self.install();
        }
        self.go(Phase::Logging, log)
    }

    fn logged(&mut self, outcomes: &[OperationOutcome]) -> Step<Committed> {
        match unwritten(outcomes) {
            Some(fault) => Step::Done(Err(fault.into())),
            None => self.install(),
        }
    }

    fn install(&mut self) -> Step<Committed> {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::PublishesFirst) && self.phase != Phase::Publishing {
            return self.publish();
        }
        let stamp = self.stamp;
        let kept = self.kept.iter().copied().chain(std::iter::repeat(None));
        let write = |(change, older): (&Change, Option<RecordAddress>)| {
            let block = &change.seen.block;
            #[cfg(feature = "mutants")]
            let older = match self.mutant {
                Some(Mutant::LinksOverAGap) => block.older().or(older),
                _ => older,
            };
            let block = block.with_older(stamp, change.value.as_deref(), older);
            if change.seen.is_own {
                block.install_fresh(change.seen.at)
            } else {
                block.install(change.seen.at)
            }
        };
        let blocks = self.changes.iter().zip(kept).map(write);
        // Those that are kept are not logged before where nothing is.
        let keeping = self.keeping.iter().cloned();
        let writes = keeping.chain(blocks).collect();
        self.go(Phase::Installing, writes)
    }

    fn installed(&mut self, outcomes: &[OperationOutcome]) -> Step<Committed> {
        match unwritten(outcomes) {
            Some(fault) => Step::Done(Err(fault.into())),
            #[cfg(feature = "mutants")]
            None if self.mutant == Some(Mutant::PublishesFirst) => Step::Done(Ok(Some(self.stamp))),
            None => self.publish(),
        }
    }

    fn publish(&mut self) -> Step<Committed> {
        let publish = self.publish.clone();
        self.go(Phase::Publishing, vec![publish])
    }

    fn published(&mut self, outcomes: &[OperationOutcome]) -> Step<Committed> {
        match unwritten(outcomes) {
            Some(fault) => Step::Done(Err(fault.into())),
            #[cfg(feature = "mutants")]
            None if self.mutant == Some(Mutant::PublishesFirst) => self.install(),
            None => Step::Done(Ok(Some(self.stamp))),
        }
    }
}

/// Where the versions are to be kept that changes push out.
fn places(overflow: Option<&mut Overflow>, changes: &[Change]) -> Vec<Option<RecordAddress>> {
    let Some(overflow) = overflow else {
        return Vec::new();
    };
    let place = |change: &Change| {
        let Seen { block, layout, .. } = &change.seen;
        let is_kept = layout.has_overflow() && block.oldest_label().is_some();
        is_kept.then(|| overflow.take(*layout)).flatten()
    };
    changes.iter().map(place).collect()
}

/// Unlocks a record as it was before; a lock that was nobody's goes with ours.
fn give_back(change: &Change) -> Operation {
    Operation::Write {
        at: change.seen.at,
        bytes: change.seen.free().word().to_le_bytes().to_vec(),
    }
}

impl Machine for Commit {
    type Output = Committed;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        // A lock that did not come is not won, a read that did not come has not been validated.
        assert_all_answered(&outcomes, std::mem::take(&mut self.posted));
        match self.phase {
            Phase::Begun => self.begin(0),
            Phase::Waiting(times) => self.looked(&outcomes, times),
            Phase::Locking => self.locked(&outcomes),
            Phase::Validating => self.validated(&outcomes),
            Phase::Giving(why) => Step::Done(Err(why)),
            Phase::Logging => self.logged(&outcomes),
            Phase::Installing => self.installed(&outcomes),
            Phase::Publishing => self.published(&outcomes),
        }
    }

    fn check(&self) -> Result<(), String> {
        let place = |change: &Change| (change.seen.is_own, change.seen.at);
        let mut pairs = self.changes.windows(2);
        ensure(pairs.all(|pair| place(&pair[0]) < place(&pair[1])), || {
            "records are locked in the order of their addresses, each once".to_owned()
        })?;
        ensure(
            self.changes.iter().all(|change| change.seen.is_newest()),
            || "only the newest version of a record is written over".to_owned(),
        )?;
        let kept = self.kept.len();
        ensure(kept == 0 || kept == self.changes.len(), || {
            format!(
                "{kept} places for versions that {} changes push out",
                self.changes.len()
            )
        })?;
        ensure(self.keeping.len() <= kept, || {
            "a version is kept at a place that was taken for it".to_owned()
        })?;
        ensure(self.need.is_none() || !self.changes.is_empty(), || {
            "a transaction that writes nothing waits for no disk".to_owned()
        })?;
        let holds = match self.phase {
            Phase::Begun => true,
            Phase::Waiting(times) => self.need.is_some() && times <= Need::TRIES_MAX,
            Phase::Locking => !self.locked_ones().is_empty(),
            Phase::Validating => !self.reads.is_empty(),
            Phase::Giving(why) => why.is_conflict() || matches!(why, Abort::Fault(_)),
            Phase::Logging | Phase::Installing => self.log.is_empty() && !self.changes.is_empty(),
            Phase::Publishing => !self.changes.is_empty(),
        };
        ensure(holds, || format!("{:?} has what it works on", self.phase))
    }
}

#[cfg(test)]
mod tests;
