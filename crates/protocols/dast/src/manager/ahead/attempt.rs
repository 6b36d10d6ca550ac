//! An attempt of a leader's to change who is fenced: when it has enough promises, and what follows from
//! them.

use std::collections::{BTreeMap, BTreeSet};

use crate::fence::{Ballot, Change, Fence, Placed, Return, Want};
use crate::message::Promise;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;

/// An attempt of this leader's.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) number: u64,
    pub(super) ballot: Ballot,
    pub(super) want: Want,
    /// A stream that would end before this is not ended: what was moved for another region's return
    /// lies before it.
    pub(super) least_end: Timestamp,
    pub(super) since_tick: u64,
    pub(super) asked_tick: u64,
    pub(super) promises: BTreeMap<RegionId, Promise>,
    /// What is proposed, once enough have promised.
    pub(super) change: Option<Change>,
    pub(super) accepted: BTreeSet<RegionId>,
}

/// A planted defect, of builds that can have one.
#[cfg(feature = "mutants")]
pub(super) type FenceMutant = Option<crate::mutants::Mutant>;
#[cfg(not(feature = "mutants"))]
pub(super) type FenceMutant = Option<std::convert::Infallible>;

impl Attempt {
    /// Whether all have promised that have to, but for the region itself. With what one has accepted a
    /// majority is enough.
    pub(super) fn has_enough(&self, others: &[RegionId], majority: usize) -> bool {
        let has = |region: &&RegionId| self.promises.contains_key(region);
        if others.iter().filter(has).count() + 1 < majority {
            return false;
        }
        if self.accepted_before().is_some() {
            return true;
        }
        let mut missing = others.iter().filter(|region| !has(region));
        match self.want {
            Want::Nothing => true,
            Want::Fence(silent) => missing.all(|region| *region == silent),
            Want::Return(_) => missing.next().is_none(),
        }
    }

    /// The change that was accepted under the largest ballot of those that are known of.
    fn accepted_before(&self) -> Option<&Change> {
        let promises = self.promises.values();
        let accepted = promises.filter_map(|promise| promise.accepted.as_ref());
        let last = accepted.max_by_key(|(ballot, _)| *ballot);
        last.map(|(_, change)| change)
    }

    /// The change that follows from what all have said.
    pub(super) fn make_change(&self, mutant: FenceMutant) -> Change {
        if let Some(change) = self.accepted_before() {
            return change.clone();
        }
        #[allow(unused_mut)] // planted defects change it
        let mut change = match self.want {
            Want::Nothing => Change::Nothing,
            Want::Fence(region) => self.make_fence(region),
            Want::Return(region) => Change::Return(self.make_return(region)),
        };
        #[cfg(feature = "mutants")]
        self.plant(mutant, &mut change);
        let _ = mutant;
        change
    }

    /// None if no region has followed the stream far enough.
    fn make_fence(&self, region: RegionId) -> Change {
        let marks = self.promises.values().map(|promise| promise.mark);
        let end = marks.max().unwrap_or_default();
        if end < self.least_end {
            return Change::Nothing;
        }
        let orders = self.orders();
        assert!(
            orders.iter().all(|order| order.at < end),
            "F: what is told below a mark is below the end"
        );
        Change::Fence(Fence {
            region,
            end,
            orders,
        })
    }

    fn make_return(&self, region: RegionId) -> Return {
        let last = self.promises.values().map(|promise| promise.last).max();
        let back = Timestamp::at(last.unwrap_or_default().micros + 2, 0);
        let places = self.promises.values();
        let places = places.flat_map(|promise| promise.set_aside.iter().copied());
        let moved: BTreeSet<Timestamp> = places.collect();
        assert!(
            moved.last().is_none_or(|last| *last < back),
            "F4: what is moved comes to lie behind where it was"
        );
        Return {
            region,
            back,
            moved: moved.into_iter().collect(),
            orders: self.orders(),
        }
    }

    /// All that any of them has, by place.
    fn orders(&self) -> Vec<Placed> {
        let orders = self.promises.values().flat_map(|it| &it.orders);
        let orders = orders.map(|order| (order.at, order.clone()));
        let orders: BTreeMap<Timestamp, Placed> = orders.collect();
        orders.into_values().collect()
    }

    #[cfg(feature = "mutants")]
    fn plant(&self, mutant: FenceMutant, change: &mut Change) {
        use crate::mutants::Mutant;
        match (mutant, change) {
            (Some(Mutant::FenceWithoutExchange), Change::Fence(fence)) => fence.orders.clear(),
            (Some(Mutant::FenceAtLowestMark), Change::Fence(fence)) => {
                let marks = self.promises.values().map(|promise| promise.mark);
                fence.end = marks.min().unwrap_or_default();
                fence.orders.retain(|order| order.at < fence.end);
            }
            (Some(Mutant::MovedOutOfOrder), Change::Return(back)) => back.moved.reverse(),
            _ => {}
        }
    }
}
