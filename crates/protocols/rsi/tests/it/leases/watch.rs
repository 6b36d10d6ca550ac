//! Looks on while things happen: how places change handles, what the vector says, who is condemned.

use std::collections::{BTreeMap, BTreeSet};

use manxdb_core::Nanos;
use manxdb_fabric::{Address, ServerId, WORD_LENGTH};
use manxdb_rsi::{ClientSlot, ClientSlots, Head, Owner, Snapshot, Stamp, ThreadId, Vector};
use manxdb_sim::SimTime;
use manxdb_sim::memory::Memory;

use crate::common::record;

pub struct Watch {
    client_slots: ClientSlots,
    vector: Vector,
    records: u64,
    table: BTreeMap<ThreadId, ClientSlot>,
    published: Snapshot,
    /// Those who have begun to keep their leases,
    keeping: BTreeSet<Owner>,
    /// and who died, left, stood still, or of whom something was late: these may be condemned.
    excused: BTreeSet<Owner>,
    /// When their places were freed.
    pub reaped: BTreeMap<Owner, SimTime>,
    /// When owners were killed.
    pub died: BTreeMap<Owner, SimTime>,
    now: SimTime,
}

/// Where the vector and the table are on the first server.
pub const VECTOR: u64 = 0;
pub const SEATS: u64 = 900 << 10;

pub fn place(offset: u64) -> Address {
    let server = ServerId(0);
    Address { server, offset }
}

fn word(memory: &Memory, at: Address) -> u64 {
    u64::from_le_bytes(*memory.look(at, 8).first_chunk::<WORD_LENGTH>().unwrap())
}

impl Watch {
    pub fn new(client_slots: ClientSlots, vector: Vector, records: u64) -> Self {
        Self {
            client_slots,
            vector,
            records,
            table: BTreeMap::new(),
            published: Snapshot::empty(vector.threads()),
            keeping: BTreeSet::new(),
            excused: BTreeSet::new(),
            reaped: BTreeMap::new(),
            died: BTreeMap::new(),
            now: SimTime::ZERO,
        }
    }

    pub fn keep(&mut self, owner: Owner) {
        self.keeping.insert(owner);
    }

    pub fn excuse(&mut self, owner: Owner) {
        self.excused.insert(owner);
    }

    fn threads(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.client_slots.threads()).map(|number| ThreadId::new(number).unwrap())
    }

    /// The longest time from a death to a place that is free.
    pub fn longest(&self) -> Nanos {
        let freed = |owner| self.reaped.get(owner).copied();
        let died = self.died.iter();
        let spans = died.filter_map(|(owner, died)| Some(freed(owner)?.since(*died)));
        spans.max().unwrap_or_default()
    }

    pub fn look(&mut self, memory: &Memory) {
        self.now = memory.now();
        for thread in self.threads() {
            let client_slot =
                ClientSlot::of_word(word(memory, self.client_slots.client_slot(thread)));
            let former = self
                .table
                .insert(thread, client_slot)
                .unwrap_or(ClientSlot::Free(0));
            if former != client_slot {
                self.note(thread, former, client_slot);
            }
        }
        let copy = memory.look(place(VECTOR), self.vector.bytes());
        let (published, torn) = self.vector.parse(&copy);
        if torn == 0 {
            assert!(
                published.includes(&self.published),
                "the vector goes back from {:?} to {published:?}",
                self.published
            );
            self.published = published;
        }
    }

    /// A place goes from hand to hand as it should, and each of its owners is reaped once.
    fn note(&mut self, thread: ThreadId, former: ClientSlot, client_slot: ClientSlot) {
        match (former, client_slot) {
            (ClientSlot::Free(before), ClientSlot::Taken(after)) if before == after => {}
            (ClientSlot::Taken(before), ClientSlot::Over(after)) if before == after => {
                let owner = Owner { thread, after };
                let is_innocent = self.keeping.contains(&owner) && !self.excused.contains(&owner);
                assert!(
                    !is_innocent,
                    "{owner:?} is condemned, and shows that it lives"
                );
            }
            (ClientSlot::Over(after), ClientSlot::Free(next)) if next > after => {
                let former = self.reaped.insert(Owner { thread, after }, self.now);
                assert!(
                    former.is_none(),
                    "thread {thread} after {after} is reaped twice"
                );
            }
            _ => panic!("the place of thread {thread} goes from {former:?} to {client_slot:?}"),
        }
    }

    /// Locks with the transactions that hold them.
    pub fn locks(&self, memory: &Memory) -> Vec<Stamp> {
        let heads = (0..self.records).map(|place| Head::of_word(word(memory, record(place))));
        let holder = |head| match head {
            Head::Locked(holder) => Some(holder),
            Head::Free(_) => None,
        };
        heads.filter_map(holder).collect()
    }

    /// Of an owner that died two leases ago: its place is another's, and its locks are nobody's.
    pub fn check_recovered(&mut self, memory: &Memory, owner: Owner) {
        let client_slot = self.table.get(&owner.thread).copied();
        let Some(ClientSlot::Free(number) | ClientSlot::Taken(number) | ClientSlot::Over(number)) =
            client_slot
        else {
            panic!("{owner:?} had no place");
        };
        assert!(
            number > owner.after,
            "{owner:?} is not recovered: {client_slot:?}"
        );
        for holder in self.locks(memory) {
            if holder.thread == owner.thread && holder.sequence <= number {
                assert!(
                    self.published.admits(holder),
                    "a lock of {owner:?} is in the way: {holder}"
                );
            }
        }
    }

    /// In the end: no place is anybody's, no lock is in the way.
    pub fn check_end(&self, memory: &Memory) {
        for (thread, client_slot) in &self.table {
            assert!(
                matches!(client_slot, ClientSlot::Free(_)),
                "thread {thread}: {client_slot:?}"
            );
        }
        for holder in self.locks(memory) {
            assert!(self.published.admits(holder), "{holder} is in the way");
        }
    }
}
