//! What a thread is about to install, where it survives the thread.
//!
//! Before anything is installed, a transaction is written to the thread's log on several servers:
//! from then on it is committed, whoever dies (reference: rack, §2.3, I4). A thread runs one
//! transaction at a time and publishes it before it begins the next, so a log of one entry would do:
//! one that is half written over the one before has a wrong sum; the one before is published, and of
//! the new one nothing is installed.
//!
//! **Rings.** Where a log archiver writes what is published to disk ([`crate::drain`]), a log is a ring of
//! a few slots, so that threads need not wait for it each time. The sequences of what a thread logs
//! have no gaps: a session counts what it commits, whoever closes a place takes the number behind the
//! last one, and the next owner begins behind that. So the transaction of a sequence is in the slot
//! of this number modulo their count, and it is known which sequences are to be there.
//!
//! | who logs | may write over what is in a slot because |
//! |---|---|
//! | a transaction | its session has seen that the log archiver has written it ([`crate::kept`]); two slots are left free behind it |
//! | the first closings behind a transaction | these are those two |
//! | one more closing | it stands for all closings in a row before it, and leaves the last one where it is |
//!
//! So nobody who closes the dead ever waits for the log archiver, how often it may be.

mod entry;
mod fetch;

use manxdb_core::check::deep;
use manxdb_fabric::{Address, Operation, OperationOutcome, WORD_LENGTH};

pub use self::entry::{LogEntry, Redo};
pub(crate) use self::entry::{Reader, Writer};
pub(crate) use self::fetch::Fetch;
use crate::abort::Abort;

/// Where a thread logs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Log {
    /// The same on each of these, of which one must survive.
    places: Vec<Address>,
    /// Room of a slot, a multiple of a word.
    bytes: u64,
    /// Slots at each, one behind the other.
    slots: u64,
}

impl Log {
    /// A ring has at least so many slots.
    pub const RING_MIN: u64 = 4;
    /// Slots that a ring leaves free for closings.
    pub(crate) const SPARE: u64 = 2;

    /// A ring has slots for transactions, too.
    const HAS_ROOM: () = assert!(Self::RING_MIN > Self::SPARE, "a ring has slots to log in");

    /// A log of so many slots at each of some places, one behind the other; each has so many bytes,
    /// into which a transaction must fit. One slot where nobody writes logs to disk, otherwise at
    /// least [`Log::RING_MIN`]. None without a place, with two or three slots, or where no entry
    /// could be written in one piece.
    #[must_use]
    pub fn new(places: Vec<Address>, bytes: u64, slots: u64) -> Option<Self> {
        let () = Self::HAS_ROOM;
        let is_fine = !places.is_empty()
            && bytes.is_multiple_of(WORD_LENGTH as u64)
            && bytes > 0
            && bytes <= manxdb_fabric::operation::BYTES_MAX
            && (slots == 1 || slots >= Self::RING_MIN);
        is_fine.then_some(Self {
            places,
            bytes,
            slots,
        })
    }

    /// Bytes of a slot.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Slots at each place.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Places that have it.
    pub(crate) fn places(&self) -> &[Address] {
        &self.places
    }

    /// Copies of slots that [`Log::all`] names.
    pub(crate) fn count(&self) -> usize {
        self.places.len() * self.each()
    }

    /// Slots at each place, as a length.
    fn each(&self) -> usize {
        usize::try_from(self.slots).unwrap_or(usize::MAX)
    }

    /// Where the slot of a number is at one of its places, and its bytes.
    pub(crate) fn slot(&self, place: Address, number: u64) -> (Address, u64) {
        assert!(
            self.places.contains(&place),
            "a slot is at one of the log's places: {place}"
        );
        (place.plus(number % self.slots * self.bytes), self.bytes)
    }

    /// Writes an entry everywhere.
    ///
    /// # Errors
    /// [`Abort::TooLarge`].
    pub(crate) fn write(&self, entry: &LogEntry) -> Result<Vec<Operation>, Abort> {
        let bytes = entry.encode();
        if bytes.len() as u64 > self.bytes {
            return Err(Abort::TooLarge(bytes.len() as u64, self.bytes));
        }
        if deep() {
            let read = LogEntry::parse(&bytes);
            assert_eq!(
                read.as_ref(),
                Some(entry),
                "what is logged is read as it was"
            );
        }
        let write = |place: &Address| {
            let (at, _) = self.slot(*place, entry.number());
            let bytes = bytes.clone();
            Operation::Write { at, bytes }
        };
        Ok(self.places.iter().map(write).collect())
    }

    /// Writes an entry where, by copies of all that [`Log::all`] names, it is not whole;
    /// everywhere without copies.
    pub(crate) fn complete(&self, entry: &LogEntry, copies: &[OperationOutcome]) -> Vec<Operation> {
        assert!(
            copies.is_empty() || copies.len() == self.count(),
            "a log is completed by copies of all of its slots: {} of {}",
            copies.len(),
            self.count()
        );
        let lacks = |outcome: &OperationOutcome| match outcome {
            OperationOutcome::Read(copy) => LogEntry::parse(copy).as_ref() != Some(entry),
            _ => false, // it is gone
        };
        let slot = usize::try_from(entry.number() % self.slots).unwrap_or(0);
        let own = copies.iter().skip(slot).step_by(self.each());
        let writes = self.write(entry);
        assert!(
            writes.is_ok(),
            "an entry that a log had, or that closes it, fits: {writes:?}"
        );
        let writes = writes.unwrap_or_default();
        let copies = own.map(Some).chain(std::iter::repeat(None));
        let pairs = writes.into_iter().zip(copies);
        let lacking = pairs.filter(|(_, outcome)| outcome.is_none_or(lacks));
        lacking.map(|(write, _)| write).collect()
    }

    /// Writes the newest entry of each slot where it is not whole.
    pub(crate) fn level(&self, copies: &[OperationOutcome]) -> Vec<Operation> {
        let slots = (0..self.each()).filter_map(|slot| {
            let own = copies.iter().skip(slot).step_by(self.each());
            newest(own)
        });
        slots
            .flat_map(|entry| self.complete(&entry, copies))
            .collect()
    }

    /// Where all slots are: those of the first place, of the second one, and so on.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Address, u64)> + '_ {
        let places = self.places.iter();
        places.flat_map(|place| (0..self.slots).map(|slot| self.slot(*place, slot)))
    }
}

/// Copies of all slots of all of these logs ([`Fetch`]), log by log.
pub(crate) fn by_log<'l>(
    logs: &'l [Log],
    mut copies: &'l [OperationOutcome],
) -> impl Iterator<Item = (&'l Log, &'l [OperationOutcome])> {
    logs.iter().map(move |log| {
        assert!(
            copies.len() >= log.count(),
            "there is a copy of each slot of each log"
        );
        let (own, rest) = copies.split_at(log.count());
        copies = rest;
        (log, own)
    })
}

/// The last transaction in copies of a log.
pub(crate) fn newest<'a>(
    copies: impl IntoIterator<Item = &'a OperationOutcome>,
) -> Option<LogEntry> {
    let entries = copies.into_iter().filter_map(|outcome| match outcome {
        OperationOutcome::Read(copy) => LogEntry::parse(copy),
        _ => None,
    });
    entries.max_by_key(|entry| entry.stamp.sequence)
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::ServerId;

    use super::*;
    use crate::vector::Snapshot;
    use crate::version::{Stamp, ThreadId};

    fn place(server: u16) -> Address {
        let server = ServerId(server);
        Address { server, offset: 64 }
    }

    fn stamp(sequence: u64) -> Stamp {
        let thread = ThreadId::FIRST;
        Stamp { thread, sequence }
    }

    fn closing(sequence: u64, last: Option<&LogEntry>) -> LogEntry {
        LogEntry::closing(stamp(sequence), Snapshot::of_numbers(vec![sequence]), last)
    }

    #[test]
    fn a_transaction_that_does_not_fit_is_refused() {
        let log = Log::new(vec![place(0)], 32, 1).unwrap();
        let refused = log.write(&closing(1, None));
        assert_eq!(refused, Err(Abort::TooLarge(56, 32)));
    }

    #[test]
    fn logs_that_cannot_be_are_refused() {
        assert!(Log::new(Vec::new(), 128, 1).is_none());
        assert!(Log::new(vec![place(0)], 4, 1).is_none());
        for (slots, is_fine) in [(0, false), (1, true), (2, false), (3, false), (4, true)] {
            let log = Log::new(vec![place(0)], 128, slots);
            assert_eq!(log.is_some(), is_fine, "{slots}");
        }
    }

    #[test]
    fn each_entry_has_its_slot_and_closings_in_a_row_have_two() {
        let log = Log::new(vec![place(0), place(1)], 128, 4).unwrap();
        let slots = |entry: &LogEntry| -> Vec<u64> {
            let writes = log.write(entry).unwrap().into_iter();
            writes.map(|write| (write.at().offset - 64) / 128).collect()
        };
        let mut last = closing(6, None);
        assert_eq!((last.from, slots(&last)), (6, vec![2, 2]));
        for (sequence, slot) in [(7, 3), (8, 2), (9, 3), (10, 2)] {
            last = closing(sequence, Some(&last));
            assert_eq!((last.from, slots(&last)), (6, vec![slot; 2]));
            assert!(last.covers(stamp(6)) && last.covers(stamp(sequence)));
            assert!(!last.covers(stamp(5)) && !last.covers(stamp(sequence + 1)));
        }
        // It is not behind what was last: there is none that it could stand for.
        assert_eq!(closing(12, Some(&last)).from, 12);
    }

    /// Copies as all that is read of a log whose writes these are.
    fn copies(log: &Log, writes: &[Operation]) -> Vec<OperationOutcome> {
        let all = log.all().map(|(at, bytes)| {
            let mut copy = vec![0; usize::try_from(bytes).unwrap()];
            for write in writes.iter().filter(|write| write.at() == at) {
                let Operation::Write { bytes, .. } = write else {
                    panic!("{write:?}");
                };
                copy[..bytes.len()].copy_from_slice(bytes);
            }
            OperationOutcome::Read(copy)
        });
        all.collect()
    }

    #[test]
    fn a_log_is_levelled_where_it_lacks_something() {
        let log = Log::new(vec![place(0), place(1), place(2)], 128, 4).unwrap();
        let (one, two) = (closing(1, None), closing(2, None));
        let (first, second) = (log.write(&one).unwrap(), log.write(&two).unwrap());
        let mut outcomes = copies(&log, &[&first[..1], &second[..2]].concat());
        let lacking = [&first[1..], &second[2..]].concat();
        assert_eq!(log.level(&outcomes), lacking);
        assert_eq!(newest(&outcomes), Some(two.clone()));
        assert_eq!(log.complete(&two, &outcomes), second[2..]);
        let gone = OperationOutcome::Failed(manxdb_fabric::Fault::Gone(ServerId(2)));
        outcomes[8..].fill(gone);
        assert_eq!(log.level(&outcomes), first[1..2]);
        assert_eq!(log.complete(&two, &[]), second);
    }
}
