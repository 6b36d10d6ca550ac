//! Adds a record that nobody has written yet under a key.
//!
//! The record is written to memory that is the caller's alone; then one swap makes it everybody's:
//! of the first empty entry of the key's chain, or, where all are taken, of the link behind the
//! last bucket to a new one that has the entry in it. Who loses the swap looks again.

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, Operation, OperationOutcome};

use crate::abort::Abort;
use crate::block::Block;
use crate::directory::{BUCKET, Bucket, RecordAddress, entry};
use crate::find::{Absence, Find, LookupResult};
use crate::machine::{Machine, Step, fault};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::read::Seen;
use crate::replicas::is_region;
use crate::vector::Snapshot;
use crate::version::{Head, Stamp};

/// Memory that is the caller's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FreeSpace {
    /// For a record of the table.
    pub record: RecordAddress,
    /// How often that place was given to a record before.
    pub generation: u64,
    /// For a bucket, should the chain be full.
    pub bucket: RecordAddress,
}

/// What has come of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Added {
    /// The record under the key: the caller's, which nobody has written, or another's.
    pub seen: Seen,
    /// The place for a record is the caller's no more.
    pub took_record: bool,
    /// The place for a bucket is the caller's no more.
    pub took_bucket: bool,
}

/// Adds a record, or finds another's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Add {
    absence: Absence,
    room: FreeSpace,
    snapshot: Snapshot,
    phase: Phase,
    #[cfg(feature = "mutants")]
    pub(crate) mutant: Option<Mutant>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    /// Writes the record, and a bucket with its entry.
    Begun,
    Writing,
    /// Swaps an entry.
    Entering,
    /// Swaps a link.
    Linking,
    /// Somebody else was faster, perhaps with the same key.
    Looking(Box<Find>),
}

impl Add {
    pub(crate) fn new(absence: Absence, room: FreeSpace, snapshot: Snapshot) -> Self {
        Self {
            absence,
            room,
            snapshot,
            phase: Phase::Begun,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    fn entry(&self) -> u64 {
        entry(self.absence.print, self.room.record)
    }

    fn block(&self) -> Block {
        let layout = self.absence.table.layout();
        Block::keyed(layout, self.room.generation, &self.absence.key)
    }

    fn write(&mut self) -> Step<Result<Added, Abort>> {
        let mut operations = vec![self.block().install(self.room.record.address())];
        if self.vacancy().is_none() {
            operations.push(self.write_bucket());
        }
        self.phase = Phase::Writing;
        Step::Post(operations)
    }

    /// A bucket whose first entry is ours.
    fn write_bucket(&self) -> Operation {
        let mut bytes = self.entry().to_le_bytes().to_vec();
        bytes.resize(usize::try_from(BUCKET).unwrap_or(0), 0);
        assert_eq!(bytes.len() as u64, BUCKET, "a bucket is written whole");
        Operation::Write {
            at: self.room.bucket.address(),
            bytes,
        }
    }

    fn vacancy(&self) -> Option<Address> {
        self.absence.trail.iter().find_map(Bucket::vacancy)
    }

    fn swap(&mut self) -> Step<Result<Added, Abort>> {
        let trail = self.absence.trail.iter();
        if let Some((number, at)) = trail.zip(0..).find_map(vacancy) {
            self.phase = Phase::Entering;
            return self.swap_behind(number, at, self.entry());
        }
        let Some((last, before)) = self.absence.trail.split_last() else {
            return self.look(); // a look for a key leaves no empty trail, as `check` says
        };
        assert!(last.next().is_none(), "a chain is linked on at its end");
        let (number, link) = (before.len(), last.link());
        self.phase = Phase::Linking;
        self.swap_behind(number, link, entry(self.absence.print, self.room.bucket))
    }

    /// Swaps a word of the bucket with this number on the trail, and makes sure of the links to it.
    fn swap_behind(&self, number: usize, at: Address, new: u64) -> Step<Result<Added, Abort>> {
        let own = Operation::CompareSwap {
            at,
            expected: 0,
            new,
        };
        let before = self.absence.trail.iter().take(number);
        let before = before.filter(|bucket| is_region(bucket.at));
        let links = before.map(Bucket::confirm_link);
        Step::Post(std::iter::once(own).chain(links).collect())
    }

    fn look(&mut self) -> Step<Result<Added, Abort>> {
        let mut find = Box::new(Find::again(&self.absence, self.snapshot.clone()));
        #[cfg(feature = "mutants")]
        {
            find.mutant = self.mutant;
        }
        let step = find.step(Vec::new());
        self.looked(find, step)
    }

    fn looked(
        &mut self,
        find: Box<Find>,
        step: Step<Result<LookupResult, Abort>>,
    ) -> Step<Result<Added, Abort>> {
        match step {
            Step::Done(Err(abort)) => Step::Done(Err(abort)),
            Step::Done(Ok(LookupResult::Record(seen))) => Step::Done(Ok(Added {
                seen,
                took_record: false,
                took_bucket: false,
            })),
            Step::Done(Ok(LookupResult::Nothing(absence))) => {
                self.absence = absence;
                self.write()
            }
            Step::Post(operations) => {
                self.phase = Phase::Looking(find);
                Step::Post(operations)
            }
            Step::Backoff(operations, times) => {
                self.phase = Phase::Looking(find);
                Step::Backoff(operations, times)
            }
        }
    }

    /// The swap is done.
    fn swapped(
        &mut self,
        outcomes: &[OperationOutcome],
        took_bucket: bool,
    ) -> Step<Result<Added, Abort>> {
        if let Some(fault) = fault(outcomes) {
            return Step::Done(Err(fault.into()));
        }
        assert!(!outcomes.is_empty(), "a swap has an outcome");
        match outcomes.first() {
            Some(OperationOutcome::Word(0)) => Step::Done(Ok(self.added(took_bucket))),
            #[cfg(feature = "mutants")]
            Some(OperationOutcome::Word(_)) if self.mutant == Some(Mutant::AddsWithoutLooking) => {
                self.try_the_next()
            }
            _ => self.look(),
        }
    }

    /// A defect: takes the next entry, whoever has taken this one.
    #[cfg(feature = "mutants")]
    fn try_the_next(&mut self) -> Step<Result<Added, Abort>> {
        if let Some(bucket) = self
            .absence
            .trail
            .iter_mut()
            .find(|one| one.vacancy().is_some())
        {
            bucket.fill_first();
        }
        self.swap()
    }

    fn added(&self, took_bucket: bool) -> Added {
        let seen = Seen {
            at: self.room.record.address(),
            layout: self.absence.table.layout(),
            stamp: Stamp::NOTHING,
            block: self.block(),
            older: None,
            holder: None,
            head: Head::Free(Stamp::NOTHING),
            is_own: false,
        };
        Added {
            seen,
            took_record: true,
            took_bucket,
        }
    }
}

/// The first empty entry of a bucket, with the bucket's number.
fn vacancy((bucket, number): (&Bucket, usize)) -> Option<(usize, Address)> {
    Some((number, bucket.vacancy()?))
}

impl Machine for Add {
    type Output = Result<Added, Abort>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => self.write(),
            Phase::Writing => match fault(&outcomes) {
                Some(fault) => Step::Done(Err(fault.into())),
                None => self.swap(),
            },
            Phase::Entering => self.swapped(&outcomes, false),
            Phase::Linking => self.swapped(&outcomes, true),
            Phase::Looking(mut find) => {
                let step = find.step(outcomes);
                self.looked(find, step)
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        let FreeSpace { record, bucket, .. } = self.room;
        ensure(record != bucket, || {
            "a record and a bucket do not begin at one place".to_owned()
        })?;
        ensure(!self.absence.trail.is_empty(), || {
            "a key is looked for before it is added".to_owned()
        })?;
        match &self.phase {
            Phase::Begun | Phase::Writing => Ok(()),
            Phase::Entering => ensure(self.vacancy().is_some(), || {
                "a key is entered where the chain has an empty entry".to_owned()
            }),
            Phase::Linking => ensure(self.vacancy().is_none(), || {
                "a bucket is linked only to a chain that is full".to_owned()
            }),
            Phase::Looking(find) => find.check(),
        }
    }
}
