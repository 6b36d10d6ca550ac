//! How what a leader keeps of its own relates to what is on its way to agreement, and to the ledger.

use std::collections::BTreeSet;

use manxdb_core::NodeId;
use manxdb_core::check::ensure;

use super::super::estimate::Estimate;
use super::super::{Effect, Lead, Manager};
use crate::call::CallId;
use crate::timestamp::Timestamp;
use crate::topology::MAJORITY;

impl Lead {
    /// Effects of a kind that wait for their entries.
    pub(in crate::manager) fn waiting_for(&self, is_it: fn(&Effect) -> bool) -> usize {
        let effects = self.effects.iter().map(|(_, effect)| effect);
        effects.filter(|effect| is_it(effect)).count()
    }
}

impl Manager {
    /// Who takes part in a region: its own nodes, and of each shard a majority.
    pub(super) fn check_members(&self) -> Result<(), String> {
        let (topology, members) = (self.shared.topology, &self.ledger().members);
        let all = members.live.iter().chain(&members.closing);
        let is_own = |node: &NodeId| topology.region_of_node(*node) == Some(self.region);
        ensure(all.chain(&members.joining).all(is_own), || {
            format!("M3: not all of {members:?} are of region {}", self.region.0)
        })?;
        for shard in topology.shards_of(self.region) {
            let live = topology.replicas(shard);
            let live = live.filter(|node| members.live.contains(node)).count();
            ensure(live >= MAJORITY, || {
                format!("M4: {live} replicas of shard {} take part", shard.0)
            })?;
        }
        let (tick, patience) = (
            self.shared.options.manager_tick,
            self.shared.options.suspect_after,
        );
        ensure(tick < patience, || {
            format!("M5: a node is silent for {patience:?} between two looks, {tick:?} apart")
        })?;
        self.estimates.values().try_for_each(Estimate::check)?;
        let fences = &self.ledger().fences;
        ensure(fences.is_out() == fences.is_fenced(self.region), || {
            format!("F3: who is fenced is not who is out: {:?}", fences.fenced())
        })?;
        ensure(self.epoch == fences.epoch(), || {
            let (acted, epoch) = (self.epoch, fences.epoch());
            format!("F2: it has acted upon {acted} changes, and knows of {epoch}")
        })
    }

    /// Each entry that this leader has proposed and that is not agreed on has its effect, and what
    /// waits for the effect is noted.
    pub(super) fn check_effects(&self, lead: &Lead) -> Result<(), String> {
        let committed = self.group.committed();
        let first = lead.effects.front().map(|(number, _)| *number);
        ensure(first.is_none_or(|first| first > committed), || {
            format!("R5: entry {first:?} is agreed on up to {committed}, without effect")
        })?;
        let (effects, open) = (lead.effects.len(), self.group.uncommitted().count());
        ensure(effects == open, || {
            format!("R6: {open} entries are not agreed on, and {effects} have an effect")
        })?;
        let gives = |effect: &Effect| {
            matches!(effect, Effect::TellAssigned(_) | Effect::TellOrdered { .. })
        };
        let given = lead.waiting_for(gives);
        ensure(lead.untold.len() == given, || {
            let untold = &lead.untold;
            format!("R7: {given} places are to be told, of {untold:?}")
        })?;
        let reserves = lead.waiting_for(|effect| matches!(effect, Effect::NoteReserved));
        ensure(reserves == usize::from(lead.reserving), || {
            format!("R8: {reserves} reservations of cuts are under way")
        })?;
        let freezes = lead.waiting_for(|effect| matches!(effect, Effect::Freeze));
        lead.changing.check(lead.clocks.ticks(), freezes)?;
        lead.clocks.check()
    }

    /// Timestamps and ends that this leader is to tell, beside those in the ledger.
    pub(super) fn check_untold(&self, lead: &Lead) -> Result<(), String> {
        let (untold, ledger) = (&lead.untold, self.ledger());
        let places: BTreeSet<&Timestamp> = untold.values().collect();
        ensure(places.len() == untold.len(), || {
            format!("R9: a timestamp is that of two transactions: {untold:?}")
        })?;
        let is_new = |id: &CallId| !ledger.crts.contains_key(id) && !ledger.orders.has(*id);
        ensure(untold.keys().all(is_new), || {
            format!("R9: one of {untold:?} has a place already")
        })?;
        let ends: BTreeSet<&CallId> = lead.untold_ends.iter().map(|(_, id)| id).collect();
        ensure(ends.len() == lead.untold_ends.len(), || {
            format!(
                "R10: a transaction ends at two places: {:?}",
                lead.untold_ends
            )
        })?;
        for (at, id) in &lead.untold_ends {
            let decision = ledger.crts.get(id).and_then(|crt| crt.decision);
            ensure(decision.is_none_or(|it| it.place() == *at), || {
                format!("R10: {id:?} ends at {at:?}, and it is decided as {decision:?}")
            })?;
        }
        let regions = lead.regions.keys();
        ensure(regions.clone().all(|region| *region != self.region), || {
            format!("R11: it has heard of itself as of another: {regions:?}")
        })?;
        // A region's return gives places, too.
        let (last, given) = (lead.assigned, ledger.assigned);
        ensure(lead.ahead.is_some() || last >= given, || {
            format!("R2: {last:?} is the last that was given, and {given:?} is in the ledger")
        })
    }
}
