//! What recovery coordinators do about memory servers that are gone: they propose that one is lost.

use manxdb_fabric::{Address, Fault, ServerId};

use crate::machine::Machine;
use crate::membership::{End, MembershipAction, Phase, RecoveryCoordinator};
use crate::replicas::{Event, is_region};

impl RecoveryCoordinator {
    /// A server that is gone is given up, if others have what it has.
    pub(super) fn fail(&mut self, fault: Fault) -> MembershipAction {
        self.is_level = false;
        let (Fault::Gone(server), Some(_)) = (fault, self.ward.chart.epoch_log) else {
            return MembershipAction::End(End::Fault(fault));
        };
        if self.map.servers().any(|other| other == server) {
            return self.give_up(server);
        }
        if is_region(Address { server, offset: 0 }) {
            return MembershipAction::End(End::Fault(fault));
        }
        self.pause() // it is given up already
    }

    pub(super) fn give_up(&mut self, server: ServerId) -> MembershipAction {
        let epoch_log = self.ward.chart.epoch_log;
        let propose =
            epoch_log.and_then(|epoch_log| epoch_log.propose(&self.map, Event::Lost(server)));
        let Some(mut work) = propose else {
            return MembershipAction::End(End::Fault(Fault::Gone(server))); // there is no room for more events
        };
        match work.step(Vec::new()).done() {
            Ok(_) => self.pause(), // no proposal ends before it begins
            Err(step) => self.wait(Phase::Proposing(work), step),
        }
    }
}
