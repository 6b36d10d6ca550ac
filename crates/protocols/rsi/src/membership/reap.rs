//! What becomes of owners that are over while no server is lost.

use std::sync::Arc;

use manxdb_core::LocalTime;
use manxdb_fabric::{Fault, OperationOutcome};

use crate::client_slots::{ClientSlot, Look, Name, Owner};
use crate::machine::Machine;
use crate::membership::{End, MembershipAction, MembershipDeed, Phase, RecoveryCoordinator};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::recover::{Recover, Recovered};
use crate::replicas::ReplicatedOp;
use crate::version::ThreadId;

impl RecoveryCoordinator {
    /// Buries the next owner that is over, by turns: one whose servers do not answer keeps nobody
    /// else waiting. None: nobody is.
    pub(super) fn reap(&mut self, look: &Look, lapsed: &[bool]) -> Option<MembershipAction> {
        let threads = self.ward.client_slots.threads();
        for step in 1..=threads {
            let number = (self.turn + step) % threads;
            let place = usize::from(number);
            let client_slot = look.chairs.get(place).map(|chair| chair.client_slot);
            let Some((thread, client_slot)) = ThreadId::new(number).zip(client_slot) else {
                continue;
            };
            let is_lapsed = lapsed.get(place) == Some(&true);
            match client_slot {
                ClientSlot::Taken(after) | ClientSlot::Kept(after) if is_lapsed => {
                    self.turn = number;
                    let owner = Owner { thread, after };
                    let swap =
                        self.ward
                            .client_slots
                            .swap(thread, client_slot, ClientSlot::Over(after));
                    return Some(self.ask(MembershipDeed::Condemn(owner, client_slot), vec![swap]));
                }
                ClientSlot::Over(after) => {
                    self.turn = number;
                    return Some(self.shut_out(Owner { thread, after }));
                }
                _ => {}
            }
        }
        None
    }

    pub(super) fn condemned(
        &mut self,
        now: LocalTime,
        owner: Owner,
        client_slot: ClientSlot,
        word: Option<u64>,
    ) -> MembershipAction {
        let found = word.map(ClientSlot::of_word);
        if found == Some(client_slot) || found == Some(ClientSlot::Over(owner.after)) {
            self.shut_out(owner)
        } else {
            self.look(now) // it is not as it was
        }
    }

    fn shut_out(&mut self, owner: Owner) -> MembershipAction {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::RecoversTheLiving) {
            return self.begin_to_recover(owner);
        }
        self.phase = Phase::ShuttingOut(owner);
        MembershipAction::ShutOut(vec![Name::Owner(owner)], self.servers())
    }

    pub(super) fn begin_to_recover(&mut self, owner: Owner) -> MembershipAction {
        let place = usize::from(owner.thread.number());
        let log = self.ward.logs.get(place);
        let Some(log) = log.and_then(|log| self.map.log_on_servers(log)) else {
            return self.pause(); // the ward has fewer logs than client slots, or no server has them
        };
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut))]
        let mut recover = Recover::new(owner.thread, self.ward.vector, log);
        #[cfg(feature = "mutants")]
        {
            recover.mutant = self.mutant;
        }
        let spread = ReplicatedOp::new(Arc::clone(&self.map), recover);
        self.recover(owner, Box::new(spread), Vec::new())
    }

    pub(super) fn recover(
        &mut self,
        owner: Owner,
        mut work: Box<ReplicatedOp<Recover>>,
        outcomes: Vec<OperationOutcome>,
    ) -> MembershipAction {
        let recovered = match work.step(outcomes).done() {
            Ok(recovered) => recovered,
            Err(step) => return self.wait(Phase::Recovering(owner, work), step),
        };
        match recovered {
            Ok(recovered) => self.free(owner, recovered),
            // Without replicas it will be its turn again.
            Err(Fault::Gone(_)) if self.ward.chart.epoch_log.is_none() => self.pause(),
            Err(fault @ Fault::Gone(_)) => self.fail(fault),
            Err(fault) => MembershipAction::End(End::Fault(fault)),
        }
    }

    fn free(&mut self, owner: Owner, recovered: Recovered) -> MembershipAction {
        let last = recovered.last.sequence.max(owner.after);
        assert_eq!(
            recovered.last.thread, owner.thread,
            "a place is freed behind the last transaction of its own thread"
        );
        let (over, free) = (ClientSlot::Over(owner.after), ClientSlot::Free(last));
        let swap = self.ward.client_slots.swap(owner.thread, over, free);
        self.ask(MembershipDeed::Free(owner), vec![swap])
    }
}
