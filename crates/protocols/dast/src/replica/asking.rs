//! Whom a coordinator asks for the place of a call that is not of its region alone.

use std::sync::Arc;

use manxdb_core::NodeId;

use super::Replica;
use crate::call::{CallId, Planned};
use crate::message::{DastMessage, Seen};
use crate::options::Crossing;
use crate::topology::RegionId;
use crate::wanted::Out;

impl Replica {
    /// The other region in which all of a call happens, if there is one and it is to be a local call
    /// there.
    pub(super) fn region_of_all(&self, planned: &Planned) -> Option<RegionId> {
        let is_elsewhere = !planned.crosses_regions && !self.is_local(planned);
        let regions = self.shared.topology.regions_of(planned);
        let only = regions.first().copied();
        only.filter(|_| is_elsewhere && self.orders_ahead())
    }

    /// To a replica there, which coordinates it and answers the client; another one when the client
    /// asks another replica here.
    pub(super) fn pass_on(&self, region: RegionId, planned: &Planned, seen: &Seen, out: &mut Out) {
        let Some(shard) = planned.shards().next() else {
            return;
        };
        let topology = self.shared.topology;
        assert!(
            topology.region_of(shard) == region && region != self.region,
            "what is passed on happens elsewhere"
        );
        let replicas: Vec<NodeId> = topology.replicas(shard).collect();
        let place = usize::try_from(self.me.0).unwrap_or(0) % replicas.len();
        let call = Box::new(planned.call.clone());
        let after = seen.clone();
        out.send(replicas[place], DastMessage::Submit { call, after });
    }

    fn orders_ahead(&self) -> bool {
        self.shared.options.crossing == Crossing::Ahead
    }

    /// Asks for the place of a cross-region call.
    pub(super) fn ask_managers(&mut self, id: CallId, out: &mut Out) {
        if !self.orders_ahead() {
            self.ask_regions(id, out);
            return;
        }
        let Some(coordination) = self.coordinating.get_mut(&id) else {
            return;
        };
        let (planned, after) = (Arc::clone(&coordination.planned), coordination.after);
        let attempt = coordination.attempts;
        coordination.attempts += 1;
        let manager = self.leader_of(self.region, attempt);
        out.send(manager, DastMessage::Order { planned, after });
    }

    /// Asks the managers of all regions a call touches for timestamps.
    fn ask_regions(&mut self, id: CallId, out: &mut Out) {
        let topology = self.shared.topology;
        let Some(coordination) = self.coordinating.get_mut(&id) else {
            return;
        };
        let regions = topology.regions_of(&coordination.planned);
        let here = regions
            .iter()
            .copied()
            .find(|region| *region == self.region);
        let Some(home) = here.or_else(|| regions.first().copied()) else {
            return;
        };
        let attempt = coordination.attempts;
        coordination.attempts += 1;
        for region in regions {
            let manager = self.leader_of(region, attempt);
            let Some(coordination) = self.coordinating.get(&id) else {
                return;
            };
            let prepare = DastMessage::PrepareRegion {
                planned: Arc::clone(&coordination.planned),
                home,
                after: coordination.after,
            };
            out.send(manager, prepare);
        }
    }

    /// Whom to ask in a region: who leads this one, or another's first manager, which passes it on;
    /// at later attempts the others in turn.
    fn leader_of(&self, region: RegionId, attempt: usize) -> NodeId {
        if region == self.region && attempt == 0 {
            return self.leader;
        }
        let managers: Vec<NodeId> = self.shared.topology.managers(region).collect();
        managers[attempt % managers.len()]
    }
}
