//! A transaction as it is logged, and as it is written to disk.

use manxdb_fabric::{Address, ServerId, WORD_LENGTH};

use crate::block::Layout;
use crate::change::Change;
use crate::vector::Snapshot;
use crate::version::{Label, Stamp};

/// In the number of versions of a layout with overflow areas.
const OVERFLOW: u64 = 1 << 32;

/// A transaction in a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogEntry {
    /// The version that it installs.
    pub stamp: Stamp,
    /// The first sequence that it stands for: its own, or that of the first of the closings in a row
    /// that it is the last of.
    pub from: u64,
    /// What its thread had seen, this version included.
    pub seen: Snapshot,
    /// The records that it writes; none: it is a closing.
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

impl LogEntry {
    pub(crate) fn of(stamp: Stamp, seen: &Snapshot, changes: &[Change]) -> Self {
        let of_thread = |change: &&Change| change.seen.stamp.thread == stamp.thread;
        assert!(
            changes
                .iter()
                .filter(of_thread)
                .all(|change| change.seen.stamp < stamp),
            "a thread's versions of a record follow one another: {stamp}"
        );
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
            from: stamp.sequence,
            seen: seen.clone(),
            redo: changes.iter().map(redo).collect(),
        }
    }

    /// The last entry of a thread that has died, behind what is last in its log: it writes nothing.
    pub(crate) fn closing(stamp: Stamp, seen: Snapshot, last: Option<&Self>) -> Self {
        assert_eq!(
            seen.of(stamp.thread),
            stamp.sequence,
            "a closing has seen itself, and nothing of its thread behind it"
        );
        let last = last.filter(|last| last.is_closing() && last.is_just_before(stamp));
        Self {
            stamp,
            from: last.map_or(stamp.sequence, |last| last.from),
            seen,
            redo: Vec::new(),
        }
    }

    /// Whether it closes a thread's place, and writes nothing.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.redo.is_empty()
    }

    fn is_just_before(&self, stamp: Stamp) -> bool {
        self.stamp.thread == stamp.thread && self.stamp.sequence + 1 == stamp.sequence
    }

    /// Whether it says what became of a sequence of its thread.
    pub(crate) fn covers(&self, stamp: Stamp) -> bool {
        let numbers = self.from..=self.stamp.sequence;
        self.stamp.thread == stamp.thread && numbers.contains(&stamp.sequence)
    }

    /// Of its slot, modulo the slots of its log: its sequence; closings in a row take turns in the
    /// first two that they have.
    pub(crate) fn number(&self) -> u64 {
        assert!(
            self.from <= self.stamp.sequence,
            "an entry stands for sequences up to its own: from {} to {}",
            self.from,
            self.stamp
        );
        let behind = self.stamp.sequence - self.from;
        self.from + behind % 2
    }

    /// Length, stamp, first sequence, snapshot, records, sum: words, little-endian.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut words = Writer(vec![0; WORD_LENGTH]);
        self.put(&mut words);
        words.seal()
    }

    /// The same without length and sum.
    pub(crate) fn put(&self, words: &mut Writer) {
        words.put(label(self.stamp, false));
        words.put(self.from);
        words.snapshot(&self.seen);
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
    }

    /// The entry in a copy of a log; none if there is none, or not a whole one.
    pub(crate) fn parse(copy: &[u8]) -> Option<Self> {
        Self::take(&mut Reader::open(copy)?)
    }

    /// The same without length and sum.
    pub(crate) fn take(words: &mut Reader<'_>) -> Option<Self> {
        let stamp = Label::of_word(words.take()?).stamp;
        let from = words.take()?;
        let seen = words.snapshot()?;
        let records = words.count()?;
        let redo = (0..records).map(|_| words.redo()).collect::<Option<_>>()?;
        (from <= stamp.sequence).then_some(Self {
            stamp,
            from,
            seen,
            redo,
        })
    }
}

fn label(stamp: Stamp, is_deleted: bool) -> u64 {
    Label { stamp, is_deleted }.word()
}

/// Words with their length before and their sum behind them.
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    pub(crate) fn put(&mut self, word: u64) {
        self.0.extend(word.to_le_bytes());
    }

    pub(crate) fn snapshot(&mut self, snapshot: &Snapshot) {
        self.put(snapshot.numbers().len() as u64);
        for number in snapshot.numbers() {
            self.put(*number);
        }
    }

    fn text(&mut self, text: &[u8]) {
        self.put(text.len() as u64);
        self.0.extend(text);
        self.0.resize(self.0.len().next_multiple_of(WORD_LENGTH), 0);
    }

    fn seal(mut self) -> Vec<u8> {
        let length = self.0.len() as u64;
        assert!(
            length.is_multiple_of(WORD_LENGTH as u64),
            "an entry is made of words: {length} bytes"
        );
        if let Some(first) = self.0.first_chunk_mut() {
            *first = length.to_le_bytes();
        }
        let sum = u64::from(crc32fast::hash(&self.0));
        self.put(sum);
        self.0
    }
}

/// Words that were sealed.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn open(copy: &'a [u8]) -> Option<Self> {
        let length = u64::from_le_bytes(*copy.first_chunk()?);
        let length = usize::try_from(length).ok()?;
        let (said, rest) = copy.split_at_checked(length)?;
        let sum = u64::from_le_bytes(*rest.first_chunk()?);
        let is_whole = length >= WORD_LENGTH && u64::from(crc32fast::hash(said)) == sum;
        is_whole.then(|| Self(&said[WORD_LENGTH..]))
    }

    pub(crate) fn take(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    /// A number of things that are still to come, of a word at least each.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.take()?).ok()?;
        (count <= self.0.len() / WORD_LENGTH).then_some(count)
    }

    pub(crate) fn snapshot(&mut self) -> Option<Snapshot> {
        let threads = self.count()?;
        let numbers = (0..threads).map(|_| self.take()).collect::<Option<_>>()?;
        Some(Snapshot::of_numbers(numbers))
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

    fn entry() -> LogEntry {
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
        LogEntry {
            stamp: stamp(2, 9),
            from: 9,
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
        assert_eq!(LogEntry::parse(&copy), Some(entry.clone()));
        copy.extend([0xff; 64]); // the end of a longer one before it
        assert_eq!(LogEntry::parse(&copy), Some(entry));
        assert_eq!(LogEntry::parse(&[0; 256]), None);
        assert_eq!(LogEntry::parse(&[]), None);
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
        let whole = [LogEntry::parse(&old), LogEntry::parse(&new)];
        for word in 0..new.len() / WORD_LENGTH {
            for (base, other) in [(&before, &new), (&new, &before)] {
                let mut mixed = base.clone();
                let span = word * WORD_LENGTH..(word + 1) * WORD_LENGTH;
                mixed[span.clone()].copy_from_slice(&other[span]);
                let found = LogEntry::parse(&mixed);
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
            assert_eq!(LogEntry::parse(&damaged), None, "bit {bit}");
        }
    }
}
