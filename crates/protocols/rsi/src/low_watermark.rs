//! Which snapshots nobody uses any more, so that what only they could see may go.
//!
//! A snapshot is proposed as the *bound*, under the next number, in a record that all know. Every
//! thread that takes a place looks at it before its first transaction, and whoever has one looks
//! now and then. Looking at a bound is seeing it: no snapshot that the thread takes later lacks
//! anything of it. A thread *heeds* a bound by writing its number into a word of its own, when
//! nobody goes on with an older snapshot that was taken through it. When all who have places heed a
//! bound, it is *agreed*: every snapshot that is in use, or ever will be, includes it.
//!
//! ```text
//! BOUND: a record with a number and a snapshot | the number that each thread heeds
//! ```
//!
//! Whoever has proposed looks who has a place only after the bound is committed. One that takes a
//! place after that look finds this bound or a later one, so a place that was free may be left out;
//! and the word of a place whose owner is another by now says of the new one, too, that it has
//! found it. Words that are lost with a server are written again; till then nothing is agreed.
//!
//! Nobody waits for a bound. A snapshot that does not include one that its process heeds is too
//! old, and whatever is asked under it says so: how old snapshots may become is for those to say
//! who heed (reference: rack, §5.2: past the longest life of a transaction, SnapshotTooOld).

use manxdb_fabric::{Address, Operation, OperationOutcome, WORD, WORD_LENGTH};

use crate::block::Layout;
use crate::read::Seen;
use crate::vector::Snapshot;
use crate::version::ThreadId;

/// Where the bound and those who heed it are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LowWatermark {
    record: Address,
    words: Address,
    threads: u16,
    layout: Layout,
}

/// A snapshot that all snapshots in use are to include.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The bound's ordinal; 0: none was ever proposed.
    pub number: u64,
    /// What all see.
    pub snapshot: Snapshot,
}

impl LowWatermark {
    /// For so many threads, in memory that is all zero at first: where the record is, and where the
    /// words are. None: there are more than a record has room for.
    #[must_use]
    pub fn new(record: Address, words: Address, threads: u16) -> Option<Self> {
        let layout = Self::layout(threads)?;
        let after = |at: Address, bytes| at.offset.saturating_add(bytes);
        assert!(
            record.server != words.server
                || after(record, layout.bytes() as u64) <= words.offset
                || after(words, Self::bytes(threads)) <= record.offset,
            "no thread heeds a bound by writing over it: {record} and {words}"
        );
        Some(Self {
            record,
            words,
            threads,
            layout,
        })
    }

    /// How the record lies in memory.
    #[must_use]
    pub fn layout(threads: u16) -> Option<Layout> {
        Layout::new(2, (1 + usize::from(threads)) * WORD_LENGTH).ok()
    }

    /// Bytes of the words.
    #[must_use]
    pub const fn bytes(threads: u16) -> u64 {
        threads as u64 * WORD
    }

    pub(crate) fn record(self) -> (Address, Layout) {
        (self.record, self.layout)
    }

    /// A thread heeds a bound.
    pub(crate) fn advance_watermark(self, thread: ThreadId, bound: &Bound) -> Operation {
        assert!(
            thread.number() < self.threads,
            "there is a word for thread {thread}"
        );
        Operation::Write {
            at: self.words.plus(u64::from(thread.number()) * WORD),
            bytes: bound.number.to_le_bytes().to_vec(),
        }
    }

    /// Reads which bounds are heeded.
    pub(crate) fn read(self) -> Operation {
        Operation::Read {
            at: self.words,
            bytes: Self::bytes(self.threads),
        }
    }

    /// Whether threads heed a bound or a later one, by what was read.
    pub(crate) fn is_acknowledged(
        bound: &Bound,
        by: &[ThreadId],
        outcome: Option<&OperationOutcome>,
    ) -> bool {
        let Some(OperationOutcome::Read(copy)) = outcome else {
            return false;
        };
        assert!(
            bound.number > 0,
            "a bound that is to be heeded was proposed"
        );
        let (words, _) = copy.as_chunks::<WORD_LENGTH>();
        let heeds = |thread: &ThreadId| {
            let word = words.get(usize::from(thread.number()));
            word.is_some_and(|word| u64::from_le_bytes(*word) >= bound.number)
        };
        by.iter().all(heeds)
    }
}

impl Bound {
    /// None was ever proposed.
    #[must_use]
    pub fn none(threads: u16) -> Self {
        Self {
            number: 0,
            snapshot: Snapshot::empty(threads),
        }
    }

    /// What the record says; none if it says nothing yet.
    pub(crate) fn of(seen: &Seen) -> Option<Self> {
        let (words, _) = seen.value()?.as_chunks::<WORD_LENGTH>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let number = words.next()?;
        let snapshot = Snapshot::of_numbers(words.collect());
        Some(Self { number, snapshot })
    }

    pub(crate) fn value(&self) -> Vec<u8> {
        let numbers = self.snapshot.numbers().iter();
        let words = std::iter::once(&self.number).chain(numbers);
        words.flat_map(|word| word.to_le_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::ServerId;

    use super::*;

    fn at(offset: u64) -> Address {
        let server = ServerId(1);
        Address { server, offset }
    }

    #[test]
    fn the_words_of_a_bound_lie_beside_its_record() {
        let bytes = LowWatermark::layout(4).unwrap().bytes();
        assert!(LowWatermark::new(at(0), at(bytes as u64), 4).is_some());
        assert!(LowWatermark::new(at(32), at(0), 4).is_some());
    }

    #[test]
    #[should_panic(expected = "by writing over it")]
    fn no_word_lies_in_the_record_of_the_bound() {
        let _ = LowWatermark::new(at(0), at(8), 4);
    }
}
