//! Who leads this region's managers, and whom they believe to lead those of others.

use manxdb_core::NodeId;

use super::Manager;
use crate::message::DastMessage;
use crate::topology::{RegionId, Role};
use crate::wanted::Out;

impl Manager {
    /// What came to the wrong manager goes to the one that leads.
    pub(super) fn forward(&mut self, from: NodeId, message: DastMessage, out: &mut Out) {
        let leader = self.group.leader();
        if let DastMessage::Progress { region, .. } = message {
            self.leads_region(region, from);
            return;
        }
        if matches!(message, DastMessage::Report(_) | DastMessage::Joined { .. }) {
            // The node has not heard of the new leader, perhaps because it does not count.
            self.tell_if_out(from, out);
            return;
        }
        let is_for_any = matches!(
            message,
            DastMessage::PrepareRegion { .. }
                | DastMessage::Order { .. }
                | DastMessage::Stream(_)
                | DastMessage::Assigned { .. }
                | DastMessage::Decided { .. }
                | DastMessage::AskDecision { .. }
                | DastMessage::Executed { .. }
                | DastMessage::Forget { .. }
        );
        if is_for_any && leader != self.me && from != leader {
            out.send(leader, message);
        }
    }

    /// Notes who speaks for another region, unless it is only passed on.
    pub(super) fn leads_region(&mut self, region: RegionId, node: NodeId) {
        if self.shared.topology.role(node) != Role::Manager(region) {
            return;
        }
        let place = usize::try_from(region.0).unwrap_or(usize::MAX);
        if let Some(leader) = self.leaders.get_mut(place) {
            *leader = node;
        }
    }

    pub(super) fn leader_of(&self, region: RegionId) -> NodeId {
        let place = usize::try_from(region.0).unwrap_or(usize::MAX);
        self.leaders.get(place).copied().unwrap_or(self.me)
    }
}
