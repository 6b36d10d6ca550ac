//! Which recovery coordinator leads.

use manxdb_core::{LocalTime, Nanos};
use manxdb_fabric::Operation;

use crate::client_slots::{Look, Name};
use crate::membership::{
    Election, MembershipAction, MembershipDeed, Phase, Purpose, RecoveryCoordinator, write,
};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;

impl RecoveryCoordinator {
    /// Leads when the one who led has not shown for half a lease that it lives, or nobody ever has.
    /// Who has not watched the owners for a lease yet lets others go first.
    pub(super) fn stand_by(
        &mut self,
        look: &Look,
        asked: LocalTime,
        now: LocalTime,
    ) -> MembershipAction {
        let silence = self.watch.look((look.term, look.beat), asked, now);
        let began = *self.began.get_or_insert(now);
        let lease = self.ward.lease;
        let is_new = asked.since(began) < lease;
        let patience = if is_new { lease } else { Nanos(lease.0 / 2) };
        if look.term > 0 && silence < patience {
            return self.pause();
        }
        let election = Election {
            term: look.term + 1,
            shut: look.shut,
        };
        let swap = Operation::CompareSwap {
            at: self.ward.client_slots.term(),
            expected: look.term,
            new: election.term,
        };
        self.ask(MembershipDeed::Elect(election), vec![swap])
    }

    /// The term is its own, on all replicas, or another one was faster.
    pub(super) fn swapped(
        &mut self,
        now: LocalTime,
        election: Election,
        word: Option<u64>,
    ) -> MembershipAction {
        if word == Some(election.term - 1) {
            self.ask_next(now, Purpose::Lead(election))
        } else {
            self.pause()
        }
    }

    /// Shuts out the recovery coordinators that came before.
    pub(super) fn elected(&mut self, election: Election) -> MembershipAction {
        assert!(
            self.term.is_none_or(|term| term < election.term),
            "terms only grow: {} after {:?}",
            election.term,
            self.term
        );
        self.term = Some(election.term);
        let former = election.shut + 1..election.term;
        #[cfg(feature = "mutants")]
        let former = match self.mutant {
            Some(Mutant::SucceedsTheLiving) => election.term..election.term,
            _ => former,
        };
        if former.is_empty() {
            return self.be_named();
        }
        self.phase = Phase::Succeeding;
        MembershipAction::ShutOut(
            former.map(Name::RecoveryCoordinator).collect(),
            self.servers(),
        )
    }

    pub(super) fn be_named(&mut self) -> MembershipAction {
        assert!(
            self.term.is_some(),
            "a coordinator is named by the term that it has won"
        );
        self.phase = Phase::Naming;
        MembershipAction::Become(Name::RecoveryCoordinator(self.term.unwrap_or(0)))
    }

    pub(super) fn note(&mut self) -> MembershipAction {
        assert!(
            self.term.is_some(),
            "only who leads says whom it has shut out"
        );
        let shut = self.term.unwrap_or(0).saturating_sub(1);
        let note = write(self.ward.client_slots.shut(), shut);
        self.ask(MembershipDeed::Note, vec![note])
    }
}
