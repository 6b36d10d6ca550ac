//! The decision: the largest of all regions' timestamps, or none, and who hears of it.

use manxdb_core::{LocalTime, NodeId};

use super::Crossing;
use crate::call::CallId;
use crate::ledger::Entry;
use crate::manager::estimate::Estimate;
use crate::manager::{Effect, Manager};
use crate::message::{DastMessage, Decision};
use crate::timestamp::Timestamp;
use crate::topology::{RegionId, Role};
use crate::wanted::Out;

impl Manager {
    pub(in crate::manager) fn on_assigned(
        &mut self,
        now: LocalTime,
        id: CallId,
        region: RegionId,
        at: Option<Timestamp>,
        out: &mut Out,
    ) {
        let decision = self.ledger().crts.get(&id).and_then(|crt| crt.decision);
        if let Some(decision) = decision {
            if region != self.region {
                out.send(
                    self.leader_of(region),
                    DastMessage::Decided { id, decision },
                );
            }
            return;
        }
        if self.ledger().refused.contains(&id) && region != self.region {
            let decision = Decision::Abort;
            out.send(
                self.leader_of(region),
                DastMessage::Decided { id, decision },
            );
            return;
        }
        let Some(lead) = &mut self.lead else {
            return;
        };
        let crossing = lead
            .crossing
            .entry(id)
            .or_insert_with(|| Crossing::new(now, false));
        crossing.assigned.insert(region, at);
        self.try_decide(now, id, out);
    }

    /// Decides once all regions have given their timestamps, or one has refused.
    pub(super) fn try_decide(&mut self, now: LocalTime, id: CallId, out: &mut Out) {
        let Some(crt) = self.ledger().crts.get(&id) else {
            return;
        };
        if crt.home != self.region || crt.decision.is_some() {
            return;
        }
        let regions = self.shared.topology.regions_of(&crt.planned);
        let Some(crossing) = self.lead.as_ref().and_then(|lead| lead.crossing.get(&id)) else {
            return;
        };
        if crossing.decided {
            return;
        }
        if crossing.assigned.values().any(Option::is_none) {
            self.abort(id, out);
            return;
        }
        let given = regions
            .iter()
            .map(|region| crossing.assigned.get(region).copied().flatten());
        let Some(given) = given.collect::<Option<Vec<Timestamp>>>() else {
            return;
        };
        let Some(at) = self.final_of(&given) else {
            return;
        };
        // The decision follows from the ledgers of all regions, so it need not be in this one
        // before it is told.
        let decision = Decision::Commit(at);
        self.propose(Entry::Decide { id, decision }, Effect::NoteDecided, out);
        self.tell_decision(now, id, decision, out);
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn final_of(&self, given: &[Timestamp]) -> Option<Timestamp> {
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::MinInsteadOfMax) {
            return given.iter().copied().min();
        }
        given.iter().copied().max()
    }

    /// Gives a transaction up: in the ledger first, then told.
    pub(super) fn abort(&mut self, id: CallId, out: &mut Out) {
        if let Some(crossing) = self
            .lead
            .as_mut()
            .and_then(|lead| lead.crossing.get_mut(&id))
        {
            crossing.decided = true;
        }
        let decision = Decision::Abort;
        self.propose(Entry::Decide { id, decision }, Effect::TellAborted(id), out);
    }

    /// The home region's decision: to the other regions, and to the nodes of this one.
    pub(in crate::manager) fn tell_decision(
        &mut self,
        now: LocalTime,
        id: CallId,
        decision: Decision,
        out: &mut Out,
    ) {
        let Some(crt) = self.ledger().crts.get(&id) else {
            return;
        };
        for region in self.shared.topology.regions_of(&crt.planned) {
            if region != self.region {
                out.send(
                    self.leader_of(region),
                    DastMessage::Decided { id, decision },
                );
            }
        }
        self.settle(now, id, decision, out);
        if decision == Decision::Abort {
            self.notice_what_has_run(out);
        }
    }

    pub(in crate::manager) fn on_decided(
        &mut self,
        now: LocalTime,
        from: NodeId,
        id: CallId,
        decision: Decision,
        out: &mut Out,
    ) {
        let Some(crt) = self.ledger().crts.get(&id) else {
            // It has run here and is forgotten, or never was here and is given up: the home region
            // need not wait.
            if let Role::Manager(home) = self.shared.topology.role(from) {
                let region = self.region;
                out.send(self.leader_of(home), DastMessage::Executed { id, region });
            }
            return;
        };
        let known = crt.decision.is_some();
        let lead = self.lead.as_ref();
        let acted = lead
            .and_then(|lead| lead.crossing.get(&id))
            .is_some_and(|crt| crt.decided);
        if known || acted {
            return;
        }
        self.propose(Entry::Decide { id, decision }, Effect::NoteDecided, out);
        self.settle(now, id, decision, out);
    }

    /// The nodes of the region hear the decision: they let go of the floor, and those that the
    /// transaction touches run it when its turn comes.
    fn settle(&mut self, now: LocalTime, id: CallId, decision: Decision, out: &mut Out) {
        let Some(crt) = self.ledger().crts.get(&id) else {
            return;
        };
        let (anticipated, home) = (crt.at, crt.home);
        for node in self.listeners() {
            #[cfg(feature = "mutants")]
            if self.shared.options.mutant == Some(crate::mutants::Mutant::LostSettle)
                && node.0 % 3 == 2
            {
                let decision = Decision::Abort;
                out.send(
                    node,
                    DastMessage::Settle {
                        id,
                        anticipated,
                        decision,
                    },
                );
                continue;
            }
            let settle = DastMessage::Settle {
                id,
                anticipated,
                decision,
            };
            out.send(node, settle);
        }
        let first = self.shared.options.first_estimate;
        let Some(lead) = &mut self.lead else {
            return;
        };
        if let Decision::Commit(at) = decision
            && at > lead.clocks.told()
        {
            lead.waiting.insert(at);
        }
        lead.untold_ends.insert((decision.place(), id));
        let crossing = lead
            .crossing
            .entry(id)
            .or_insert_with(|| Crossing::new(now, false));
        crossing.decided = true;
        if crossing.is_own && decision != Decision::Abort {
            let estimate = self
                .estimates
                .entry(home)
                .or_insert_with(|| Estimate::new(first));
            estimate.saw(now.since(crossing.since));
        }
    }

    pub(in crate::manager) fn on_ask_decision(
        &mut self,
        id: CallId,
        region: RegionId,
        out: &mut Out,
    ) {
        if let Some(crt) = self.ledger().crts.get(&id) {
            if let Some(decision) = crt.decision {
                out.send(
                    self.leader_of(region),
                    DastMessage::Decided { id, decision },
                );
            }
            return;
        }
        if let Some(at) = self.ledger().finished.get(&id) {
            let decision = Decision::Commit(*at);
            out.send(
                self.leader_of(region),
                DastMessage::Decided { id, decision },
            );
            return;
        }
        let is_under_way = self
            .lead
            .as_ref()
            .is_some_and(|lead| lead.untold.contains_key(&id));
        if !is_under_way {
            let effect = Effect::TellRefused { id, to: region };
            self.propose(Entry::Refuse { id }, effect, out);
        }
    }

    pub(in crate::manager) fn tell_refused(&mut self, id: CallId, to: RegionId, out: &mut Out) {
        if self.ledger().refused.contains(&id) {
            let decision = Decision::Abort;
            out.send(self.leader_of(to), DastMessage::Decided { id, decision });
        }
    }
}
