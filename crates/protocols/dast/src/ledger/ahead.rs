//! Entries about cross-region transactions ordered ahead: places, marks, and who is fenced.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Ledger;
use crate::call::Planned;
use crate::fence::{Ballot, Change, Placed};
use crate::timestamp::Timestamp;
use crate::topology::RegionId;

impl Ledger {
    /// A place is given once: what comes again has one already, or nobody waits. None is given to
    /// what touches a region that was fenced since it was asked for, nor by such a region.
    pub(super) fn order(
        &mut self,
        planned: &Arc<Planned>,
        at: Timestamp,
        touches: &[RegionId],
        to: &[RegionId],
    ) {
        let id = planned.id();
        self.end_below(id.client, planned.call.ended_below);
        let is_known = self.orders.has(id) || self.is_over(id) || self.refused.contains(&id);
        if is_known || self.orders.get(at).is_some() || self.fences.is_out() {
            return;
        }
        let fenced = self.fences.fenced().map(|span| span.region);
        if fenced.is_some_and(|fenced| touches.contains(&fenced)) {
            self.refuse(id);
            return;
        }
        self.assigned = self.assigned.max(at);
        let to = to.iter().copied();
        let to: Vec<RegionId> = to.filter(|region| Some(*region) != fenced).collect();
        self.orders
            .add(at, Arc::clone(planned), touches.to_vec(), &to);
    }

    /// A fenced region tells no marks, and behind a cap none are told.
    pub(super) fn reserve_marks(&mut self, upto: &[(RegionId, Timestamp)]) {
        if self.fences.is_out() || self.fences.cap().is_some() {
            return;
        }
        for (region, upto) in upto {
            self.orders.reserve(*region, *upto);
        }
    }

    /// With a cap, marks up to it are reserved at once: it is not below what is reserved already.
    pub(super) fn promise(
        &mut self,
        (number, ballot): (u64, Ballot),
        frozen: Option<(RegionId, Timestamp)>,
        cap: Option<Timestamp>,
    ) {
        let cap = cap.map(|cap| cap.max(self.orders.most_reserved()));
        if self.fences.promise(number, ballot, frozen, cap)
            && let Some(cap) = self.fences.cap()
        {
            self.orders.reserve_for_all(cap);
        }
    }

    /// Whether a change can follow those that this region has applied. What was decided does, when all
    /// are applied in their order.
    #[must_use]
    pub fn fits(&self, change: &Change) -> bool {
        let fenced = self.fences.fenced();
        match change {
            Change::Nothing => true,
            Change::Fence(_) => fenced.is_none(),
            Change::Return(back) => {
                let was_fenced = fenced.is_some_and(|span| {
                    span.region == back.region && span.from.max(span.end) < back.back
                });
                let moved: BTreeSet<&Timestamp> = back.moved.iter().collect();
                let set_aside = self.orders.set_aside();
                was_fenced && set_aside.iter().all(|old| moved.contains(old))
            }
        }
    }

    pub(super) fn change(&mut self, change: &Change, stood: Option<&(Timestamp, Vec<Placed>)>) {
        match change {
            Change::Nothing => {}
            Change::Fence(fence) => {
                self.orders.fence(fence.region, fence.end, stood.is_some());
                let stood = stood.map(|(stood, stayed)| {
                    let own = self.orders.set_aside_before(*stood);
                    (*stood, stayed.iter().cloned().chain(own).collect())
                });
                self.fences.fence(fence, stood);
            }
            Change::Return(back) => {
                self.orders.take_back(back, self.fences.is_out());
                self.fences.take_back(back);
                let last = Timestamp::at(back.back.micros + 1, 0);
                self.assigned = self.assigned.max(last);
            }
        }
    }

    /// Behind every mark that was told, every place that was given, and everything passed here while
    /// a region was fenced.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        let told = self.orders.most_reserved().max(self.assigned);
        let stood = self.fences.stood();
        told.max(stood).max(self.fences.cap().unwrap_or_default())
    }
}
