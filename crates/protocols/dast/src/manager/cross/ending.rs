//! The end of a transaction: it has run on all replicas of all regions, and all may forget it.

use crate::call::CallId;
use crate::ledger::{Crt, Entry};
use crate::manager::{Effect, Manager};
use crate::message::{DastMessage, Decision};
use crate::node::Out;
use crate::topology::RegionId;

impl Manager {
    /// Tells home regions of transactions that have run on all replicas here.
    pub(in crate::manager) fn notice_what_has_run(&mut self, out: &mut Out) {
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
