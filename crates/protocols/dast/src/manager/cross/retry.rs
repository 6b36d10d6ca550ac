//! What has been under way for too long: asked for again, or given up.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_core::LocalTime;

use super::Crossing;
use crate::call::CallId;
use crate::ledger::Crt;
use crate::manager::Manager;
use crate::message::DastMessage;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wanted::Out;

impl Manager {
    /// What has been under way for too long is asked for again, or given up.
    pub(in crate::manager) fn retry_crossing(&mut self, now: LocalTime, out: &mut Out) {
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
            lead.crossing
                .entry(id)
                .or_insert_with(|| Crossing::new(lead_since, false));
            let decided = crt.decision.map(|decision| (decision.place(), id));
            lead.untold_ends.extend(decided);
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
}
