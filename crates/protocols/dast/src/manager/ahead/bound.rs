//! Up to where a region's cuts go: below the least mark of the others.

use manxdb_core::LocalTime;

use crate::manager::Manager;
use crate::manager::stream::Incoming;
use crate::message::DastMessage;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wanted::Out;

/// How far a bound may lie behind the region's time, in microseconds, when a node is to take part:
/// one that comes in stamps behind all that is reserved, which nothing passes while the bound
/// stands still.
const BOUND_LATE_MAX_MICROS: u64 = 100_000;

impl Manager {
    /// Below this every cross-region transaction of the other regions is here. A fenced region does
    /// not count, and its own bound stands still.
    pub(in crate::manager) fn bound(&self) -> Timestamp {
        let Some(ahead) = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref()) else {
            return Timestamp::MAX;
        };
        if ahead.outgoing.is_empty() {
            return Timestamp::MAX;
        }
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::BoundOfTouchedRegions) {
            // As if only those mattered that speak first.
            let marks = ahead.incoming.values().map(Incoming::mark);
            return marks.max().unwrap_or_default();
        }
        let fences = &self.group.state().fences;
        if fences.is_out() {
            return fences.stood();
        }
        let counts = |region: RegionId| !fences.is_fenced(region);
        let marks = ahead.incoming.iter().filter(|(it, _)| counts(**it));
        let marks = marks.map(|(region, stream)| self.counted_mark(*region, stream));
        let bound = marks.min().unwrap_or_default();
        let caps = fences.cap().into_iter().chain(ahead.fencing.capping());
        caps.fold(bound, Timestamp::min)
    }

    /// A region's mark, as far as two managers here have it, and not behind where its stream is
    /// frozen.
    fn counted_mark(&self, region: RegionId, stream: &Incoming) -> Timestamp {
        let copies = self.copies.as_ref();
        let held = copies.map(|copies| copies.held_by_two(region));
        let fences = &self.group.state().fences;
        let mark = stream.mark().min(held.unwrap_or(Timestamp::MAX));
        let mark = mark.max(fences.floor(region));
        if self.follows_frozen_streams() {
            return mark;
        }
        let lead = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref());
        let freezing = lead.and_then(|ahead| ahead.fencing.freezing(region));
        let frozen = fences.frozen(region).into_iter().chain(freezing);
        frozen.fold(mark, Timestamp::min)
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn follows_frozen_streams(&self) -> bool {
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::FollowsFrozenStream) {
            return true;
        }
        false
    }

    /// Up to where a region's stream is here: not less than any leader has counted. None while this
    /// manager itself lacks part of that, which it then asks the others for.
    fn mark_here(&self, region: RegionId, out: &mut Out) -> Option<Timestamp> {
        let ahead = self.lead.as_ref()?.ahead.as_ref()?;
        let copies = self.copies.as_ref()?;
        let counted = self.counted_mark(region, ahead.incoming.get(&region)?);
        let floor = self.group.state().fences.floor(region);
        let own = copies.mark(region).max(floor);
        if own < counted {
            copies.ask_others(out);
            return None;
        }
        Some(own)
    }

    /// The same of all regions that are not fenced: no leader's bound was behind it.
    pub(in crate::manager) fn marks_here(&self, out: &mut Out) -> Option<Timestamp> {
        let fences = &self.group.state().fences;
        let regions = self.other_regions();
        let regions = regions.filter(|region| !fences.is_fenced(*region));
        let marks: Option<Vec<_>> = regions.map(|region| self.mark_here(region, out)).collect();
        let least = marks?.into_iter().min();
        assert!(least >= Some(self.bound()), "F: what was passed is here");
        least
    }

    /// Up to where a silent region's stream is followed from now on.
    pub(in crate::manager) fn mark_to_freeze(
        &self,
        region: RegionId,
        out: &mut Out,
    ) -> Option<Timestamp> {
        let own = self.mark_here(region, out)?;
        let ahead = self.lead.as_ref()?.ahead.as_ref()?;
        let freezing = ahead.fencing.freezing(region);
        let frozen = self.group.state().fences.frozen(region);
        Some(frozen.into_iter().chain(freezing).fold(own, Timestamp::min))
    }

    /// The stream of a silent region must not end before this.
    pub(in crate::manager) fn least_end(&self, region: RegionId) -> Timestamp {
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::FenceAmidReturn) {
            return Timestamp::ZERO;
        }
        self.ledger().fences.least_end(region)
    }

    /// Whether the stream of a silent region could end where this manager has it. If no region has it
    /// far enough, nobody can do without that region before it is heard again.
    pub(in crate::manager) fn may_end(&self, region: RegionId) -> bool {
        let floor = self.ledger().fences.floor(region);
        let copies = self.copies.as_ref();
        let here = copies.map(|copies| copies.mark(region).max(floor));
        here >= Some(self.least_end(region))
    }

    /// The highest cut that the bound allows, of what all clocks have passed.
    pub(in crate::manager) fn below_bound(&self, passed: Timestamp) -> Timestamp {
        let bound = self.bound();
        if passed < bound {
            return passed;
        }
        if bound.micros == 0 {
            return Timestamp::ZERO;
        }
        Timestamp {
            micros: bound.micros.saturating_sub(1),
            // It goes on growing with the clocks, as a stretched clock does.
            stretch: passed.micros.max(passed.stretch),
            site: u32::MAX,
        }
    }

    /// The bound is told with every cut; at once when it has passed a transaction that waits.
    pub(in crate::manager) fn tell_bound_if_awaited(&mut self, out: &mut Out) {
        let bound = self.bound();
        let Some(lead) = &mut self.lead else {
            return;
        };
        let Some(ahead) = &mut lead.ahead else {
            return;
        };
        let is_held = |at: &&Timestamp| at.micros >= ahead.told.micros;
        let within = lead.waiting.range(..bound).rev();
        let mut within = within.filter(|at| at.micros < bound.micros);
        let Some(past) = within.next().filter(is_held).copied() else {
            return;
        };
        assert!(bound >= ahead.told, "A3: the bound does not go back");
        assert!(past < bound, "A3: what the bound has passed is below it");
        ahead.told = bound;
        for node in self.listeners() {
            out.send(node, DastMessage::Bound { bound, past });
        }
    }

    /// The bound is told with a cut.
    pub(in crate::manager) fn note_bound_told(&mut self, bound: Timestamp) {
        let lead = self.lead.as_mut();
        if let Some(ahead) = lead.and_then(|lead| lead.ahead.as_mut()) {
            ahead.told = bound;
        }
    }

    /// Whether a node that comes in now could have what it stamps run soon.
    pub(in crate::manager) fn bound_is_near(&self, now: LocalTime) -> bool {
        let reading = self.lead.as_ref().map(|lead| lead.clocks.reading(now));
        let late = reading.unwrap_or(0).saturating_sub(self.bound().micros);
        late <= BOUND_LATE_MAX_MICROS
    }
}
