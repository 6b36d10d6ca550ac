//! Adds a record that nobody has written yet under a key.
//!
//! The record is written to memory that is the caller's alone; then one swap makes it everybody's:
//! of the first empty entry of the key's chain, or, where all are taken, of the link behind the
//! last bucket to a new one that has the entry in it. Who loses the swap looks again.

use manxdb_fabric::{Address, Operation, Outcome};

use crate::block::Block;
use crate::commit::Abort;
use crate::directory::{BUCKET, Bucket, Place, entry};
use crate::find::{Absence, Find, Found};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::read::Seen;
use crate::vector::Snapshot;
use crate::version::{Head, Stamp};
use crate::work::{Step, Work};

/// Memory that is the caller's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Room {
    /// For a record of the table.
    pub record: Place,
    /// How often that place was given to a record before.
    pub generation: u64,
    /// For a bucket, should the chain be full.
    pub bucket: Place,
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
    room: Room,
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
    pub(crate) fn new(absence: Absence, room: Room, snapshot: Snapshot) -> Self {
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
        Step::Ask(operations)
    }

    /// A bucket whose first entry is ours.
    fn write_bucket(&self) -> Operation {
        let mut bytes = self.entry().to_le_bytes().to_vec();
        bytes.resize(usize::try_from(BUCKET).unwrap_or(0), 0);
        Operation::Write {
            at: self.room.bucket.address(),
            bytes,
        }
    }

    fn vacancy(&self) -> Option<Address> {
        self.absence.trail.iter().find_map(Bucket::vacancy)
    }

    fn swap(&mut self) -> Step<Result<Added, Abort>> {
        if let Some(at) = self.vacancy() {
            self.phase = Phase::Entering;
            return Step::Ask(vec![Operation::CompareSwap {
                at,
                expected: 0,
                new: self.entry(),
            }]);
        }
        let Some(last) = self.absence.trail.last() else {
            return self.look(); // a look for a key leaves no empty trail
        };
        let link = last.link();
        self.phase = Phase::Linking;
        Step::Ask(vec![Operation::CompareSwap {
            at: link,
            expected: 0,
            new: entry(self.absence.print, self.room.bucket),
        }])
    }

    fn look(&mut self) -> Step<Result<Added, Abort>> {
        let mut find = Box::new(Find::again(&self.absence, self.snapshot.clone()));
        let step = find.step(Vec::new());
        self.looked(find, step)
    }

    fn looked(
        &mut self,
        find: Box<Find>,
        step: Step<Result<Found, Abort>>,
    ) -> Step<Result<Added, Abort>> {
        match step {
            Step::Done(Err(abort)) => Step::Done(Err(abort)),
            Step::Done(Ok(Found::Record(seen))) => Step::Done(Ok(Added {
                seen,
                took_record: false,
                took_bucket: false,
            })),
            Step::Done(Ok(Found::Nothing(absence))) => {
                self.absence = absence;
                self.write()
            }
            Step::Ask(operations) => {
                self.phase = Phase::Looking(find);
                Step::Ask(operations)
            }
            Step::Again(operations, times) => {
                self.phase = Phase::Looking(find);
                Step::Again(operations, times)
            }
        }
    }

    /// The swap is done.
    fn swapped(&mut self, outcomes: &[Outcome], took_bucket: bool) -> Step<Result<Added, Abort>> {
        match outcomes.first() {
            Some(Outcome::Failed(fault)) => Step::Done(Err((*fault).into())),
            Some(Outcome::Word(0)) => Step::Done(Ok(self.added(took_bucket))),
            #[cfg(feature = "mutants")]
            Some(Outcome::Word(_)) if self.mutant == Some(Mutant::AddsWithoutLooking) => {
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
            value: None,
            block: self.block(),
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

impl Work for Add {
    type Output = Result<Added, Abort>;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        let failed = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Failed(fault) => Some(*fault),
            _ => None,
        });
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => self.write(),
            Phase::Writing => match failed {
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
}
