//! What follows from a change of who is fenced.
//!
//! While a region is fenced the others run what touches it, or was ordered by it, up to the end of its
//! stream; the rest is set aside, and nothing new that touches it gets a place. It runs what lies
//! below the marks that it had been told, and its own local transactions. When it is back, streams
//! with it begin again, and what was set aside runs at new places.

use std::sync::Arc;

use manxdb_core::{LocalTime, NodeId};

use crate::call::{CallId, Planned};
use crate::fence::{Change, Placed, Span};
use crate::ledger::Entry;
use crate::manager::stream::Incoming;
use crate::manager::{Effect, Manager};
use crate::message::{DastMessage, Held};
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wanted::Out;

impl Manager {
    /// The region that is fenced.
    pub(in crate::manager) fn fenced(&self) -> Option<RegionId> {
        self.ledger().fences.fenced().map(|span| span.region)
    }

    /// Whether this region and another one send each other streams: neither is fenced.
    pub(in crate::manager) fn speaks_with(&self, region: RegionId) -> bool {
        let fences = &self.ledger().fences;
        !fences.is_out() && !fences.is_fenced(region)
    }

    /// Whether a transaction does not run at this place: it was moved from it, or ran at the place
    /// from which it was moved.
    pub(in crate::manager) fn has_no_turn(&self, planned: &Planned, at: Timestamp) -> bool {
        let fences = &self.ledger().fences;
        let topology = self.shared.topology;
        let sets_aside = |span: &Span| {
            let is_other = at.site != topology.manager_site(span.region);
            if is_other && self.runs_behind_the_fence() {
                return false;
            }
            span.sets_aside(topology, planned, at)
        };
        if fences.spans().iter().any(sets_aside) {
            return true;
        }
        let mut stayed = fences.stayed();
        let is_moved = at.stretch > 0;
        is_moved && stayed.any(|(place, other)| place != at && other.id() == planned.id())
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn runs_behind_the_fence(&self) -> bool {
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::RunsBehindTheFence) {
            return true;
        }
        false
    }

    /// A place of what touches these regions has to lie behind what was moved of them.
    pub(super) fn behind_moved(&self, touches: &[RegionId]) -> Timestamp {
        let own = self.region;
        let spans = self.ledger().fences.spans().iter();
        let concerned = spans.filter(|span| span.region == own || touches.contains(&span.region));
        let moved_to = concerned.filter_map(|span| span.back).max();
        moved_to.unwrap_or_default()
    }

    /// Whether a transaction gets no place: it touches a region that is fenced, which its coordinator
    /// is told, or this region is fenced, and its coordinator asks again.
    pub(super) fn refuses(
        &mut self,
        planned: &Arc<Planned>,
        touches: &[RegionId],
        out: &mut Out,
    ) -> bool {
        let (id, coordinator) = (planned.id(), planned.coordinator);
        let ledger = self.ledger();
        if ledger.fences.is_out() || ledger.refused.contains(&id) {
            self.tell_refused_by_fence(id, coordinator, out);
            return true;
        }
        let Some(fenced) = self.fenced().filter(|it| touches.contains(it)) else {
            return false;
        };
        let is_known = ledger.orders.has(id) || ledger.is_over(id);
        let is_proposed = self.lead.as_ref();
        let is_proposed = is_proposed.is_some_and(|lead| lead.untold.contains_key(&id));
        if !is_known && !is_proposed {
            assert!(fenced != self.region, "a fenced region waits");
            let effect = Effect::TellFenced { id, coordinator };
            self.propose(Entry::Refuse { id }, effect, out);
        }
        true
    }

    /// It has no place because a region that it touches is, or was, fenced.
    pub(in crate::manager) fn tell_refused_by_fence(
        &self,
        id: CallId,
        coordinator: NodeId,
        out: &mut Out,
    ) {
        let ledger = self.ledger();
        let region = match ledger.fences.last().map(|made| &made.change) {
            Some(Change::Fence(fence)) => fence.region,
            Some(Change::Return(back)) => back.region,
            Some(Change::Nothing) | None => return,
        };
        if ledger.refused.contains(&id) {
            out.send(coordinator, DastMessage::Refused { id, region });
        }
    }

    /// What `region` may know of how far this one has closed its places, or run them: it may not have
    /// heard that it is fenced, and would take its own orders behind the end for run.
    pub(in crate::manager) fn told_of(&self, region: RegionId, upto: Timestamp) -> Timestamp {
        let spans = self.ledger().fences.spans().iter();
        let of_region = spans.filter(|span| span.region == region);
        of_region.fold(upto, |upto, span| span.told(upto))
    }

    /// Tells replicas where transactions were moved from.
    pub(in crate::manager) fn tell_fences(&self, out: &mut Out) {
        for node in self.listeners() {
            self.tell_fences_to(node, out);
        }
    }

    /// The same to one of them.
    pub(in crate::manager) fn tell_fences_to(&self, node: NodeId, out: &mut Out) {
        let spans = self.ledger().fences.spans().to_vec();
        if !spans.is_empty() {
            out.send(node, DastMessage::Fences { spans });
        }
    }

    /// A manager's ledger has come to another epoch.
    pub(in crate::manager) fn notice_epoch(&mut self, out: &mut Out) {
        let epoch = self.ledger().fences.epoch();
        if epoch != self.epoch {
            let before = std::mem::replace(&mut self.epoch, epoch);
            assert!(before < epoch, "epochs only grow");
            self.restart_copies(before, out);
        }
    }

    /// A change that this leader has proposed is in its ledger.
    pub(in crate::manager) fn after_change(&mut self, now: LocalTime, out: &mut Out) {
        let epoch = self.ledger().fences.epoch();
        let Some(ahead) = self.lead.as_mut().and_then(|lead| lead.ahead.as_mut()) else {
            return;
        };
        let Some(before) = ahead.fencing.begin(epoch) else {
            return;
        };
        self.tell_fences(out);
        let made = self.ledger().fences.made_since(before);
        let made: Vec<Change> = made.map(|made| made.change.clone()).collect();
        assert!(made.len() <= 1, "F3: changes are learned one at a time");
        for change in made {
            match change {
                Change::Nothing => {}
                Change::Fence(fence) => self.restart_outgoing(fence.region),
                Change::Return(back) => self.after_return(now, back.region, back.back, out),
            }
        }
        let stayed = self.ledger().fences.stayed();
        let stayed = stayed.map(|(at, planned)| (at, Arc::clone(planned)));
        for (at, planned) in stayed.collect::<Vec<_>>() {
            self.tell_place(&planned, at, out);
        }
        self.tell_bound_if_awaited(out);
    }

    /// A stream goes on with what gets a place from now on.
    fn restart_outgoing(&mut self, region: RegionId) {
        let next = self.ledger().orders.next_number(region);
        let Some(lead) = &mut self.lead else {
            return;
        };
        let tick = lead.clocks.ticks();
        let streams = lead.ahead.as_mut().map(|ahead| &mut ahead.outgoing);
        if let Some(stream) = streams.and_then(|streams| streams.get_mut(&region)) {
            stream.restart(next, tick);
        }
    }

    /// Streams with the region that is back begin again. What was set aside here goes on the streams
    /// at its new places, and what has come at such places is told the replicas.
    fn after_return(&mut self, now: LocalTime, region: RegionId, back: Timestamp, out: &mut Out) {
        let is_own = region == self.region;
        let begin_again = |other: &RegionId| is_own || *other == region;
        let others: Vec<RegionId> = self.other_regions().collect();
        let from = if is_own {
            self.ledger().fences.stood()
        } else {
            back
        };
        if let Some(ahead) = self.lead.as_mut().and_then(|lead| lead.ahead.as_mut())
            && !ahead.incoming.is_empty()
        {
            let again = others.iter().filter(|it| begin_again(it));
            ahead
                .incoming
                .extend(again.map(|other| (*other, Incoming::new(from))));
        }
        let goes_on: Vec<RegionId> = others
            .iter()
            .copied()
            .filter(|it| !begin_again(it))
            .collect();
        for (at, planned) in self.put_on_streams(back, &goes_on) {
            self.tell_place(&planned, at, out);
        }
        for other in others {
            if begin_again(&other) {
                self.restart_outgoing(other);
                self.send_since(now, other, Timestamp::ZERO, out);
            }
            let copies = self.copies.as_ref();
            let kept = copies.map(|copies| copies.before(other, Timestamp::MAX));
            for order in kept.into_iter().flatten().filter(|it| it.at >= back) {
                self.tell_place(&order.planned, order.at, out);
            }
        }
        self.ask_for_streams(out);
    }

    /// Puts this region's transactions that were moved to the microsecond of `back` on the streams to
    /// these regions; all of them.
    fn put_on_streams(
        &mut self,
        back: Timestamp,
        to: &[RegionId],
    ) -> Vec<(Timestamp, Arc<Planned>)> {
        let orders = self.group.state().orders.iter();
        let moved = orders.filter(|(at, _)| at.micros == back.micros && at.stretch > 0);
        let moved: Vec<_> = moved.map(|(at, order)| (at, order.clone())).collect();
        let ahead = self.lead.as_mut().and_then(|lead| lead.ahead.as_mut());
        let outgoing = ahead.into_iter().flat_map(|ahead| &mut ahead.outgoing);
        for (region, stream) in outgoing.filter(|(region, _)| to.contains(region)) {
            for (at, order) in &moved {
                if let Some(number) = order.numbers.get(region) {
                    let planned = Arc::clone(&order.planned);
                    stream.push(*number, Held { at: *at, planned });
                }
            }
        }
        let told = moved.into_iter().map(|(at, order)| (at, order.planned));
        told.collect()
    }

    /// The other regions' orders that touch this one and that it runs at their places if they are
    /// below `stood`.
    pub(super) fn orders_before(&self, stood: Timestamp) -> Vec<Placed> {
        let Some(copies) = &self.copies else {
            return Vec::new();
        };
        let topology = self.shared.topology;
        let all = self.other_regions();
        let all = all.flat_map(|region| copies.before(region, stood));
        let touches = |order: &Placed| {
            let mut shards = order.planned.shards();
            shards.any(|shard| topology.region_of(shard) == self.region)
        };
        all.filter(touches).collect()
    }
}
