//! What batches come to: of each record the last version.
//!
//! Of two versions of a record the later one is that whose transaction had seen the other: nobody
//! writes over what he has not seen. A batch has all that its transactions had seen, or one before it
//! has; so of two batches what is in the later one is later.

use manxdb_core::check::deep;
use std::collections::BTreeMap;

use manxdb_fabric::Address;

use crate::block::{Block, Layout};
use crate::drain::batch::Batch;
use crate::log::{LogEntry, Redo};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::vector::Snapshot;
use crate::version::{Head, Stamp};

/// Takes batches one after the other.
#[derive(Debug, Clone)]
pub struct Replay {
    formation: u64,
    /// Of the next batch.
    number: u64,
    cut: Snapshot,
    records: BTreeMap<Address, Replayed>,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

/// The last version of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Replayed {
    /// Which version.
    pub stamp: Stamp,
    /// What it says, and of which record.
    pub redo: Redo,
}

/// A batch that is not the next one. What came before it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// It is of another database.
    #[error("a batch of formation {found:x} is among those of formation {expected:x}")]
    Foreign {
        /// Of the others.
        expected: u64,
        /// Its.
        found: u64,
    },
    /// Another one is missing, or it was there before.
    #[error("batch {found} comes where batch {expected} is to be")]
    OutOfOrder {
        /// The next one's number.
        expected: u64,
        /// Its.
        found: u64,
    },
    /// It lacks something that the one before has, or has what is not new in its cut. No log archiver
    /// writes such a batch.
    #[error("batch {0} is not behind the one before it")]
    Backwards(u64),
    /// Two transactions in it have written a record, and neither had seen the other. Nobody commits
    /// so.
    #[error(
        "of transactions {0} and {1}, which have written one record, neither had seen the other"
    )]
    Unordered(Stamp, Stamp),
}

impl Replay {
    /// Of a database, from a batch on; all of `cut` is in memory already, by a checkpoint.
    #[must_use]
    pub fn new(formation: u64, number: u64, cut: Snapshot) -> Self {
        Self {
            formation,
            number,
            cut,
            records: BTreeMap::new(),
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

    /// Takes the next batch.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn take(&mut self, batch: Batch) -> Result<(), ReplayError> {
        self.check(&batch)?;
        let latest = self.latest(&batch.entries)?;
        let latest: BTreeMap<Address, usize> = latest;
        for (number, entry) in batch.entries.into_iter().enumerate() {
            let stamp = entry.stamp;
            for redo in entry.redo {
                if latest.get(&redo.at) == Some(&number) {
                    self.records.insert(redo.at, Replayed { stamp, redo });
                }
            }
        }
        self.cut = batch.cut;
        self.number += 1;
        if deep() {
            let is_in = |record: &Replayed| self.cut.admits(record.stamp);
            assert!(
                self.records.values().all(is_in),
                "what is replayed is in the cut"
            );
        }
        Ok(())
    }

    fn check(&self, batch: &Batch) -> Result<(), ReplayError> {
        let (expected, found) = (self.formation, batch.formation);
        if expected != found {
            return Err(ReplayError::Foreign { expected, found });
        }
        let (expected, found) = (self.number, batch.number);
        if expected != found {
            return Err(ReplayError::OutOfOrder { expected, found });
        }
        let is_new =
            |entry: &LogEntry| batch.cut.admits(entry.stamp) && !self.cut.admits(entry.stamp);
        let is_of_these = batch.cut.numbers().len() == self.cut.numbers().len();
        if is_of_these && batch.cut.includes(&self.cut) && batch.entries.iter().all(is_new) {
            Ok(())
        } else {
            Err(ReplayError::Backwards(found))
        }
    }

    /// Which of some transactions has written each record last.
    fn latest(&self, entries: &[LogEntry]) -> Result<BTreeMap<Address, usize>, ReplayError> {
        let mut latest: BTreeMap<Address, usize> = BTreeMap::new();
        for (number, entry) in entries.iter().enumerate() {
            for redo in &entry.redo {
                let other = latest.get(&redo.at).and_then(|other| entries.get(*other));
                if other.is_none_or(|other| self.is_later(entry, other)) {
                    latest.insert(redo.at, number);
                } else if let Some(other) = other.filter(|other| !self.is_later(other, entry)) {
                    return Err(ReplayError::Unordered(entry.stamp, other.stamp));
                }
            }
        }
        Ok(latest)
    }

    #[cfg_attr(not(feature = "mutants"), expect(clippy::unused_self))]
    fn is_later(&self, entry: &LogEntry, other: &LogEntry) -> bool {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::ReplaysByThread) {
            return entry.stamp > other.stamp;
        }
        entry.seen.admits(other.stamp)
    }

    /// Up to where everything is taken.
    #[must_use]
    pub fn cut(&self) -> &Snapshot {
        &self.cut
    }

    /// Of the next batch.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The last version of each record that batches have written.
    pub fn records(&self) -> impl Iterator<Item = &Replayed> {
        self.records.values()
    }
}

impl Replayed {
    /// Where the record is.
    #[must_use]
    pub fn at(&self) -> Address {
        self.redo.at
    }

    /// How it lies there.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.redo.layout
    }

    /// The whole record from its head on, unlocked, as long as its layout says. Its older versions are
    /// lost, which no snapshot sees any more.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let Redo {
            layout,
            generation,
            key,
            former,
            value,
            ..
        } = &self.redo;
        let before = match *former {
            Stamp::NOTHING => Block::keyed(*layout, *generation, key),
            _ => Block::lost(*layout, *generation, key),
        };
        let head = Head::Free(self.stamp).word();
        let mut bytes = head.to_le_bytes().to_vec();
        bytes.extend(before.with(self.stamp, value.as_deref()).into_body());
        assert_eq!(
            bytes.len(),
            layout.bytes(),
            "a record is restored from its head to its end"
        );
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drain::batch::tests::{entry, stamp};

    fn batch(number: u64, cut: &[u64], entries: Vec<LogEntry>) -> Batch {
        Batch {
            formation: 1,
            number,
            cut: Snapshot::of_numbers(cut.to_vec()),
            entries,
        }
    }

    fn replay() -> Replay {
        Replay::new(1, 5, Snapshot::of_numbers(vec![2, 2]))
    }

    #[test]
    fn of_two_versions_that_is_later_which_had_seen_the_other() {
        let first = entry(stamp(1, 3), &[2, 2], 1, stamp(0, 2));
        let second = entry(stamp(0, 3), &[2, 3], 1, stamp(1, 3));
        for entries in [[&first, &second], [&second, &first]] {
            let mut replay = replay();
            let entries = entries.map(LogEntry::clone).to_vec();
            replay.take(batch(5, &[3, 3], entries)).unwrap();
            let stamps: Vec<Stamp> = replay.records().map(|record| record.stamp).collect();
            assert_eq!(stamps, [stamp(0, 3)]);
        }
        // In two batches too.
        let mut replay = replay();
        replay.take(batch(5, &[2, 3], vec![first])).unwrap();
        replay.take(batch(6, &[3, 3], vec![second])).unwrap();
        let record = replay.records().next().unwrap().clone();
        assert_eq!((record.stamp, replay.number()), (stamp(0, 3), 7));
        let (head, block) = Block::parse(record.layout(), record.bytes()).unwrap();
        assert_eq!((head, block.key()), (Head::Free(stamp(0, 3)), &b"key"[..]));
        assert_eq!(block.value(stamp(0, 3)), Some(&3u64.to_le_bytes()[..]));
        assert_eq!(block.generation(), 7);
    }

    #[test]
    fn two_that_have_not_seen_each_other_are_refused() {
        let first = entry(stamp(1, 3), &[2, 2], 1, stamp(0, 2));
        let second = entry(stamp(0, 3), &[2, 2], 1, stamp(0, 2));
        let refused = replay().take(batch(5, &[3, 3], vec![first, second]));
        let expected = ReplayError::Unordered(stamp(0, 3), stamp(1, 3));
        assert_eq!(refused, Err(expected));
    }

    #[test]
    fn a_batch_that_is_not_the_next_one_is_refused() {
        let mut replay = replay();
        let mut foreign = batch(5, &[3, 3], Vec::new());
        foreign.formation = 2;
        let (expected, found) = (1, 2);
        let refused = replay.take(foreign);
        assert_eq!(refused, Err(ReplayError::Foreign { expected, found }));
        let refused = replay.take(batch(6, &[3, 3], Vec::new()));
        let (expected, found) = (5, 6);
        assert_eq!(refused, Err(ReplayError::OutOfOrder { expected, found }));
        let old = entry(stamp(0, 2), &[2, 2], 1, Stamp::NOTHING);
        let early = entry(stamp(0, 4), &[2, 2], 1, Stamp::NOTHING);
        for (cut, entries) in [
            ([3, 1], Vec::new()),
            ([3, 3], vec![old]),
            ([3, 3], vec![early]),
        ] {
            let refused = replay.take(batch(5, &cut, entries));
            assert_eq!(refused, Err(ReplayError::Backwards(5)));
        }
        replay.take(batch(5, &[3, 3], Vec::new())).unwrap();
    }
}
