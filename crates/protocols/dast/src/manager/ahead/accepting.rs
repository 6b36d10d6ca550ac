//! What a region promises and accepts of a change of who is fenced, and how it hears of one that is
//! decided. What it answers is in its ledger first.

use super::Manager;
use crate::fence::{Ballot, Change, News, Want};
use crate::ledger::Entry;
use crate::manager::Effect;
use crate::message::{FenceMessage, Promise};
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wanted::Out;

/// While a region is taken in, marks and cuts stop so many of the longest ways between regions ahead
/// of what is reserved: by then it has been decided, as a rule.
const CAP_WAYS: u64 = 6;

impl Manager {
    /// Whether a message about the `number`th change is about the next one; if it is about an
    /// earlier one, its sender hears so.
    fn is_next(&self, number: u64, from: RegionId, out: &mut Out) -> bool {
        let next = self.ledger().fences.next();
        if number < next {
            self.tell_change(from, out);
        }
        number == next
    }

    pub(super) fn on_prepare(
        &mut self,
        from: RegionId,
        (number, ballot): (u64, Ballot),
        want: Want,
        out: &mut Out,
    ) {
        if !self.may_fence() || !self.is_next(number, from, out) || !self.agrees_to(want) {
            return;
        }
        match self.ledger().fences.promised() {
            Some(promised) if promised > ballot => {
                self.send_fence(from, FenceMessage::Refused { number, promised }, out);
            }
            Some(promised) if promised == ballot => {
                self.tell_promised(from, (number, ballot), want, out);
            }
            _ => self.promise(from, (number, ballot), want, out),
        }
    }

    /// Whether this region could do what another one wants.
    fn agrees_to(&self, want: Want) -> bool {
        let fenced = self.fenced();
        let Some(lead) = &self.lead else {
            return false;
        };
        match want {
            Want::Nothing => true,
            Want::Fence(region) => {
                // Half as long as it takes to ask: it is not the same moment everywhere.
                let after = self.ticks_of(self.shared.options.fence_after.as_micros() / 2);
                let silent = lead.ahead.as_ref();
                let silent = silent.map(|it| it.silent_ticks(region, lead.clocks.ticks()));
                region != self.region && fenced.is_none() && silent > Some(after)
            }
            Want::Return(region) => fenced == Some(region),
        }
    }

    pub(super) fn promise(
        &mut self,
        to: RegionId,
        (number, ballot): (u64, Ballot),
        want: Want,
        out: &mut Out,
    ) {
        let mut frozen = None;
        let mut cap = None;
        match want {
            Want::Nothing => {}
            Want::Fence(region) => {
                let Some(mark) = self.mark_to_freeze(region, out) else {
                    return;
                };
                frozen = Some((region, mark));
            }
            // What is fenced tells no marks and cuts nothing.
            Want::Return(region) if region == self.region => {}
            Want::Return(_) => {
                let Some(least) = self.cap(out) else {
                    return;
                };
                cap = Some(least);
            }
        }
        let Some(fencing) = self.fencing() else {
            return;
        };
        if fencing.promising >= Some(ballot) {
            return;
        }
        fencing.promising = Some(ballot);
        fencing.round = fencing.round.max(ballot.round);
        if let Some((region, mark)) = frozen {
            fencing.freezing.entry(region).or_insert(mark);
        }
        fencing.capping = fencing.capping.or(cap);
        let entry = Entry::Promise {
            number,
            ballot,
            frozen,
            cap: cap.and(fencing.capping),
        };
        let effect = Effect::Promised {
            to,
            number,
            ballot,
            want,
        };
        self.propose(entry, effect, out);
    }

    /// Behind every bound that a leader of this region has had, and far enough ahead that what waits
    /// for the change hardly notices.
    fn cap(&self, out: &mut Out) -> Option<Timestamp> {
        let way = self.lead.as_ref()?.ahead.as_ref()?.longest_way();
        let reserved = self.ledger().orders.most_reserved();
        let far = reserved.max(self.marks_here(out)?);
        Some(Timestamp::at(far.micros + CAP_WAYS * way, 0))
    }

    /// The promise is in the ledger; this region answers with what it knows.
    pub(in crate::manager) fn tell_promised(
        &mut self,
        to: RegionId,
        (number, ballot): (u64, Ballot),
        want: Want,
        out: &mut Out,
    ) {
        let fences = &self.ledger().fences;
        if fences.next() != number || fences.promised() != Some(ballot) {
            return;
        }
        let Some(promise) = self.what_goes_with(want, out) else {
            return;
        };
        if to == self.region {
            self.on_promised(to, (number, ballot), promise, out);
            return;
        }
        let message = FenceMessage::Promised {
            number,
            ballot,
            promise,
        };
        self.send_fence(to, message, out);
    }

    fn what_goes_with(&self, want: Want, out: &mut Out) -> Option<Promise> {
        let ledger = self.ledger();
        let mut promise = Promise {
            accepted: ledger.fences.accepted().cloned(),
            last: ledger.last(),
            set_aside: ledger.orders.set_aside(),
            ..Promise::default()
        };
        match want {
            Want::Nothing => {}
            Want::Fence(region) => {
                promise.mark = self.mark_to_freeze(region, out)?;
                let copies = self.copies.as_ref()?;
                promise.orders = copies.before(region, promise.mark);
            }
            Want::Return(_) => promise.orders = ledger.orders.owed(),
        }
        Some(promise)
    }

    pub(super) fn on_accept(
        &mut self,
        from: RegionId,
        (number, ballot): (u64, Ballot),
        change: Change,
        out: &mut Out,
    ) {
        if !self.is_next(number, from, out) {
            return;
        }
        let fences = &self.ledger().fences;
        if let Some(promised) = fences.promised().filter(|it| *it > ballot) {
            self.send_fence(from, FenceMessage::Refused { number, promised }, out);
            return;
        }
        if fences.accepted().is_some_and(|(it, _)| *it == ballot) {
            self.tell_accepted(from, (number, ballot), out);
            return;
        }
        let Some(fencing) = self.fencing() else {
            return;
        };
        if fencing.accepting >= Some(ballot) {
            return;
        }
        fencing.accepting = Some(ballot);
        let entry = Entry::Accept {
            number,
            ballot,
            change,
        };
        let effect = Effect::Accepted {
            to: from,
            number,
            ballot,
        };
        self.propose(entry, effect, out);
    }

    /// The acceptance is in the ledger.
    pub(in crate::manager) fn tell_accepted(
        &mut self,
        to: RegionId,
        (number, ballot): (u64, Ballot),
        out: &mut Out,
    ) {
        let fences = &self.ledger().fences;
        let accepted = fences.accepted().map(|(accepted, _)| *accepted);
        if fences.next() != number || accepted != Some(ballot) {
            return;
        }
        if to == self.region {
            self.on_accepted(to, (number, ballot), out);
        } else {
            self.send_fence(to, FenceMessage::Accepted { number, ballot }, out);
        }
    }

    /// A change is decided: it is applied once it is in this region's ledger. One at a time, since
    /// what the region passed before its own fence depends on the changes before. What comes too
    /// early is told again.
    pub(super) fn learn(&mut self, news: News, out: &mut Out) {
        let (ledger, epoch) = (self.ledger(), news.epoch);
        let known = ledger.fences.epoch();
        let unknown = news.change.filter(|(at, _)| *at > known);
        let (at, change) = unknown.unwrap_or((0, Change::Nothing));
        let is_next = news.after <= known && known < epoch && at <= epoch;
        if !is_next || !ledger.fits(&change) {
            return;
        }
        let own = self.region;
        let is_fenced = matches!(&change, Change::Fence(it) if it.region == own);
        let Some(fencing) = self.fencing() else {
            return;
        };
        if fencing.beginning > known {
            return;
        }
        let mut stood = None;
        if is_fenced {
            let follows = self.may_fence();
            let Some(here) = self.marks_here(out).filter(|_| follows) else {
                // It is told again.
                return;
            };
            stood = Some((here, self.orders_before(here)));
        }
        let Some(fencing) = self.fencing() else {
            return;
        };
        fencing.beginning = epoch;
        if let Some((stood, _)) = &stood {
            fencing.capping = Some(fencing.capping.map_or(*stood, |cap| cap.min(*stood)));
        }
        let entry = Entry::Change {
            epoch,
            at,
            change,
            stood,
        };
        self.propose(entry, Effect::Changed, out);
    }
}
