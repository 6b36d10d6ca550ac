//! The part of a region's ledger that is about cross-region transactions ordered ahead: their
//! places, their numbers in the streams to other regions, and the marks that may be told.
//!
//! | invariant | |
//! |---|---|
//! | O1 | a transaction has one place, and a place one transaction |
//! | O2 | numbers of a region's stream follow each other without gaps, in the order of the ledger |
//! | O3 | no number is above those given |
//!
//! Places need not follow the order of the ledger: one that touches a region far away lies farther
//! ahead than those that are given after it.
//!
//! When a region is fenced ([`fence`](crate::fence)) what concerns it at the end of its stream or
//! behind is set aside: it stays where it is in the streams, of which all drop it, and gets a new
//! place, and new numbers, when the region is back.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_core::check::ensure;
use serde::{Deserialize, Serialize};

use crate::call::{CallId, Planned};
use crate::fence::{Placed, Return};
use crate::held::Held;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;

/// A transaction ordered ahead.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The transaction.
    pub planned: Arc<Planned>,
    /// The regions that it touches.
    pub touches: Vec<RegionId>,
    /// Its number in the stream to each other region that it goes to.
    pub numbers: BTreeMap<RegionId, u64>,
}

/// A transaction that waits for a new place.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SetAside {
    planned: Arc<Planned>,
    touches: Vec<RegionId>,
    /// The regions whose streams it goes on.
    to: Vec<RegionId>,
}

/// The transactions that a region has ordered ahead and that not all regions have passed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Orders {
    /// In the order of the ledger.
    open: BTreeMap<u64, (Timestamp, Order)>,
    /// Transactions ordered so far.
    count: u64,
    by_place: BTreeMap<Timestamp, u64>,
    /// The place of each, or where it was when it was set aside.
    places: BTreeMap<CallId, Timestamp>,
    /// Transactions put into the stream to each region so far.
    given: BTreeMap<RegionId, u64>,
    /// Marks below this may have been told to each region.
    reserved: BTreeMap<RegionId, Timestamp>,
    /// Transactions that get new places once a fenced region is back, by their old ones.
    set_aside: BTreeMap<Timestamp, SetAside>,
    /// Transactions that touch the fenced region and lie before the end of its stream: it may not
    /// have heard of them.
    owed: BTreeMap<Timestamp, Arc<Planned>>,
}

impl Orders {
    /// Adds a transaction that goes on the streams to the regions `to`.
    ///
    /// # Panics
    /// When its place is another's: a defect of the leader.
    pub(crate) fn add(
        &mut self,
        at: Timestamp,
        planned: Arc<Planned>,
        touches: Vec<RegionId>,
        to: &[RegionId],
    ) {
        self.count += 1;
        let other = self.by_place.insert(at, self.count);
        assert!(other.is_none(), "O1: a place is given once");
        let mut numbers = BTreeMap::new();
        for region in to {
            let given = self.given.entry(*region).or_default();
            *given += 1;
            numbers.insert(*region, *given);
        }
        let before = self.places.insert(planned.id(), at);
        assert!(before.is_none(), "O1: a transaction has one place");
        let order = Order {
            planned,
            touches,
            numbers,
        };
        self.open.insert(self.count, (at, order));
    }

    /// All regions have passed everything below `upto`: what was there, by name. What is behind one
    /// that they have not passed stays with it, so that streams have no gaps.
    pub(crate) fn pass(&mut self, upto: Timestamp) -> Vec<(CallId, Timestamp)> {
        let mut passed = Vec::new();
        while let Some(first) = self.open.first_entry() {
            let (at, order) = first.get();
            let (at, id) = (*at, order.planned.id());
            if at >= upto {
                break;
            }
            first.remove();
            self.by_place.remove(&at);
            let place = self.places.get(&id).copied();
            assert!(place >= Some(at), "O1: it is kept at its place");
            if place == Some(at) && !self.set_aside.contains_key(&at) {
                self.places.remove(&id);
                passed.push((id, at));
            }
        }
        passed
    }

    /// The stream of `region` ends at `end`: what concerns it there or behind is set aside. `is_own`:
    /// it is this region, and all of its orders do.
    pub(crate) fn fence(&mut self, region: RegionId, end: Timestamp, is_own: bool) {
        for (at, order) in self.open.values_mut() {
            let to: Vec<RegionId> = order.numbers.keys().copied().collect();
            if !is_own {
                order.numbers.remove(&region);
            }
            let is_at_its_place = self.places.get(&order.planned.id()) == Some(at);
            let concerns = is_own || order.touches.contains(&region);
            if !concerns || !is_at_its_place {
                continue;
            }
            let planned = Arc::clone(&order.planned);
            if *at >= end {
                let touches = order.touches.clone();
                let set_aside = SetAside {
                    planned,
                    touches,
                    to,
                };
                self.set_aside.insert(*at, set_aside);
            } else if !is_own {
                self.owed.insert(*at, planned);
            }
        }
    }

    /// The fenced region is back: what was set aside gets its new places. Unless it is this region,
    /// it follows this one's stream from what not all have passed on.
    pub(crate) fn take_back(&mut self, change: &Return, is_own: bool) {
        self.owed.clear();
        if !is_own {
            let given = self.given.entry(change.region).or_default();
            for (_, order) in self.open.values_mut() {
                *given += 1;
                order.numbers.insert(change.region, *given);
            }
        }
        for (old, order) in std::mem::take(&mut self.set_aside) {
            let before = self.places.remove(&order.planned.id());
            assert!(before == Some(old), "O1: it was set aside at its place");
            let at = change.new_place(old);
            self.add(at, order.planned, order.touches, &order.to);
        }
    }

    /// The places of transactions that are set aside, ascending.
    #[must_use]
    pub fn set_aside(&self) -> Vec<Timestamp> {
        self.set_aside.keys().copied().collect()
    }

    /// What the fenced region may not have heard of and runs at its place.
    #[must_use]
    pub fn owed(&self) -> Vec<Placed> {
        let owed = self.owed.iter().map(|(at, planned)| Placed {
            at: *at,
            planned: Arc::clone(planned),
        });
        owed.collect()
    }

    /// Transactions that were set aside and lie before `upto`, at the places where they were.
    pub(crate) fn set_aside_before(&self, upto: Timestamp) -> Vec<Placed> {
        let before = self.set_aside.range(..upto).map(|(at, order)| Placed {
            at: *at,
            planned: Arc::clone(&order.planned),
        });
        before.collect()
    }

    /// Notes that marks below `upto` may be told to a region.
    pub(crate) fn reserve(&mut self, region: RegionId, upto: Timestamp) {
        let reserved = self.reserved.entry(region).or_default();
        *reserved = upto.max(*reserved);
        assert!(*reserved >= upto, "what is reserved stays reserved");
    }

    /// Notes that marks below `upto` may be told to every region.
    pub(crate) fn reserve_for_all(&mut self, upto: Timestamp) {
        for reserved in self.reserved.values_mut() {
            *reserved = upto.max(*reserved);
        }
    }

    /// Marks up to this may have been told to some region.
    #[must_use]
    pub fn most_reserved(&self) -> Timestamp {
        self.reserved.values().max().copied().unwrap_or_default()
    }

    /// Marks up to this may have been told to a region.
    #[must_use]
    pub fn reserved(&self, region: RegionId) -> Timestamp {
        self.reserved.get(&region).copied().unwrap_or_default()
    }

    /// What is at a place.
    #[must_use]
    pub fn get(&self, at: Timestamp) -> Option<&Order> {
        let number = self.by_place.get(&at)?;
        self.open.get(number).map(|(_, order)| order)
    }

    /// Whether a transaction has a place that not all regions have passed.
    #[must_use]
    pub fn has(&self, id: CallId) -> bool {
        self.places.contains_key(&id)
    }

    /// All of them, in the order of the ledger.
    pub fn iter(&self) -> impl Iterator<Item = (Timestamp, &Order)> {
        self.open.values().map(|(at, order)| (*at, order))
    }

    /// The place of the one that was ordered first.
    #[must_use]
    pub fn first(&self) -> Option<Timestamp> {
        self.open.values().next().map(|(at, _)| *at)
    }

    /// The one that was ordered last.
    #[must_use]
    pub fn newest(&self) -> Option<&Order> {
        self.open.values().next_back().map(|(_, order)| order)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The transactions that touch a region, from the first in its stream on that is at `since` or
    /// behind, and the number of that one: of the next one, if there is none.
    #[must_use]
    pub fn stream_to(&self, region: RegionId, since: Timestamp) -> (u64, Vec<Held>) {
        let touching = self.iter().filter_map(|(at, order)| {
            let number = *order.numbers.get(&region)?;
            let planned = Arc::clone(&order.planned);
            Some((number, Held { at, planned }))
        });
        let mut wanted = touching
            .skip_while(|(_, entry)| entry.at < since)
            .peekable();
        let first = wanted.peek().map(|(number, _)| *number);
        let first = first.unwrap_or_else(|| self.next_number(region));
        let mut entries = Vec::new();
        for (number, entry) in wanted {
            assert!(
                number == first + entries.len() as u64,
                "O2: a stream has no gaps"
            );
            entries.push(entry);
        }
        (first, entries)
    }

    /// The number of the next transaction for a region.
    #[must_use]
    pub fn next_number(&self, region: RegionId) -> u64 {
        self.given.get(&region).copied().unwrap_or(0) + 1
    }

    /// Checks what holds between any two entries.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        let sizes = [self.open.len(), self.by_place.len()];
        ensure(sizes[0] == sizes[1], || {
            format!("O1: {sizes:?} transactions are ordered, and are at places")
        })?;
        let most = self.open.len() + self.set_aside.len();
        ensure(self.places.len() <= most, || {
            let count = self.places.len();
            format!("O1: {count} transactions have places, of {most}")
        })?;
        let Some((number, (at, last))) = self.open.last_key_value() else {
            return Ok(());
        };
        ensure(*number <= self.count, || {
            format!("O2: {number} is ordered, of {}", self.count)
        })?;
        let is_given = |(region, number): (&RegionId, &u64)| self.given.get(region) >= Some(number);
        ensure(last.numbers.iter().all(is_given), || {
            format!("O3: {at:?} is {:?} of {:?}", last.numbers, self.given)
        })?;
        // One that has got a new place lies behind what was ordered before that.
        let place = self.places.get(&last.planned.id());
        ensure(place == Some(at), || {
            format!("O1: {:?} is at {at:?} and at {place:?}", last.planned.id())
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use manxdb_core::NodeId;
    use manxdb_txn::procedure::{ProcedurePiece, ShardId};

    use super::*;
    use crate::call::{Call, Level};
    use crate::topology::Topology;

    pub(crate) fn planned(number: u64) -> Arc<Planned> {
        let call = Call {
            id: CallId {
                client: NodeId(99),
                number,
            },
            procedure: "p".into(),
            args: Vec::new(),
            level: Level::Serializable,
            ended_below: 0,
        };
        let piece = ProcedurePiece {
            part: 0,
            shard: ShardId(0),
            needs: Vec::new(),
            gives: Vec::new(),
            steps: 1,
        };
        let topology = Topology {
            regions: 3,
            shards_per_region: 1,
        };
        Planned::new(call, NodeId(0), vec![piece], topology).expect("it has one piece")
    }

    fn at(micros: u64) -> Timestamp {
        Timestamp::at(micros, 7)
    }

    /// A transaction of region 0 that touches region 0 and those whose streams it goes on.
    fn add(orders: &mut Orders, place: u64, number: u64, to: &[RegionId]) {
        let touches = [&[RegionId(0)], to].concat();
        orders.add(at(place), planned(number), touches, to);
    }

    #[test]
    fn a_stream_begins_anywhere_and_has_no_gaps() {
        let (one, two) = (RegionId(1), RegionId(2));
        let mut orders = Orders::default();
        assert_eq!(orders.stream_to(one, Timestamp::ZERO).0, 1);
        add(&mut orders, 10, 1, &[one]);
        add(&mut orders, 20, 2, &[one, two]);
        add(&mut orders, 15, 3, &[two]);
        let from = |region, since| {
            let (first, entries) = orders.stream_to(region, since);
            let places = entries.iter().map(|entry| entry.at.micros);
            (first, places.collect::<Vec<u64>>())
        };
        assert_eq!(from(one, Timestamp::ZERO), (1, vec![10, 20]));
        assert_eq!(from(one, at(11)), (2, vec![20]));
        assert_eq!(from(one, at(21)), (3, vec![]));
        assert_eq!(
            from(two, Timestamp::ZERO),
            (1, vec![20, 15]),
            "in the order of the ledger"
        );
        assert_eq!(from(two, at(16)), (1, vec![20, 15]));
        assert_eq!(from(two, at(21)), (3, vec![]));
        assert_eq!(orders.check(), Ok(()));
    }

    #[test]
    fn what_all_have_passed_is_gone_and_numbers_go_on() {
        let one = RegionId(1);
        let mut orders = Orders::default();
        add(&mut orders, 10, 1, &[one]);
        add(&mut orders, 20, 2, &[one]);
        let passed = orders.pass(at(20));
        assert_eq!(passed, [(planned(1).id(), at(10))]);
        assert!(!orders.has(planned(1).id()) && orders.has(planned(2).id()));
        assert_eq!(orders.stream_to(one, Timestamp::ZERO).0, 2);
        assert_eq!(orders.next_number(one), 3);
        assert_eq!(orders.first(), Some(at(20)));
    }

    #[test]
    fn what_was_ordered_behind_one_farther_ahead_stays_with_it() {
        let one = RegionId(1);
        let mut orders = Orders::default();
        add(&mut orders, 90, 1, &[one]);
        add(&mut orders, 20, 2, &[one]);
        assert_eq!(orders.pass(at(50)), []);
        assert_eq!(orders.stream_to(one, at(50)).1.len(), 2);
        assert_eq!(orders.pass(at(91)).len(), 2);
        assert!(orders.is_empty() && orders.check().is_ok());
    }

    /// Region 2 is fenced at 15; of what touches it one lies before that, and two behind.
    #[test]
    fn what_touches_a_fenced_region_is_set_aside_and_gets_new_places_in_its_order() {
        let (one, two) = (RegionId(1), RegionId(2));
        let mut orders = Orders::default();
        add(&mut orders, 10, 1, &[one, two]);
        add(&mut orders, 30, 2, &[one, two]);
        add(&mut orders, 20, 3, &[one, two]);
        orders.fence(two, at(15), false);
        assert_eq!(orders.set_aside(), [at(20), at(30)]);
        assert_eq!(orders.owed().len(), 1);
        assert_eq!(orders.stream_to(two, Timestamp::ZERO).1, []);
        assert_eq!(orders.pass(at(40)), [(planned(1).id(), at(10))]);
        assert!(orders.has(planned(2).id()), "it waits for its new place");
        orders.add(at(50), planned(4), vec![one], &[one]);
        let change = Return {
            region: two,
            back: at(90),
            moved: vec![at(20), at(30)],
            orders: Vec::new(),
        };
        orders.take_back(&change, false);
        let places = |region| {
            let (first, entries) = orders.stream_to(region, Timestamp::ZERO);
            let places = entries.iter().map(|it| (it.at.micros, it.at.stretch));
            (first, places.collect::<Vec<_>>())
        };
        assert_eq!(places(one), (4, vec![(50, 0), (90, 1), (90, 2)]));
        assert_eq!(places(two), (4, vec![(50, 0), (90, 1), (90, 2)]));
        let ids = orders.iter().map(|(_, order)| order.planned.id().number);
        assert!(ids.eq([4, 3, 2]), "in the order of the old places");
        assert!(orders.owed().is_empty() && orders.check().is_ok());
        assert_eq!(orders.pass(at(91)).len(), 3);
    }

    /// The fenced region itself sets aside all that the others never heard of.
    #[test]
    fn of_the_fenced_regions_own_orders_all_behind_the_end_are_set_aside() {
        let (one, two) = (RegionId(1), RegionId(2));
        let mut orders = Orders::default();
        add(&mut orders, 10, 1, &[one, two]);
        add(&mut orders, 20, 2, &[one, two]);
        orders.fence(RegionId(0), at(15), true);
        assert_eq!(orders.set_aside(), [at(20)]);
        assert_eq!(orders.set_aside_before(at(21)).len(), 1);
        assert_eq!(orders.stream_to(one, Timestamp::ZERO).1.len(), 2);
        let change = Return {
            region: RegionId(0),
            back: at(90),
            moved: vec![at(20)],
            orders: Vec::new(),
        };
        orders.take_back(&change, true);
        let (first, entries) = orders.stream_to(two, at(90));
        assert_eq!((first, entries.len()), (3, 1));
        assert_eq!(orders.pass(at(40)).len(), 1, "the old place is nothing");
        assert!(orders.has(planned(2).id()) && orders.check().is_ok());
    }

    #[test]
    fn each_broken_invariant_is_found() {
        let mut orders = Orders::default();
        add(&mut orders, 10, 1, &[RegionId(1)]);
        let mut without = orders.clone();
        without.given.clear();
        assert!(without.check().is_err_and(|broken| broken.contains("O3")));
        let mut moved = orders.clone();
        moved.places.insert(planned(1).id(), at(11));
        assert!(moved.check().is_err_and(|broken| broken.contains("O1")));
        orders.by_place.clear();
        assert!(orders.check().is_err_and(|broken| broken.contains("O1")));
    }
}
