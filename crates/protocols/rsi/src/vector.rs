//! What a transaction sees: one number for each thread.
//!
//! Each thread has a line in the vector: how many of its transactions are installed, and the
//! snapshot that the last one was made from. A reader takes the largest of everything. That is a
//! consistent cut whenever the lines were read (reference: rack, I6): each line's snapshot is one
//! by itself, it holds all that the line's own transactions had seen, and what two cuts hold
//! together is a cut again. Reading entries alone would not do: a reader may come by the line of
//! the one before, and by the line of the other after a transaction that depends on it.
//!
//! Lines are written by their threads alone, whole. A copy that is of two times has a wrong sum and
//! may be left out: what the others say is a cut without it. So a thread that died over its line
//! keeps nobody from beginning.

use manxdb_fabric::operation::BYTES_MAX;
use std::iter;
use std::sync::Arc;

use manxdb_fabric::{Address, Operation, WORD, WORD_LENGTH};

use crate::block::Torn;
use crate::version::{Stamp, ThreadId};

/// Where the vector is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Vector {
    /// Its first line.
    base: Address,
    /// Lines in it.
    threads: u16,
}

/// The versions that a transaction sees. Copies share what they hold: each read has one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Snapshot(Arc<[u64]>);

impl Snapshot {
    /// Nobody has written anything.
    #[must_use]
    pub fn empty(threads: u16) -> Self {
        Self(iter::repeat_n(0, usize::from(threads)).collect())
    }

    /// Everything that anybody will ever write.
    #[cfg(feature = "mutants")]
    pub(crate) fn of_everything(threads: u16) -> Self {
        Self(iter::repeat_n(u64::MAX, usize::from(threads)).collect())
    }

    /// How many of each thread's transactions are in it, by threads.
    #[must_use]
    pub fn numbers(&self) -> &[u64] {
        &self.0
    }

    /// The snapshot of such numbers, as [`Snapshot::numbers`] has said them.
    #[must_use]
    pub fn of_numbers(numbers: Vec<u64>) -> Self {
        Self(numbers.into())
    }

    /// Whether a version is in it.
    #[must_use]
    pub fn admits(&self, stamp: Stamp) -> bool {
        stamp.sequence <= self.of(stamp.thread)
    }

    /// How many of a thread's transactions are in it.
    #[must_use]
    pub fn of(&self, thread: ThreadId) -> u64 {
        self.0
            .get(usize::from(thread.number()))
            .copied()
            .unwrap_or(0)
    }

    /// Adds all that another one holds.
    pub fn join(&mut self, other: &Self) {
        assert_eq!(
            self.0.len(),
            other.0.len(),
            "snapshots of one vector have a number for each of its threads"
        );
        if !self.includes(other) {
            let own = Arc::make_mut(&mut self.0);
            join(own, other.0.iter().copied());
        }
    }

    /// Adds a version, and with it all earlier ones of its thread.
    pub fn add(&mut self, stamp: Stamp) {
        if self.admits(stamp) {
            return;
        }
        assert!(
            usize::from(stamp.thread.number()) < self.0.len(),
            "a version that is added is of a thread of the vector: {stamp}"
        );
        let own = Arc::make_mut(&mut self.0);
        if let Some(own) = own.get_mut(usize::from(stamp.thread.number())) {
            *own = stamp.sequence;
        }
    }

    /// Whether everything in another one is in this one.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        self.0
            .iter()
            .zip(&*other.0)
            .all(|(own, other)| own >= other)
    }
}

impl Vector {
    /// More lines than one operation reads.
    pub const THREADS_MAX: u16 = 256;

    /// One operation reads the longest vector.
    const FITS: () = assert!(
        (2 + Self::THREADS_MAX as u64) * WORD * Self::THREADS_MAX as u64 <= BYTES_MAX,
        "a vector is read by one operation"
    );

    /// A vector of so many threads, from an address on; none if there are none or too many.
    #[must_use]
    pub const fn new(base: Address, threads: u16) -> Option<Self> {
        let () = Self::FITS;
        if threads >= 1 && threads <= Self::THREADS_MAX {
            Some(Self { base, threads })
        } else {
            None
        }
    }

    /// Lines in it.
    #[must_use]
    pub const fn threads(self) -> u16 {
        self.threads
    }

    pub(crate) const fn base(self) -> Address {
        self.base
    }

    /// The same somewhere else.
    pub(crate) const fn based(self, base: Address) -> Self {
        Self { base, ..self }
    }

    /// Bytes of it.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.line() * self.threads as u64
    }

    /// Bytes of a line: its sequence, a snapshot, a sum.
    const fn line(self) -> u64 {
        (2 + self.threads as u64) * WORD
    }

    /// Reads all of it.
    #[must_use]
    pub fn read(self) -> Operation {
        Operation::Read {
            at: self.base,
            bytes: self.bytes(),
        }
    }

    /// Says that a thread's transactions up to one are installed, and what that one had seen.
    #[must_use]
    pub fn publish(self, stamp: Stamp, seen: &Snapshot) -> Operation {
        assert!(
            stamp.thread.number() < self.threads,
            "the vector has a line for thread {}",
            stamp.thread
        );
        let mut bytes = Vec::with_capacity((2 + seen.0.len()) * WORD_LENGTH);
        for number in iter::once(&stamp.sequence).chain(&*seen.0) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let sum = u64::from(crc32fast::hash(&bytes));
        bytes.extend_from_slice(&sum.to_le_bytes());
        assert_eq!(
            bytes.len() as u64,
            self.line(),
            "a line reaches to the next one, and not into it"
        );
        let place = u64::from(stamp.thread.number());
        Operation::Write {
            at: self.base.plus(self.line() * place),
            bytes,
        }
    }

    /// What a copy says, and of how many lines it is silent because they were being written.
    #[must_use]
    pub fn parse(self, bytes: &[u8]) -> (Snapshot, usize) {
        assert_eq!(bytes.len() as u64, self.bytes(), "a vector is read whole");
        let mut whole = vec![0; usize::from(self.threads)];
        let mut torn = 0;
        let line = usize::try_from(self.line()).unwrap_or(usize::MAX);
        for (number, line) in bytes.chunks(line).enumerate().take(whole.len()) {
            match parse_line(line) {
                Ok(Some((sequence, seen))) => {
                    join(&mut whole, seen);
                    join(whole.get_mut(number..).unwrap_or_default(), [sequence]);
                }
                Ok(None) => {}
                Err(Torn) => torn += 1,
            }
        }
        (Snapshot::of_numbers(whole), torn)
    }
}

/// Takes the larger of each two.
fn join(own: &mut [u64], other: impl IntoIterator<Item = u64>) {
    for (own, other) in own.iter_mut().zip(other) {
        *own = (*own).max(other);
    }
}

/// What a line says: how many transactions of its thread are installed, and what the last one had seen;
/// none if its thread has published nothing yet.
fn parse_line(line: &[u8]) -> Result<Option<(u64, impl Iterator<Item = u64>)>, Torn> {
    if line.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let (said, sum) = line.split_last_chunk::<WORD_LENGTH>().ok_or(Torn)?;
    if u64::from(crc32fast::hash(said)) != u64::from_le_bytes(*sum) {
        return Err(Torn);
    }
    let (words, _) = said.as_chunks::<WORD_LENGTH>();
    let mut numbers = words.iter().map(|word| u64::from_le_bytes(*word));
    let sequence = numbers.next().ok_or(Torn)?;
    Ok(Some((sequence, numbers)))
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::ServerId;

    use super::*;

    fn vector() -> Vector {
        let base = Address {
            server: ServerId(0),
            offset: 64,
        };
        Vector::new(base, 3).unwrap()
    }

    fn stamp(thread: u16, sequence: u64) -> Stamp {
        Stamp {
            thread: ThreadId::new(thread).unwrap(),
            sequence,
        }
    }

    /// Does a write to a copy of the vector.
    fn put(copy: &mut [u8], operation: &Operation) {
        let Operation::Write { at, bytes } = operation else {
            panic!("{operation:?}");
        };
        let start = usize::try_from(at.offset - 64).unwrap();
        copy[start..start + bytes.len()].copy_from_slice(bytes);
    }

    #[test]
    fn who_sees_a_transaction_sees_what_it_had_seen() {
        let vector = vector();
        let mut copy = vec![0; usize::try_from(vector.bytes()).unwrap()];
        assert_eq!(vector.parse(&copy), (Snapshot::empty(3), 0));
        // Thread 1 has seen the second transaction of thread 0, whose own line is not there yet.
        let mut seen = Snapshot::empty(3);
        seen.add(stamp(0, 2));
        put(&mut copy, &vector.publish(stamp(1, 7), &seen));
        let (snapshot, _) = vector.parse(&copy);
        assert!(snapshot.admits(stamp(1, 7)) && snapshot.admits(stamp(0, 2)));
        assert!(!snapshot.admits(stamp(1, 8)) && !snapshot.admits(stamp(0, 3)));
        assert!(snapshot.admits(Stamp::NOTHING));
    }

    #[test]
    fn a_line_of_two_times_is_left_out() {
        let vector = vector();
        let mut before = vec![0; usize::try_from(vector.bytes()).unwrap()];
        put(
            &mut before,
            &vector.publish(stamp(2, 1), &Snapshot::empty(3)),
        );
        let mut after = before.clone();
        let mut seen = Snapshot::empty(3);
        seen.add(stamp(0, 4));
        put(&mut after, &vector.publish(stamp(2, 2), &seen));
        let differs = |word: &usize| before[word * 8..][..8] != after[word * 8..][..8];
        let words: Vec<usize> = (0..before.len() / 8).filter(differs).collect();
        assert_eq!(words.len(), 3);
        for choice in 1..(1 << words.len()) - 1 {
            let mut mixed = before.clone();
            for (bit, word) in words.iter().enumerate() {
                if choice >> bit & 1 == 1 {
                    mixed[word * 8..][..8].copy_from_slice(&after[word * 8..][..8]);
                }
            }
            assert_eq!(vector.parse(&mixed), (Snapshot::empty(3), 1), "{choice:b}");
        }
    }

    #[test]
    fn no_more_threads_than_one_operation_reads() {
        let base = vector().base;
        assert!(Vector::new(base, 0).is_none());
        assert!(Vector::new(base, Vector::THREADS_MAX + 1).is_none());
        let largest = Vector::new(base, Vector::THREADS_MAX).unwrap();
        assert_eq!(largest.read().check(1 << 30), Ok(()));
    }
}
