//! Finds the record under a key.

use std::collections::BTreeSet;

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, OperationOutcome};

use crate::abort::Abort;
use crate::directory::{Bucket, Print, RecordAddress, Table, entry};
use crate::machine::{Machine, Step, copy_of, fault, only};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::read::{Read, Seen};
use crate::replicas::is_region;
use crate::vector::Snapshot;
use crate::version::Stamp;

/// What a look for a key has come to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LookupResult {
    /// There is a place for it; what the snapshot sees there may be that there is no record.
    Record(Seen),
    /// Nobody has ever added it.
    Nothing(Absence),
}

impl From<Seen> for LookupResult {
    fn from(seen: Seen) -> Self {
        Self::Record(seen)
    }
}

/// That no record was ever added under a key, as far as was seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Absence {
    pub(crate) table: Table,
    pub(crate) key: Vec<u8>,
    /// The first bucket of the key's chain.
    first: Address,
    pub(crate) print: Print,
    /// All buckets of the chain, as they were.
    pub(crate) trail: Vec<Bucket>,
}

/// Walks a chain of buckets, and reads the records whose print is the key's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Find {
    snapshot: Snapshot,
    sought: Absence,
    phase: Phase,
    #[cfg(feature = "mutants")]
    pub(crate) mutant: Option<Mutant>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    /// Reads a bucket.
    Walking(Address),
    /// Reads a record that may be it, at this place; these are others of the same bucket.
    Trying(Box<Read>, RecordAddress, Vec<RecordAddress>),
    /// Makes sure that its entry is on all replicas.
    Confirming(Box<Seen>),
}

impl Find {
    pub(crate) fn new(table: Table, key: &[u8], snapshot: Snapshot) -> Result<Self, Abort> {
        let longest = table.layout().key_max();
        if key.len() > longest {
            return Err(Abort::KeyTooLong(longest, key.len()));
        }
        let (first, print) = table.chain(key);
        let sought = Absence {
            table,
            key: key.to_vec(),
            first,
            print,
            trail: Vec::new(),
        };
        Ok(Self {
            snapshot,
            sought,
            phase: Phase::Begun,
            #[cfg(feature = "mutants")]
            mutant: None,
        })
    }

    /// Looks once more for what was not there.
    pub(crate) fn again(absence: &Absence, snapshot: Snapshot) -> Self {
        let sought = Absence {
            trail: Vec::new(),
            ..absence.clone()
        };
        Self {
            snapshot,
            sought,
            phase: Phase::Begun,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    fn walk(&mut self, at: Address) -> Step<Result<LookupResult, Abort>> {
        self.phase = Phase::Walking(at);
        Step::Post(vec![Bucket::read(at)])
    }

    fn walked(&mut self, at: Address, copy: &[u8]) -> Step<Result<LookupResult, Abort>> {
        let bucket = Bucket::parse(at, copy);
        self.sought.trail.push(bucket);
        let places = bucket.places(self.sought.print).collect();
        self.try_next(places)
    }

    /// Reads the next record that may be it, or goes on to the next bucket.
    fn try_next(&mut self, mut places: Vec<RecordAddress>) -> Step<Result<LookupResult, Abort>> {
        if let Some(place) = places.pop() {
            let layout = self.sought.table.layout();
            let read = Read::new(place.address(), layout, self.snapshot.clone());
            let mut read = Box::new(read.under(&self.sought.key));
            let step = read.step(Vec::new());
            return self.tried(read, place, places, step);
        }
        match self.sought.trail.last().and_then(Bucket::next) {
            Some(next) => self.walk(next),
            None => Step::Done(Ok(LookupResult::Nothing(self.sought.clone()))),
        }
    }

    fn tried(
        &mut self,
        read: Box<Read>,
        place: RecordAddress,
        places: Vec<RecordAddress>,
        step: Step<Result<Seen, Abort>>,
    ) -> Step<Result<LookupResult, Abort>> {
        match step {
            Step::Done(Ok(seen)) => self.confirm(place, seen),
            Step::Done(Err(Abort::Elsewhere(_))) => self.try_next(places),
            Step::Done(Err(abort)) => Step::Done(Err(abort)),
            Step::Post(operations) => {
                self.phase = Phase::Trying(read, place, places);
                Step::Post(operations)
            }
            Step::Backoff(operations, times) => {
                self.phase = Phase::Trying(read, place, places);
                Step::Backoff(operations, times)
            }
        }
    }
}

impl Find {
    /// Whether the last bucket that was read leads to a record by the key's print.
    fn is_in_last_bucket(&self, at: Address) -> bool {
        let print = self.sought.print;
        let last = self.sought.trail.last().into_iter();
        let mut places = last.flat_map(|bucket| bucket.places(print));
        places.any(|place| place.address() == at)
    }

    /// A record that somebody has written has its entry everywhere; of another one nobody knows.
    fn confirm(&mut self, place: RecordAddress, seen: Seen) -> Step<Result<LookupResult, Abort>> {
        let trail = &self.sought.trail;
        let is_written = seen.block.newest() != Stamp::NOTHING;
        #[cfg(feature = "mutants")]
        let is_written = is_written || self.mutant == Some(Mutant::ReliesOnHalfAnEntry);
        let Some((last, before)) = trail.split_last() else {
            return Step::Done(Ok(seen.into())); // it was found in a bucket
        };
        if is_written || !is_region(last.at) {
            return Step::Done(Ok(seen.into()));
        }
        let links = before.iter().map(Bucket::confirm_link);
        let own = last.confirm(entry(self.sought.print, place));
        // Else the record would be relied on before its entry is on all replicas.
        assert!(
            own.is_some(),
            "the entry that was found is in the last bucket"
        );
        let swaps = links.chain(own).collect();
        self.phase = Phase::Confirming(Box::new(seen));
        Step::Post(swaps)
    }
}

impl Machine for Find {
    type Output = Result<LookupResult, Abort>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => self.walk(self.sought.first),
            Phase::Walking(at) => match only(outcomes).as_ref().map(copy_of) {
                Some(Ok(copy)) => self.walked(at, copy),
                Some(Err(fault)) => Step::Done(Err(fault.into())),
                None => self.walk(at),
            },
            Phase::Trying(mut read, place, places) => {
                let step = read.step(outcomes);
                self.tried(read, place, places, step)
            }
            Phase::Confirming(seen) => match fault(&outcomes) {
                Some(fault) => Step::Done(Err(fault.into())),
                None => Step::Done(Ok((*seen).into())),
            },
        }
    }

    fn check(&self) -> Result<(), String> {
        let Absence {
            table,
            key,
            first,
            trail,
            ..
        } = &self.sought;
        ensure(key.len() <= table.layout().key_max(), || {
            format!("a key of {} bytes is sought", key.len())
        })?;
        let mut links = trail.windows(2);
        let is_linked = trail.first().is_none_or(|bucket| bucket.at == *first)
            && links.all(|pair| pair[0].next() == Some(pair[1].at));
        ensure(is_linked, || {
            "the buckets that were read are a chain from the key's first one".to_owned()
        })?;
        let places: BTreeSet<Address> = trail.iter().map(|bucket| bucket.at).collect();
        ensure(places.len() == trail.len(), || {
            format!("a chain of buckets has an end: {trail:?}")
        })?;
        match &self.phase {
            Phase::Begun => Ok(()),
            Phase::Walking(at) => {
                let next = trail.last().map_or(Some(*first), Bucket::next);
                ensure(next == Some(*at), || {
                    format!("{at} is the next bucket of the chain")
                })
            }
            Phase::Trying(read, place, others) => {
                read.check()?;
                let is_there = |place: &RecordAddress| self.is_in_last_bucket(place.address());
                ensure(is_there(place) && others.iter().all(is_there), || {
                    "a record that is tried is in the last bucket".to_owned()
                })
            }
            Phase::Confirming(seen) => {
                ensure(seen.block.newest() == Stamp::NOTHING, || {
                    "an entry is confirmed only of a record that nobody has written".to_owned()
                })?;
                ensure(self.is_in_last_bucket(seen.at), || {
                    format!("the entry of {} is in the last bucket", seen.at)
                })
            }
        }
    }
}
