//! What holds of a manager between any two steps.

mod lead;

use manxdb_core::check::ensure;

use super::copies::Copies;
use super::{Lead, Manager};
use crate::topology::Role;

impl Manager {
    /// Checks the invariants of this manager, of its group and of the ledger.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_state()
            .map_err(|broken| format!("{:?}: {broken}", self.me))
    }

    fn check_state(&self) -> Result<(), String> {
        self.group.check()?;
        self.ledger().check()?;
        self.copies.as_ref().map_or(Ok(()), Copies::check)?;
        self.check_members()?;
        let regions = self.shared.topology.all_regions();
        let count = self.shared.topology.all_regions().count();
        ensure(self.leaders.len() == count, || {
            format!(
                "{} leaders of {count} regions are known",
                self.leaders.len()
            )
        })?;
        for (leader, region) in self.leaders.iter().zip(regions) {
            ensure(
                self.shared.topology.role(*leader) == Role::Manager(region),
                || {
                    format!(
                        "{leader:?} is believed to lead region {}, of others",
                        region.0
                    )
                },
            )?;
        }
        match &self.lead {
            Some(lead) => self.check_lead(lead),
            None => Ok(()),
        }
    }

    fn check_lead(&self, lead: &Lead) -> Result<(), String> {
        let (told, reserved) = (lead.clocks.told(), self.ledger().reserved);
        ensure(self.group.leads() && lead.view == self.group.view(), || {
            format!("it leads view {}, its group does not", lead.view)
        })?;
        ensure(told <= reserved, || {
            format!("R1: a cut at {told:?} was told and only {reserved:?} is reserved")
        })?;
        let first_untold = lead.untold.values().min().copied();
        ensure(first_untold.is_none_or(|first| first > told), || {
            format!("E3: the region has passed {told:?}, {first_untold:?} was given behind it")
        })?;
        let last_untold = lead.untold.values().max().copied();
        ensure(last_untold.is_none_or(|last| last <= lead.assigned), || {
            format!(
                "R2: {last_untold:?} was given, {:?} is the last",
                lead.assigned
            )
        })?;
        let first = lead.waiting.first().copied();
        ensure(first.is_none_or(|first| first > told), || {
            format!("R3: {first:?} waits for a cut, {told:?} has passed it")
        })?;
        ensure(
            lead.effects.iter().is_sorted_by_key(|(number, _)| *number),
            || "R4: effects are out of the order of their entries".to_owned(),
        )?;
        self.check_ahead(lead)?;
        self.check_effects(lead)?;
        self.check_untold(lead)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use manxdb_core::{Actions, LocalTime, NodeId};
    use manxdb_txn::procedure::{OneShard, Registry};

    use super::*;
    use crate::call::CallId;
    use crate::node::DastNode;
    use crate::options::{Options, Shared};
    use crate::timestamp::Timestamp;
    use crate::topology::Topology;

    /// The first manager of the first of two regions, which leads.
    fn leader() -> Manager {
        let topology = Topology {
            regions: 2,
            shards_per_region: 1,
        };
        let shared = Shared {
            topology,
            options: Options::default(),
            procedures: Arc::new(Registry::default()),
            placement: Arc::new(OneShard),
        };
        let Some(region) = topology.all_regions().next() else {
            unreachable!("a topology has regions");
        };
        let me = topology.managers(region).next().unwrap_or(NodeId(0));
        let mut manager = Manager::new(me, region, 1, shared);
        manager.start(LocalTime(1_000_000), &mut Actions::<DastNode>::default());
        manager
    }

    /// What the check says of a leader whose state a defect has changed.
    fn broken(defect: impl FnOnce(&mut Manager, &mut Lead)) -> String {
        let mut manager = leader();
        assert_eq!(manager.check(), Ok(()));
        let mut lead = manager.lead.take().expect("the first manager leads");
        defect(&mut manager, &mut lead);
        manager.lead = Some(lead);
        manager.check().expect_err("the defect is found")
    }

    #[test]
    fn each_defect_of_a_leader_is_found() {
        let at = |micros| Timestamp::at(micros, 1);
        let id = CallId::default();
        assert!(broken(|_, lead| lead.view = 7).contains("its group does not"));
        assert!(broken(|_, lead| lead.clocks.tell(at(9))).contains("R1"));
        let untold = |at| {
            move |_: &mut Manager, lead: &mut Lead| {
                lead.untold.insert(id, at);
            }
        };
        assert!(broken(untold(Timestamp::ZERO)).contains("E3"));
        assert!(broken(untold(at(9))).contains("R2"));
        let passed = |_: &mut Manager, lead: &mut Lead| {
            lead.waiting.insert(Timestamp::ZERO);
        };
        assert!(broken(passed).contains("R3"));
        let twice = |lead: &mut Lead| {
            for number in [9, 8] {
                lead.effects
                    .push_back((number, super::super::Effect::Nothing));
            }
        };
        assert!(broken(|_, lead| twice(lead)).contains("R4"));
        assert!(broken(|manager, _| manager.leaders.reverse()).contains("of others"));
        assert!(broken(|manager, _| manager.leaders.clear()).contains("0 leaders"));
    }

    #[test]
    fn each_defect_of_what_waits_for_agreement_is_found() {
        let at = |micros| Timestamp::at(micros, 1);
        let (one, other) = (
            CallId::default(),
            CallId {
                number: 1,
                ..CallId::default()
            },
        );
        assert!(broken(|_, lead| lead.effects.clear()).contains("R6"));
        let early = |lead: &mut Lead| {
            lead.effects.push_front((0, super::super::Effect::Nothing));
        };
        assert!(broken(|_, lead| early(lead)).contains("R5"));
        let given = |lead: &mut Lead| {
            lead.assigned = at(9);
            lead.untold.insert(one, at(8));
        };
        assert!(broken(|_, lead| given(lead)).contains("R7"));
        assert!(broken(|_, lead| lead.reserving = false).contains("R8"));
        let twice = |lead: &mut Lead| {
            lead.untold_ends.insert((at(8), other));
            lead.untold_ends.insert((at(9), other));
        };
        assert!(broken(|_, lead| twice(lead)).contains("R10"));
        let itself = |manager: &mut Manager, lead: &mut Lead| {
            lead.regions.insert(manager.region, (at(1), at(1)));
        };
        assert!(broken(itself).contains("R11"));
        assert!(broken(|manager, _| manager.epoch = 3).contains("F2"));
    }
}
