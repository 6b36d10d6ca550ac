//! Looks on while things happen: what is noted, how places change handles, who is condemned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::Nanos;
use manxdb_fabric::{Address, ServerId, WORD_LENGTH};
use manxdb_rsi::{ClientSlot, Event, Map, Name, Owner, Stamp, ThreadId};
use manxdb_sim::SimTime;
use manxdb_sim::memory::Memory;

use super::plan::{ANNALS, Plan, SERVERS, THREADS, replicas};

/// What somebody is about when a server is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// A client slot was just taken at the primary.
    Join,
    /// A client slot is over.
    Reaping,
    /// The term has changed.
    Election,
    /// Owners are shut out after a loss.
    Restore,
}

pub struct Watch {
    plan: Plan,
    /// The map that may be used, by what is noted anywhere.
    pub map: Arc<Map>,
    /// Where the table was read last: another primary is another table.
    primary: Option<Address>,
    table: BTreeMap<ThreadId, ClientSlot>,
    term: u64,
    /// Who has become the owner of a place last.
    holders: BTreeMap<ThreadId, Owner>,
    /// Who was shut out where.
    pub fenced: BTreeSet<(u64, ServerId)>,
    /// Those who died, left, stood still, or of whom something was late.
    pub excused: BTreeSet<Owner>,
    /// When owners were killed, and when their places were free.
    pub died: BTreeMap<Owner, SimTime>,
    pub reaped: BTreeMap<Owner, SimTime>,
    /// When an epoch began last: leases count from then.
    began: SimTime,
    /// The longest time from a death, or from the beginning of an epoch after it, to a free place.
    pub longest_since: Nanos,
    /// What has happened since somebody asked.
    pub moments: BTreeSet<Moment>,
}

fn word(memory: &Memory, at: Address) -> u64 {
    u64::from_le_bytes(*memory.look(at, 8).first_chunk::<WORD_LENGTH>().unwrap())
}

impl Watch {
    pub fn new(plan: Plan) -> Self {
        Self {
            map: Arc::clone(&plan.chart.map),
            plan,
            primary: None,
            table: BTreeMap::new(),
            term: 0,
            holders: BTreeMap::new(),
            fenced: BTreeSet::new(),
            excused: BTreeSet::new(),
            died: BTreeMap::new(),
            reaped: BTreeMap::new(),
            began: SimTime::ZERO,
            longest_since: Nanos::ZERO,
            moments: BTreeSet::new(),
        }
    }

    pub fn excuse(&mut self, owner: Owner) {
        self.excused.insert(owner);
    }

    /// Where the table is now.
    pub fn primary(&self) -> ServerId {
        replicas(
            &self.map,
            self.plan.client_slots.client_slot(ThreadId::FIRST),
        )[0]
        .server
    }

    /// A process is an owner from now on. Whoever had the place is shut out by every server that
    /// is not lost; or it is itself, if it was slow.
    pub fn own(&mut self, owner: Owner) {
        let former = self.holders.get(&owner.thread).copied();
        if let Some(former) = former {
            let over = former.min(owner);
            let is_over = former != owner && self.is_out(over);
            assert!(is_over, "{former:?} and {owner:?} have the same place");
        }
        self.holders
            .insert(owner.thread, owner.max(former.unwrap_or(owner)));
    }

    fn is_out(&self, owner: Owner) -> bool {
        let client = Name::Owner(owner).client();
        let mut servers = self.map.servers();
        servers.all(|server| self.fenced.contains(&(client, server)))
    }

    /// What is noted, and how the table is.
    pub fn look(&mut self, memory: &Memory) {
        while let Some(event) = self.noted(memory) {
            self.map = Arc::new(self.map.after(event));
            if event.is_loss() {
                self.began = memory.now();
            }
        }
        let term = replicas(
            &self.map,
            self.plan.client_slots.client_slot(ThreadId::FIRST),
        )[0];
        let is_same = self.primary.replace(term) == Some(term);
        let base = Address {
            offset: term.offset - 32,
            ..term
        };
        let term = word(memory, base);
        if term != self.term {
            self.moments.insert(Moment::Election);
        }
        self.term = term;
        for thread in (0..THREADS).filter_map(ThreadId::new) {
            let at = replicas(&self.map, self.plan.client_slots.client_slot(thread))[0];
            let client_slot = ClientSlot::of_word(word(memory, at));
            let former = self
                .table
                .insert(thread, client_slot)
                .unwrap_or(ClientSlot::Free(0));
            if former != client_slot {
                self.note(thread, former, client_slot, is_same, memory.now());
            }
        }
    }

    /// The next event that is noted anywhere.
    fn noted(&self, memory: &Memory) -> Option<Event> {
        let offset = ANNALS + 16 * self.map.version() + 8;
        let note = |number| {
            let server = ServerId(number);
            word(memory, Address { server, offset })
        };
        let code = (0..SERVERS).map(note).find(|note| *note > 0)? - 1;
        let code = u16::try_from(code).unwrap();
        Some(if code < 1 << 15 {
            Event::Lost(ServerId(code))
        } else {
            Event::Filled(code & !(1 << 15))
        })
    }

    /// Words of a table only go up; whoever died is reaped when the place is somebody else's.
    fn note(
        &mut self,
        thread: ThreadId,
        former: ClientSlot,
        client_slot: ClientSlot,
        is_same: bool,
        now: SimTime,
    ) {
        let is_more = former.word() < client_slot.word();
        assert!(
            is_more || !is_same,
            "{thread} goes from {former:?} to {client_slot:?}"
        );
        match client_slot {
            ClientSlot::Taken(_) => self.moments.insert(Moment::Join),
            ClientSlot::Over(_) => self.moments.insert(Moment::Reaping),
            _ => false,
        };
        let (ClientSlot::Free(number) | ClientSlot::Taken(number)) = client_slot else {
            return;
        };
        let dead = self.died.iter();
        let dead = dead.filter(|(owner, _)| owner.thread == thread && owner.after < number);
        for (owner, died) in dead {
            if self.reaped.contains_key(owner) {
                continue;
            }
            self.reaped.insert(*owner, now);
            let since = now.since(self.began.max(*died));
            self.longest_since = self.longest_since.max(since);
        }
    }

    /// The longest time from a death to a place that is free.
    pub fn longest(&self) -> Nanos {
        let died = self.died.iter();
        let spans = died.filter_map(|(owner, died)| Some(self.reaped.get(owner)?.since(*died)));
        spans.max().unwrap_or_default()
    }

    /// In the end no place is anybody's, and all replicas of the table have at least what the
    /// primary has: what a guest had swapped that gave up may have come late to some.
    pub fn check_end(&self, memory: &Memory) {
        for thread in (0..THREADS).filter_map(ThreadId::new) {
            let at = replicas(&self.map, self.plan.client_slots.client_slot(thread));
            let words: Vec<u64> = at.iter().map(|at| word(memory, *at)).collect();
            let client_slot = ClientSlot::of_word(words[0]);
            assert!(
                matches!(client_slot, ClientSlot::Free(_)),
                "{thread}: {client_slot:?}"
            );
            let is_there = words.iter().all(|word| *word >= words[0]);
            assert!(is_there, "{thread}: {words:?}");
        }
        for owner in self.died.keys() {
            // Who was slow may have been over before it died.
            let client_slot = self.table.get(&owner.thread);
            let is_free =
                matches!(client_slot, Some(ClientSlot::Free(number)) if *number > owner.after);
            assert!(is_free, "{owner:?} is not reaped: {client_slot:?}");
        }
    }

    /// Whether a lock is nobody's by the vector.
    pub fn admits(&self, memory: &Memory, holder: Stamp) -> bool {
        let at = replicas(&self.map, vector_base())[0];
        let copy = memory.look(at, self.plan.vector.bytes());
        let (published, _) = self.plan.vector.parse(&copy);
        published.admits(holder)
    }
}

/// The vector is the second region.
fn vector_base() -> Address {
    Address {
        server: ServerId(Map::FIRST + 1),
        offset: 0,
    }
}
