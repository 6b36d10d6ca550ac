//! Cross-region transactions: every touched region anticipates a timestamp, and the home region
//! takes the largest (DAST §4.3).
//!
//! The timestamps of all regions decide: once each is in its region's ledger, the transaction
//! commits at the largest of them, whoever asks. The home region may give it up instead, in its
//! ledger first, as long as it has told nobody of a commit; and a home that has never heard of it
//! refuses it for ever. So no region decides alone and none has to remember what another can be
//! asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::{LocalTime, NodeId};

use super::{Effect, Manager};
use crate::call::{CallId, Planned};
use crate::ledger::{Crt, Entry};
use crate::manager::estimate::Estimate;
use crate::message::{DastMessage, Decision};
use crate::node::Out;
use crate::timestamp::Timestamp;
use crate::topology::{RegionId, Role};

/// A cross-region transaction under way, as this leader knows it.
#[derive(Debug)]
pub(super) struct Crossing {
    since: LocalTime,
    /// This leader gave the timestamp, so no earlier one can have told of a decision.
    is_own: bool,
    /// The timestamps of the regions; none: refused.
    assigned: BTreeMap<RegionId, Option<Timestamp>>,
    executed: BTreeSet<RegionId>,
    /// The decision is acted upon.
    decided: bool,
    told_executed: bool,
}

impl Crossing {
    fn new(since: LocalTime, is_own: bool) -> Self {
        Self {
            since,
            is_own,
            assigned: BTreeMap::new(),
            executed: BTreeSet::new(),
            decided: false,
            told_executed: false,
        }
    }
}

impl Manager {
    pub(super) fn on_prepare_region(
        &mut self,
        now: LocalTime,
        planned: Arc<Planned>,
        home: RegionId,
        after: Timestamp,
        out: &mut Out,
    ) {
        let id = planned.id();
        if self.ledger().is_over(id) {
            // Its coordinator asks the replicas for what it gave.
            return;
        }
        if let Some(crt) = self.ledger().crts.get(&id) {
            let (at, home) = (crt.at, crt.home);
            self.say_assigned(now, id, home, Some(at), out);
            return;
        }
        if self.ledger().refused.contains(&id) {
            self.say_assigned(now, id, home, None, out);
            if home == self.region {
                let refusal = DastMessage::Settle {
                    id,
                    anticipated: Timestamp::ZERO,
                    decision: Decision::Abort,
                };
                out.send(planned.coordinator, refusal);
            }
            return;
        }
        if self
            .lead
            .as_ref()
            .is_none_or(|lead| lead.untold.contains_key(&id))
        {
            return;
        }
        let at = self.anticipate(now, home, after);
        let Some(lead) = &mut self.lead else {
            return;
        };
        lead.assigned = at;
        lead.untold.insert(id, at);
        let crossing = lead
            .crossing
            .entry(id)
            .or_insert_with(|| Crossing::new(now, true));
        crossing.is_own = true;
        let entry = Entry::Assign { planned, home, at };
        self.propose(entry, Effect::TellAssigned(id), out);
    }

    /// About when the decision will arrive: later than anything promised to anybody.
    fn anticipate(&self, now: LocalTime, home: RegionId, after: Timestamp) -> Timestamp {
        let first = self.shared.options.first_estimate;
        let estimate = self.estimates.get(&home).map_or(first, Estimate::span);
        let estimate = estimate.max(self.shared.options.least_estimate);
        let site = self.shared.topology.manager_site(self.region);
        let Some(lead) = &self.lead else {
            return Timestamp::MAX;
        };
        let expected = lead.clocks.reading(now) + estimate.as_micros();
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::NoPromise) {
            let early = expected.saturating_sub(2 * estimate.as_micros());
            return Timestamp::at(early.max(lead.assigned.micros + 1), site);
        }
        let behind = [lead.assigned, lead.clocks.told(), after];
        let behind = behind.iter().map(|at| at.micros + 1).max().unwrap_or(0);
        Timestamp::at(expected.max(behind), site)
    }

    /// The timestamp is in the ledger: the region hears it, and the home does.
    pub(super) fn tell_assigned(&mut self, now: LocalTime, id: CallId, out: &mut Out) {
        if let Some(lead) = &mut self.lead {
            lead.untold.remove(&id);
        }
        let Some(crt) = self.ledger().crts.get(&id).cloned() else {
            return;
        };
        self.tell_region(&crt, out);
        self.say_assigned(now, id, crt.home, Some(crt.at), out);
    }

    /// Every node of the region holds its clock below the timestamp; those that the transaction
    /// touches take it in line.
    fn tell_region(&self, crt: &Crt, out: &mut Out) {
        let topology = self.shared.topology;
        for node in self.listeners() {
            let touched = match topology.role(node) {
                Role::Replica(shard) => crt.planned.touches(shard),
                _ => false,
            };
            let at = crt.at;
            let message = if touched {
                let planned = Arc::clone(&crt.planned);
                DastMessage::PrepareCrt { planned, at }
            } else {
                let id = crt.planned.id();
                DastMessage::Floor { id, at }
            };
            out.send(node, message);
        }
    }

    /// To the home region; if that is this one, takes note.
    fn say_assigned(
        &mut self,
        now: LocalTime,
        id: CallId,
        home: RegionId,
        at: Option<Timestamp>,
        out: &mut Out,
    ) {
        let region = self.region;
        if home == region {
            self.on_assigned(now, id, region, at, out);
        } else {
            out.send(
                self.leader_of(home),
                DastMessage::Assigned { id, region, at },
            );
        }
    }

    pub(super) fn on_assigned(
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
    fn try_decide(&mut self, now: LocalTime, id: CallId, out: &mut Out) {
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
    fn abort(&mut self, id: CallId, out: &mut Out) {
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
    pub(super) fn tell_decision(
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

    pub(super) fn on_decided(
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

    /// Tells home regions of transactions that have run on all replicas here.
    pub(super) fn notice_what_has_run(&mut self, out: &mut Out) {
        let Some((_, position)) = self.progress() else {
            return;
        };
        let has_run = |crt: &Crt| match crt.decision {
            Some(Decision::Commit(at)) => at < position,
            Some(Decision::Abort) => true,
            None => false,
        };
        let all = self.ledger().crts.iter().filter(|(_, crt)| has_run(crt));
        let run: Vec<(CallId, RegionId)> = all.map(|(id, crt)| (*id, crt.home)).collect();
        for (id, home) in run {
            let Some(crossing) = self
                .lead
                .as_mut()
                .and_then(|lead| lead.crossing.get_mut(&id))
            else {
                continue;
            };
            if std::mem::replace(&mut crossing.told_executed, true) {
                continue;
            }
            let region = self.region;
            if home == region {
                self.on_executed(id, region, out);
            } else {
                out.send(self.leader_of(home), DastMessage::Executed { id, region });
            }
        }
    }

    /// At the home region: once all regions are done, all may forget it.
    pub(super) fn on_executed(&mut self, id: CallId, region: RegionId, out: &mut Out) {
        let Some(crt) = self.ledger().crts.get(&id) else {
            if region != self.region {
                out.send(self.leader_of(region), DastMessage::Forget { id });
            }
            return;
        };
        let regions = self.shared.topology.regions_of(&crt.planned);
        let Some(crossing) = self
            .lead
            .as_mut()
            .and_then(|lead| lead.crossing.get_mut(&id))
        else {
            return;
        };
        crossing.executed.insert(region);
        if !regions
            .iter()
            .all(|region| crossing.executed.contains(region))
        {
            return;
        }
        for region in regions {
            if region != self.region {
                out.send(self.leader_of(region), DastMessage::Forget { id });
            }
        }
        self.propose(Entry::Forget { id }, Effect::Nothing, out);
        self.forget_crossing(id);
    }

    pub(super) fn forget_crossing(&mut self, id: CallId) {
        if let Some(lead) = &mut self.lead {
            lead.crossing.remove(&id);
        }
    }

    pub(super) fn on_ask_decision(&mut self, id: CallId, region: RegionId, out: &mut Out) {
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

    pub(super) fn tell_refused(&mut self, id: CallId, to: RegionId, out: &mut Out) {
        if self.ledger().refused.contains(&id) {
            let decision = Decision::Abort;
            out.send(self.leader_of(to), DastMessage::Decided { id, decision });
        }
    }

    /// What has been under way for too long is asked for again, or given up.
    pub(super) fn retry_crossing(&mut self, now: LocalTime, out: &mut Out) {
        self.drop_forgotten();
        let Some(lead) = &self.lead else {
            return;
        };
        let patience = self.shared.options.retry_every * 2;
        let since = |id: &CallId| {
            let crossing = lead.crossing.get(id);
            crossing.map_or(lead.since, |crossing| crossing.since)
        };
        let late = self
            .ledger()
            .crts
            .keys()
            .filter(|id| now.since(since(id)) >= patience);
        for id in late.copied().collect::<Vec<_>>() {
            self.retry_one(now, id, out);
        }
    }

    fn drop_forgotten(&mut self) {
        let crts = &self.group.state().crts;
        if let Some(lead) = &mut self.lead {
            let untold = &lead.untold;
            lead.crossing.retain(|id, crossing| {
                let is_early = crossing.assigned.values().any(Option::is_some) && !crossing.decided;
                crts.contains_key(id) || untold.contains_key(id) || is_early
            });
        }
    }

    fn retry_one(&mut self, now: LocalTime, id: CallId, out: &mut Out) {
        let Some(crt) = self.ledger().crts.get(&id).cloned() else {
            return;
        };
        let lead_since = self.lead.as_ref().map_or(now, |lead| lead.since);
        if let Some(lead) = &mut self.lead {
            let crossing = lead
                .crossing
                .entry(id)
                .or_insert_with(|| Crossing::new(lead_since, false));
            crossing.told_executed = false;
        }
        let is_home = crt.home == self.region;
        let region = self.region;
        match (crt.decision, is_home) {
            (None, true) => self.collect_again(now, id, &crt, out),
            (None, false) => {
                let home = self.leader_of(crt.home);
                let at = Some(crt.at);
                out.send(home, DastMessage::Assigned { id, region, at });
                out.send(home, DastMessage::AskDecision { id, region });
            }
            (Some(decision), true) => {
                let executed = self.lead.as_ref().and_then(|lead| lead.crossing.get(&id));
                let executed = executed.map(|crossing| crossing.executed.clone());
                let executed = executed.unwrap_or_default();
                for other in self.shared.topology.regions_of(&crt.planned) {
                    if other != region && !executed.contains(&other) {
                        out.send(self.leader_of(other), DastMessage::Decided { id, decision });
                    }
                }
                self.notice_what_has_run(out);
            }
            (Some(_), false) => self.notice_what_has_run(out),
        }
    }

    /// The home region asks the others again; if they do not answer at all, it gives up what
    /// nobody else can have decided.
    fn collect_again(&mut self, now: LocalTime, id: CallId, crt: &Crt, out: &mut Out) {
        let give_up_after = self.shared.options.give_up_after;
        let Some(crossing) = self
            .lead
            .as_mut()
            .and_then(|lead| lead.crossing.get_mut(&id))
        else {
            return;
        };
        crossing.assigned.entry(self.region).or_insert(Some(crt.at));
        if crossing.is_own && !crossing.decided && now.since(crossing.since) >= give_up_after {
            self.abort(id, out);
            return;
        }
        let have: BTreeSet<RegionId> = crossing.assigned.keys().copied().collect();
        for region in self.shared.topology.regions_of(&crt.planned) {
            if region != self.region && !have.contains(&region) {
                let prepare = DastMessage::PrepareRegion {
                    planned: Arc::clone(&crt.planned),
                    home: self.region,
                    after: Timestamp::ZERO,
                };
                out.send(self.leader_of(region), prepare);
            }
        }
        self.try_decide(now, id, out);
    }

    /// A new leader tells its nodes all that is open.
    pub(super) fn tell_all_open(&mut self, out: &mut Out) {
        let crts: Vec<Crt> = self.ledger().crts.values().cloned().collect();
        for crt in crts {
            self.tell_region(&crt, out);
            if let Some(decision) = crt.decision {
                let settle = DastMessage::Settle {
                    id: crt.planned.id(),
                    anticipated: crt.at,
                    decision,
                };
                for node in self.listeners() {
                    out.send(node, settle.clone());
                }
            }
        }
    }
}
