//! What a thread is about to install, where it survives the thread.
//!
//! Before anything is installed, a transaction is written to the thread's log on several servers:
//! from then on it is committed, whoever dies (reference: rack, §2.3, I4). A thread runs one
//! transaction at a time and publishes it before it begins the next, so its log has one entry. An
//! entry that is half written over the one before has a wrong sum; the one before is published,
//! and of the new one nothing is installed.

use manxdb_fabric::{Address, Operation, Outcome, ServerId, WORD_LENGTH};

use crate::block::Layout;
use crate::commit::{Abort, Change};
use crate::replicas::Map;
use crate::vector::Snapshot;
use crate::version::{Label, Stamp};

/// In the number of versions of a layout with overflow areas.
const OVERFLOW: u64 = 1 << 32;

/// Where a thread logs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Log {
    /// The same on each of these, of which one must survive.
    places: Vec<Address>,
    /// Room at each, a multiple of a word.
    bytes: u64,
}

/// A transaction in a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The version that it installs.
    pub stamp: Stamp,
    /// What its thread had seen, this version included.
    pub seen: Snapshot,
    /// The records that it writes.
    pub redo: Vec<Redo>,
}

/// A record that a transaction writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Redo {
    /// Where,
    pub at: Address,
    /// and how it lies there.
    pub layout: Layout,
    /// Of the place.
    pub generation: u64,
    /// Of the record.
    pub key: Vec<u8>,
    /// The version before.
    pub former: Stamp,
    /// What it becomes; none: it is deleted.
    pub value: Option<Vec<u8>>,
}

impl Log {
    /// A log of so many bytes at each of some places; none without a place, or where no entry
    /// could be written in one piece.
    #[must_use]
    pub fn new(places: Vec<Address>, bytes: u64) -> Option<Self> {
        let is_fine = !places.is_empty()
            && bytes.is_multiple_of(WORD_LENGTH as u64)
            && bytes > 0
            && bytes <= manxdb_fabric::operation::BYTES_MAX;
        is_fine.then_some(Self { places, bytes })
    }

    /// The same on servers, where a map has it; none when no server has it any more.
    #[must_use]
    pub fn on(&self, map: &Map) -> Option<Self> {
        let places = self.places.iter().flat_map(|at| map.all(*at));
        Self::new(places.collect(), self.bytes)
    }

    /// Places that have it.
    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    /// Writes an entry everywhere.
    ///
    /// # Errors
    /// [`Abort::TooLarge`].
    pub(crate) fn write(&self, entry: &Entry) -> Result<Vec<Operation>, Abort> {
        let bytes = entry.encode();
        if bytes.len() as u64 > self.bytes {
            return Err(Abort::TooLarge(bytes.len() as u64, self.bytes));
        }
        let write = |at: &Address| Operation::Write {
            at: *at,
            bytes: bytes.clone(),
        };
        Ok(self.places.iter().map(write).collect())
    }

    /// Writes an entry where, by copies of all places, it is not whole; everywhere without copies.
    pub(crate) fn complete(&self, entry: &Entry, copies: &[Outcome]) -> Vec<Operation> {
        let lacks = |outcome: &Outcome| match outcome {
            Outcome::Read(copy) => Entry::parse(copy).as_ref() != Some(entry),
            _ => false, // it is gone
        };
        let writes = self.write(entry).unwrap_or_default(); // it was written before, so it fits
        let copies = copies.iter().map(Some).chain(std::iter::repeat(None));
        let pairs = writes.into_iter().zip(copies);
        let lacking = pairs.filter(|(_, outcome)| outcome.is_none_or(lacks));
        lacking.map(|(write, _)| write).collect()
    }

    /// Reads all of them.
    pub(crate) fn read(&self) -> Vec<Operation> {
        let bytes = self.bytes;
        let read = |at: &Address| Operation::Read { at: *at, bytes };
        self.places.iter().map(read).collect()
    }
}

impl Entry {
    pub(crate) fn of(stamp: Stamp, seen: &Snapshot, changes: &[Change]) -> Self {
        let redo = |change: &Change| Redo {
            at: change.seen.at,
            layout: change.seen.layout,
            generation: change.seen.block.generation(),
            key: change.seen.block.key().to_vec(),
            former: change.seen.stamp,
            value: change.value.clone(),
        };
        Self {
            stamp,
            seen: seen.clone(),
            redo: changes.iter().map(redo).collect(),
        }
    }

    /// The last entry of a thread that has died: it writes nothing.
    pub(crate) fn closing(stamp: Stamp, seen: Snapshot) -> Self {
        let redo = Vec::new();
        Self { stamp, seen, redo }
    }

    /// Length, stamp, snapshot, records, sum: words, little-endian.
    fn encode(&self) -> Vec<u8> {
        let mut words = Writer(vec![0; WORD_LENGTH]);
        words.put(label(self.stamp, false));
        words.put(self.seen.numbers().len() as u64);
        for number in self.seen.numbers() {
            words.put(*number);
        }
        words.put(self.redo.len() as u64);
        for redo in &self.redo {
            words.put(u64::from(redo.at.server.0));
            words.put(redo.at.offset);
            let (versions, value_max, key_max) = redo.layout.sizes();
            let overflow = if redo.layout.has_overflow() {
                OVERFLOW
            } else {
                0
            };
            words.put(versions as u64 | overflow);
            words.put(value_max as u64);
            words.put(key_max as u64);
            words.put(redo.generation);
            words.text(&redo.key);
            words.put(label(redo.former, redo.value.is_none()));
            words.text(redo.value.as_deref().unwrap_or_default());
        }
        words.seal()
    }

    /// The entry in a copy of a log; none if there is none, or not a whole one.
    pub(crate) fn parse(copy: &[u8]) -> Option<Self> {
        let mut words = Reader::open(copy)?;
        let stamp = Label::of_word(words.take()?).stamp;
        let threads = words.count()?;
        let seen = (0..threads).map(|_| words.take()).collect::<Option<_>>()?;
        let records = words.count()?;
        let redo = (0..records).map(|_| words.redo()).collect::<Option<_>>()?;
        Some(Self {
            stamp,
            seen: Snapshot::of_numbers(seen),
            redo,
        })
    }
}

fn label(stamp: Stamp, is_deleted: bool) -> u64 {
    Label { stamp, is_deleted }.word()
}

/// Words with their length before and their sum behind them.
struct Writer(Vec<u8>);

impl Writer {
    fn put(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.put(text.len() as u64);
        self.0.extend(text);
        self.0.resize(self.0.len().next_multiple_of(WORD_LENGTH), 0);
    }

    fn seal(mut self) -> Vec<u8> {
        let length = self.0.len() as u64;
        if let Some(first) = self.0.first_chunk_mut() {
            *first = length.to_le_bytes();
        }
        let sum = u64::from(crc32fast::hash(&self.0));
        self.put(sum);
        self.0
    }
}

/// Words that were sealed.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn open(copy: &'a [u8]) -> Option<Self> {
        let length = u64::from_le_bytes(*copy.first_chunk()?);
        let length = usize::try_from(length).ok()?;
        let (said, rest) = copy.split_at_checked(length)?;
        let sum = u64::from_le_bytes(*rest.first_chunk()?);
        let is_whole = length >= WORD_LENGTH && u64::from(crc32fast::hash(said)) == sum;
        is_whole.then(|| Self(&said[WORD_LENGTH..]))
    }

    fn take(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// A number of things that are still to come, of a word at least each.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.take()?).ok()?;
        (count <= self.0.len() / WORD_LENGTH).then_some(count)
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.take()?).ok()?;
        let (padded, rest) = self
            .0
            .split_at_checked(length.checked_next_multiple_of(WORD_LENGTH)?)?;
        self.0 = rest;
        padded.get(..length).map(<[u8]>::to_vec)
    }

    fn redo(&mut self) -> Option<Redo> {
        let at = Address {
            server: ServerId(u16::try_from(self.take()?).ok()?),
            offset: self.take()?,
        };
        let word = self.take()?;
        let versions = usize::try_from(word & !OVERFLOW).ok()?;
        let value_max = usize::try_from(self.take()?).ok()?;
        let key_max = usize::try_from(self.take()?).ok()?;
        let mut layout = Layout::keyed(versions, value_max, key_max).ok()?;
        if word & OVERFLOW > 0 {
            layout = layout.with_overflow();
        }
        let generation = self.take()?;
        let key = self.text().filter(|key| key.len() <= key_max)?;
        let Label { stamp, is_deleted } = Label::of_word(self.take()?);
        let value = self.text().filter(|value| value.len() <= value_max)?;
        Some(Redo {
            at,
            layout,
            generation,
            key,
            former: stamp,
            value: (!is_deleted).then_some(value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::ThreadId;

    fn entry() -> Entry {
        let stamp = |thread, sequence| Stamp {
            thread: ThreadId::new(thread).unwrap(),
            sequence,
        };
        let redo = |offset, value: Option<&[u8]>| Redo {
            at: Address {
                server: ServerId(7),
                offset,
            },
            layout: Layout::keyed(3, 100, 9).unwrap().with_overflow(),
            generation: 5,
            key: b"a key".to_vec(),
            former: stamp(1, 2),
            value: value.map(<[u8]>::to_vec),
        };
        Entry {
            stamp: stamp(2, 9),
            seen: Snapshot::of_numbers(vec![1, 2, 9]),
            redo: vec![
                redo(64, Some(b"a value")),
                redo(128, None),
                redo(192, Some(b"")),
            ],
        }
    }

    #[test]
    fn what_is_logged_is_read() {
        let entry = entry();
        let mut copy = entry.encode();
        assert_eq!(Entry::parse(&copy), Some(entry.clone()));
        copy.extend([0xff; 64]); // the end of a longer one before it
        assert_eq!(Entry::parse(&copy), Some(entry));
        assert_eq!(Entry::parse(&[0; 256]), None);
        assert_eq!(Entry::parse(&[]), None);
    }

    #[test]
    fn a_half_written_entry_is_none() {
        let (old, new) = (entry().encode(), {
            let mut newer = entry();
            newer.stamp.sequence += 1;
            newer.redo[0].value = Some(b"a wider value".to_vec());
            newer.encode()
        });
        let mut before = old.clone();
        before.resize(new.len(), 0);
        let whole = [Entry::parse(&old), Entry::parse(&new)];
        for word in 0..new.len() / WORD_LENGTH {
            for (base, other) in [(&before, &new), (&new, &before)] {
                let mut mixed = base.clone();
                let span = word * WORD_LENGTH..(word + 1) * WORD_LENGTH;
                mixed[span.clone()].copy_from_slice(&other[span]);
                let found = Entry::parse(&mixed);
                assert!(found.is_none() || whole.contains(&found), "word {word}");
            }
        }
    }

    #[test]
    fn no_bit_flips_unseen() {
        let whole = entry().encode();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Entry::parse(&damaged), None, "bit {bit}");
        }
    }

    #[test]
    fn a_transaction_that_does_not_fit_is_refused() {
        let place = Address {
            server: ServerId(0),
            offset: 0,
        };
        let log = Log::new(vec![place], 128).unwrap();
        assert!(matches!(log.write(&entry()), Err(Abort::TooLarge(_, 128))));
        assert!(Log::new(Vec::new(), 128).is_none());
        assert!(Log::new(vec![place], 4).is_none());
    }
}
