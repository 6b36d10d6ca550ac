//! How a database begins anew behind a cut, on memory that has its records.

use manxdb_fabric::Operation;

use crate::client_slots::{ClientSlot, ClientSlots};
use crate::durable_positions::DurablePositions;
use crate::vector::{Snapshot, Vector};
use crate::version::{Stamp, ThreadId};

/// Every thread is closed two numbers behind the cut, and nobody has its place. A lock that was
/// copied is of a transaction behind one that is in the cut, at most; so nobody has it
/// ([`Head`](crate::Head)).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bootstrap {
    closed: Snapshot,
}

impl Bootstrap {
    /// Behind a cut that has all that is in memory.
    #[must_use]
    pub fn behind(cut: &Snapshot) -> Self {
        let closed = cut.numbers().iter();
        let closed = closed.map(|number| (number + 2).min(Stamp::SEQUENCE_MAX));
        Self {
            closed: Snapshot::of_numbers(closed.collect()),
        }
    }

    /// The cut with which it begins: all of it is published, and counts as written and synced. The
    /// first batch is behind it.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.closed
    }

    /// Writes the vector, the table of places, and what the log archiver says, into memory that is all zero
    /// there. To be carried out as operations of regions are ([`crate::ReplicatedOp`]).
    #[must_use]
    pub fn operations(
        &self,
        vector: Vector,
        client_slots: ClientSlots,
        kept: DurablePositions,
    ) -> Vec<Operation> {
        let count = vector.threads();
        assert_eq!(
            self.closed.numbers().len(),
            usize::from(count),
            "a cut has a number for each thread of the vector"
        );
        assert!(
            client_slots.threads() == count && kept.threads() == count,
            "the table and the positions are of the vector's {count} threads"
        );
        let threads = (0..count).filter_map(ThreadId::new);
        let stamps = threads.map(|thread| Stamp {
            thread,
            sequence: self.closed.of(thread),
        });
        let each = stamps.flat_map(|stamp| {
            let free = Operation::Write {
                at: client_slots.client_slot(stamp.thread),
                bytes: ClientSlot::Free(stamp.sequence)
                    .word()
                    .to_le_bytes()
                    .to_vec(),
            };
            [vector.publish(stamp, &self.closed), free]
        });
        each.chain([kept.publish(&self.closed, &self.closed)])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::{Address, ServerId};

    use super::*;

    #[test]
    fn all_locks_that_may_have_been_copied_are_nobodys() {
        let cut = Snapshot::of_numbers(vec![7, 0, Stamp::SEQUENCE_MAX]);
        let anew = Bootstrap::behind(&cut);
        assert_eq!(anew.snapshot().numbers(), [9, 2, Stamp::SEQUENCE_MAX]);
        let at = |offset| {
            let server = ServerId(0);
            Address { server, offset }
        };
        let (vector, client_slots) = (
            Vector::new(at(0), 3).unwrap(),
            ClientSlots::new(at(1024), 3),
        );
        let kept = DurablePositions::new(at(2048), 3);
        let mut memory = vec![0; 4096];
        for operation in anew.operations(vector, client_slots, kept) {
            let Operation::Write { at, bytes } = operation else {
                panic!("{operation:?}");
            };
            let at = usize::try_from(at.offset).unwrap();
            memory[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        let lines = usize::try_from(vector.bytes()).unwrap();
        assert_eq!(vector.parse(&memory[..lines]), (anew.closed.clone(), 0));
        let positions = usize::try_from(kept.bytes()).unwrap();
        let words = kept.parse(&memory[2048..2048 + positions]);
        assert_eq!(words, (anew.closed.clone(), anew.closed.clone()));
        let table = usize::try_from(client_slots.bytes()).unwrap();
        let look = client_slots.parse(&memory[1024..1024 + table]);
        let found: Vec<ClientSlot> = look.chairs.iter().map(|chair| chair.client_slot).collect();
        let free = anew.closed.numbers().iter().copied().map(ClientSlot::Free);
        assert_eq!(found, free.collect::<Vec<_>>());
    }
}
