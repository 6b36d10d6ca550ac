//! Versions that have left their records, for snapshots that are older than all that a record has.
//!
//! A record keeps a few versions; who writes one more pushes the oldest out. So that a snapshot which
//! sees that one can still read it, the writer first copies it to memory of its own, its *overflow
//! area*, a ring, and links it to the record, as those before it are linked to it (reference: rack,
//! §5.2; in the paper a thread of the memory server does this):
//!
//! ```text
//! record: LABELS, OLDER ──> RECORD | LABEL | LENGTH·SUM | OLDER ──> … | SUM | value
//! ```
//!
//! As in a record the value has a sum, which it brings with it, and what is said of it has one as well.
//!
//! **What may be overwritten.** The ring goes round, so that old versions go in the order in which
//! they came, whoever may want them. Who follows a link therefore looks whether what is there is a
//! version of that record, whole. If it is one that came there later, it is newer than what the link
//! was to: whoever wrote it had seen what the record had when the link was read. So a snapshot
//! that admits nothing of that does not admit it either (I6), and goes on to what is older, by its
//! link, or finds none: then it is too old, and never gets a wrong version.
//!
//! **What is not kept** breaks the chain there: a record of which a version was pushed out without
//! being kept, as by a recovery, has no link, for the next older one would be taken for it.

use manxdb_fabric::{Address, Operation, WORD_LENGTH};

use crate::block::{Layout, Leaving, sum_of};
use crate::directory::{PLACE, RecordAddress};
use crate::version::Label;

/// Words before the value.
const FIRST: usize = 5;
const _: () = assert!(
    (FIRST * WORD_LENGTH) as u64 <= PLACE,
    "what is said of a version lies in the line in which it begins"
);

/// Memory of one thread for versions that it pushes out of records of one layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Overflow {
    base: Address,
    layout: Layout,
    count: u64,
    next: u64,
}

impl Overflow {
    /// A ring in so many bytes from an address on, for records of a layout; none where it has no
    /// room for one version, or does not begin at a place.
    #[must_use]
    pub fn new(base: Address, bytes: u64, layout: Layout) -> Option<Self> {
        let count = bytes / stride(layout);
        RecordAddress::new(base)?;
        (count > 0).then_some(Self {
            base,
            layout,
            count,
            next: 0,
        })
    }

    /// The next place, for one more version of a record of this layout.
    pub(crate) fn take(&mut self, layout: Layout) -> Option<RecordAddress> {
        if layout != self.layout {
            return None;
        }
        assert!(
            self.next <= self.count,
            "the ring goes round: {} of {}",
            self.next,
            self.count
        );
        let number = self.next % self.count;
        self.next = number + 1;
        RecordAddress::new(self.base.plus(number * stride(layout)))
    }
}

/// Bytes from one version to the next.
fn stride(layout: Layout) -> u64 {
    bytes(layout).next_multiple_of(PLACE)
}

fn bytes(layout: Layout) -> u64 {
    (FIRST * WORD_LENGTH + layout.slot()) as u64
}

/// A version that has left its record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Older {
    /// Of which record.
    pub record: RecordAddress,
    /// Which.
    pub label: Label,
    /// Nothing for one that was deleted.
    pub value: Vec<u8>,
    /// The one before it.
    pub before: Option<RecordAddress>,
}

impl Older {
    pub(crate) fn read(layout: Layout, at: RecordAddress) -> Operation {
        Operation::Read {
            at: at.address(),
            bytes: bytes(layout),
        }
    }

    /// The version in a copy; none if there is none, or not a whole one.
    pub(crate) fn parse(copy: &[u8]) -> Option<Self> {
        let (said, value) = copy.split_at_checked(FIRST * WORD_LENGTH)?;
        let (said, sum) = said.split_last_chunk::<WORD_LENGTH>()?;
        if u64::from(sum_of(said)) != u64::from_le_bytes(*sum) {
            return None;
        }
        let (words, _) = said.as_chunks::<WORD_LENGTH>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let record = RecordAddress::parse(words.next()?)?;
        let label = Label::of_word(words.next()?);
        let about = words.next()?;
        let value = value.get(..usize::try_from(about & LENGTH).ok()?)?;
        if u64::from(sum_of(value)) != about >> LENGTH.count_ones() {
            return None;
        }
        Some(Self {
            record,
            label,
            value: value.to_vec(),
            before: RecordAddress::parse(words.next()?),
        })
    }
}

/// The half of a word that says how long a value is; the other half is its sum.
const LENGTH: u64 = (1 << 32) - 1;

/// Writes a version that leaves a record, and links it to the one that left before it.
pub(crate) fn keep(
    layout: Layout,
    record: RecordAddress,
    leaving: &Leaving<'_>,
    at: RecordAddress,
) -> Operation {
    assert_eq!(
        leaving.value.len(),
        leaving.length as usize,
        "a version is kept with all of its value"
    );
    assert_ne!(
        record, at,
        "a version is not kept in the record that it leaves"
    );
    let before = leaving.before.map_or(0, RecordAddress::word);
    let about = u64::from(leaving.length) | u64::from(leaving.sum) << LENGTH.count_ones();
    let words = [record.word(), leaving.label.word(), about, before];
    let mut bytes = Vec::with_capacity(FIRST * WORD_LENGTH + layout.slot());
    for word in words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    let sum = u64::from(sum_of(&bytes));
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(leaving.value);
    bytes.resize(bytes.len().next_multiple_of(WORD_LENGTH), 0);
    assert!(
        bytes.len() as u64 <= stride(layout),
        "a version does not reach into the next place: {} bytes",
        bytes.len()
    );
    Operation::Write {
        at: at.address(),
        bytes,
    }
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::ServerId;

    use super::*;
    use crate::version::{Stamp, ThreadId};

    fn at(offset: u64) -> Address {
        let server = ServerId(1);
        Address { server, offset }
    }

    fn layout() -> Layout {
        Layout::new(2, 20).unwrap().with_overflow()
    }

    #[test]
    fn what_is_kept_is_read_and_no_bit_of_it_flips_unseen() {
        let stamp = Stamp {
            thread: ThreadId::new(3).unwrap(),
            sequence: 9,
        };
        let place = |offset| RecordAddress::new(at(offset)).unwrap();
        for (is_deleted, before) in [(false, None), (true, Some(place(640)))] {
            let kept = Older {
                record: place(64),
                label: Label { stamp, is_deleted },
                value: vec![7; if is_deleted { 0 } else { 20 }],
                before,
            };
            let leaving = Leaving {
                label: kept.label,
                length: u32::try_from(kept.value.len()).unwrap(),
                sum: sum_of(&kept.value),
                value: &kept.value,
                before,
            };
            let Operation::Write { at: to, bytes } =
                keep(layout(), kept.record, &leaving, place(128))
            else {
                panic!("a write");
            };
            assert_eq!(to, at(128));
            assert!(bytes.len() as u64 <= super::bytes(layout()));
            assert_eq!(Older::parse(&bytes), Some(kept.clone()));
            let padding = bytes.len() - kept.value.len() - FIRST * WORD_LENGTH;
            for bit in 0..(bytes.len() - padding) * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(Older::parse(&damaged), None, "bit {bit}");
            }
        }
        assert_eq!(Older::parse(&[]), None);
        assert_eq!(Older::parse(&[0; 128]), None);
    }

    #[test]
    fn a_ring_goes_round_inside_its_memory() {
        let bytes = 3 * stride(layout()) + 8;
        let mut ring = Overflow::new(at(64), bytes, layout()).unwrap();
        let mut take = || ring.take(layout()).unwrap().address().offset;
        let taken: Vec<u64> = (0..4).map(|_| take()).collect();
        let next = stride(layout());
        assert_eq!(taken, [64, 64 + next, 64 + 2 * next, 64]);
        let other = Layout::new(2, 8).unwrap().with_overflow();
        assert_eq!(ring.take(other), None);
        assert_eq!(Overflow::new(at(64), 8, layout()), None);
        assert_eq!(Overflow::new(at(72), bytes, layout()), None);
    }
}
