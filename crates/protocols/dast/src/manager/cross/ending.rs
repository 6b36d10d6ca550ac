//! The end of a transaction: it has run on all replicas of all regions, and all may forget it.

use crate::call::CallId;
use crate::ledger::Entry;
use crate::manager::{Effect, Manager};
use crate::message::DastMessage;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wanted::Out;

impl Manager {
    /// Tells home regions of transactions that have run on all replicas here.
    pub(in crate::manager) fn notice_what_has_run(&mut self, out: &mut Out) {
        let Some((_, position)) = self.progress() else {
            return;
        };
        let Some(lead) = &self.lead else {
            return;
        };
        let end = (position, CallId::default());
        let run: Vec<(Timestamp, CallId)> = lead.untold_ends.range(..end).copied().collect();
        for (at, id) in run {
            self.tell_end(at, id, out);
        }
    }

    fn tell_end(&mut self, at: Timestamp, id: CallId, out: &mut Out) {
        let crt = self.group.state().crts.get(&id);
        let Some(lead) = &mut self.lead else {
            return;
        };
        // Not yet one whose decision may still get lost; and the retry has to know it again first
        // when the lead is new.
        let is_early = crt.is_some_and(|crt| crt.decision.is_none());
        if is_early || (crt.is_some() && !lead.crossing.contains_key(&id)) {
            return;
        }
        lead.untold_ends.remove(&(at, id));
        let (Some(crt), region) = (crt, self.region) else {
            // An earlier leader has told it.
            return;
        };
        if crt.home == region {
            self.on_executed(id, region, out);
        } else {
            let home = self.leader_of(crt.home);
            out.send(home, DastMessage::Executed { id, region });
        }
    }

    /// At the home region: once all regions are done, all may forget it.
    pub(in crate::manager) fn on_executed(&mut self, id: CallId, region: RegionId, out: &mut Out) {
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

    pub(in crate::manager) fn forget_crossing(&mut self, id: CallId) {
        if let Some(lead) = &mut self.lead {
            lead.crossing.remove(&id);
        }
    }
}
