//! A batch as it lies in a file.
//!
//! ```text
//! LENGTH | FORMATION | NUMBER | cut | COUNT | transactions | SUM
//! ```
//!
//! Words of eight bytes, little-endian. LENGTH is that of all of it in bytes; SUM is the XXH3 of all
//! before it.

use manxdb_core::check::deep;
use manxdb_fabric::WORD_LENGTH;
use twox_hash::XxHash3_64;

use crate::log::{LogEntry, Reader, Writer};
use crate::vector::Snapshot;

/// What was published between the batch before and a cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Batch {
    /// Of which database, as it was formed: each has another number.
    pub formation: u64,
    /// The batch's ordinal in that formation.
    pub number: u64,
    /// All of this is in this batch, or in one before.
    pub cut: Snapshot,
    /// What is in this one ([`crate::drain::Drained`]).
    pub entries: Vec<LogEntry>,
}

impl Batch {
    /// Bytes at the beginning of a batch that say how long it is.
    pub const HEAD: usize = WORD_LENGTH;

    /// As it lies in a file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut words = Writer(vec![0; Self::HEAD]);
        words.put(self.formation);
        words.put(self.number);
        words.snapshot(&self.cut);
        words.put(self.entries.len() as u64);
        for entry in &self.entries {
            entry.put(&mut words);
        }
        let Writer(mut bytes) = words;
        assert!(
            bytes.len().is_multiple_of(WORD_LENGTH),
            "a batch is made of words: {} bytes",
            bytes.len()
        );
        let length = (bytes.len() + WORD_LENGTH) as u64;
        if let Some(head) = bytes.first_chunk_mut() {
            *head = length.to_le_bytes();
        }
        let sum = XxHash3_64::oneshot(&bytes);
        bytes.extend(sum.to_le_bytes());
        assert_eq!(bytes.len() as u64, length, "a batch is as long as it says");
        if deep() {
            let read = Self::decode(&bytes);
            let is_same = read.is_some_and(|(read, length)| read == *self && length == bytes.len());
            assert!(is_same, "a batch is read as it was written");
        }
        bytes
    }

    /// How long a batch that begins so is, in bytes, if it is one.
    #[must_use]
    pub const fn length(head: [u8; Self::HEAD]) -> u64 {
        u64::from_le_bytes(head)
    }

    /// The batch that bytes begin with, and how many of them it takes; none: it is cut off, or
    /// damaged.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let length = usize::try_from(Self::length(*bytes.first_chunk()?)).ok()?;
        let (said, sum) = bytes.get(..length)?.split_last_chunk::<WORD_LENGTH>()?;
        if XxHash3_64::oneshot(said) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut words = Reader(said.get(Self::HEAD..)?);
        let formation = words.take()?;
        let number = words.take()?;
        let cut = words.snapshot()?;
        let count = words.count()?;
        let entries = (0..count).map(|_| LogEntry::take(&mut words));
        let entries = entries.collect::<Option<_>>()?;
        let batch = Self {
            formation,
            number,
            cut,
            entries,
        };
        words.0.is_empty().then_some((batch, length))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use manxdb_fabric::{Address, ServerId};

    use super::*;
    use crate::block::Layout;
    use crate::log::Redo;
    use crate::version::{Stamp, ThreadId};

    pub(in crate::drain) fn stamp(thread: u16, sequence: u64) -> Stamp {
        let thread = ThreadId::new(thread).unwrap();
        Stamp { thread, sequence }
    }

    /// A transaction that writes its number into a record.
    pub(in crate::drain) fn entry(own: Stamp, seen: &[u64], at: u64, former: Stamp) -> LogEntry {
        let mut seen = Snapshot::of_numbers(seen.to_vec());
        seen.add(own);
        let redo = Redo {
            at: Address {
                server: ServerId(3),
                offset: 64 * at,
            },
            layout: Layout::keyed(2, 40, 8).unwrap(),
            generation: 7,
            key: b"key".to_vec(),
            former,
            value: Some(own.sequence.to_le_bytes().to_vec()),
        };
        LogEntry {
            stamp: own,
            from: own.sequence,
            seen,
            redo: vec![redo],
        }
    }

    fn batch() -> Batch {
        Batch {
            formation: 0x1234_5678_9abc_def0,
            number: 3,
            cut: Snapshot::of_numbers(vec![5, 0, 9]),
            entries: vec![
                entry(stamp(0, 5), &[4, 0, 8], 1, Stamp::NOTHING),
                entry(stamp(2, 9), &[5, 0, 8], 1, stamp(0, 5)),
            ],
        }
    }

    #[test]
    fn a_batch_is_read_as_it_was_written() {
        let batch = batch();
        let mut bytes = batch.encode();
        let length = bytes.len();
        assert_eq!(Batch::length(*bytes.first_chunk().unwrap()), length as u64);
        assert_eq!(Batch::decode(&bytes), Some((batch.clone(), length)));
        bytes.extend([0xff; 20]);
        assert_eq!(Batch::decode(&bytes), Some((batch.clone(), length)));
        let empty = Batch {
            entries: Vec::new(),
            ..batch
        };
        let bytes = empty.encode();
        assert_eq!(Batch::decode(&bytes), Some((empty, bytes.len())));
    }

    #[test]
    fn a_batch_that_is_cut_off_is_none() {
        let bytes = batch().encode();
        for length in 0..bytes.len() {
            assert_eq!(Batch::decode(&bytes[..length]), None, "{length} bytes");
            // The rest of the file may have been there before.
            let mut rest = bytes[..length].to_vec();
            rest.resize(bytes.len() + 64, 0);
            assert_eq!(Batch::decode(&rest).is_some(), is_zero(&bytes[length..]));
        }
    }

    fn is_zero(bytes: &[u8]) -> bool {
        bytes.iter().all(|byte| *byte == 0)
    }

    #[test]
    fn no_bit_of_a_batch_flips_unseen() {
        let bytes = batch().encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            damaged.extend([0; 64]);
            assert_eq!(Batch::decode(&damaged), None, "bit {bit}");
        }
    }
}
