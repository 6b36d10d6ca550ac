//! Transactions of several regions that wait for each other: when they may have their turns, and in which
//! order.

use std::sync::Arc;

use manxdb_common::{CallId, Planned};

use super::{Blocker, Waiting};
use crate::janus::graph::Ancestry;

impl Waiting {
    /// Gives a transaction its turn, and its ancestors before it, as far as nothing stands before.
    pub(super) fn try_crossing(&mut self, id: CallId, turns: &mut Vec<Arc<Planned>>) {
        if self.graph.had_its_turn(id) {
            return;
        }
        let cycles = match self.graph.ancestry(id, &mut self.work) {
            Ancestry::Missing(_) if self.is_hasty() => vec![vec![id]],
            Ancestry::Missing(missing) => {
                let first = missing.first().map(|parent| parent.id);
                self.missing.extend(first.map(|first| (id, first)));
                return;
            }
            Ancestry::Cycles(cycles) => cycles,
        };
        for cycle in cycles {
            if cycle.iter().all(|member| self.graph.had_its_turn(*member)) {
                continue;
            }
            if !self.may_go(&cycle) {
                return;
            }
            self.let_cycle_go(&cycle, turns);
        }
    }

    /// Whether those of a cycle that are stored here are here, and behind nothing that waits, except
    /// each other and local transactions that come behind the cycle.
    fn may_go(&self, cycle: &[CallId]) -> bool {
        let is_on_cycle = |id: CallId| cycle.binary_search(&id).is_ok();
        let stands_before = |blocker: &Blocker| {
            let Blocker::Entry(place) = blocker else {
                return true;
            };
            let Some(earlier) = self.entries.get(place) else {
                return false;
            };
            if earlier.entry.planned.crosses_regions {
                return !is_on_cycle(earlier.entry.planned.id());
            }
            let mut behind = earlier.entry.behind.iter();
            !behind.any(|parent| is_on_cycle(parent.id))
        };
        cycle.iter().all(|member| {
            let waits = self.places.get(member).and_then(|at| self.entries.get(at));
            match waits {
                Some(waits) => !waits.blockers.iter().any(stands_before),
                None => !self.graph.is_stored_on(*member, self.shard.0),
            }
        })
    }

    /// Breaks a cycle: those on it have their turns now, in the order of their identities.
    fn let_cycle_go(&mut self, members: &[CallId], turns: &mut Vec<Arc<Planned>>) {
        let cycle: Arc<[CallId]> = members.into();
        let mut order = members.to_vec();
        self.disorder(&mut order);
        for member in order {
            self.graph.had_turn(member, &cycle);
            self.open.remove(&member);
            self.missing.remove(&member);
            if let Some(place) = self.places.get(&member).copied() {
                self.let_go(place, turns);
            }
            self.unblock(Blocker::Crossing(member));
        }
    }

    /// A planted defect: transactions on a cycle keep the order of this region's log.
    #[allow(clippy::unused_self, clippy::ptr_arg)] // a planted defect asks
    fn disorder(&self, order: &mut Vec<CallId>) {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(super::super::super::SlogMutant::CycleInLogOrder) {
            order.sort_by_key(|id| self.places.get(id).copied());
        }
        assert!(!order.is_empty(), "L18: a cycle has members");
    }
}
