//! Which warden leads.

use manxdb_core::{LocalTime, Nanos};
use manxdb_fabric::Operation;

#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::seats::{Look, Name};
use crate::warden::{Deed, Election, Phase, Purpose, Warden, Wish, write};

impl Warden {
    /// Leads when the one who led has not shown for half a lease that it lives, or nobody ever has.
    /// Who has not watched the owners for a lease yet lets others go first.
    pub(super) fn stand_by(&mut self, look: &Look, asked: LocalTime, now: LocalTime) -> Wish {
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
            at: self.ward.seats.term(),
            expected: look.term,
            new: election.term,
        };
        self.ask(Deed::Elect(election), vec![swap])
    }

    /// The term is its own, on all replicas, or another one was faster.
    pub(super) fn swapped(
        &mut self,
        now: LocalTime,
        election: Election,
        word: Option<u64>,
    ) -> Wish {
        if word == Some(election.term - 1) {
            self.ask_next(now, Purpose::Lead(election))
        } else {
            self.pause()
        }
    }

    /// Shuts out the wardens that came before.
    pub(super) fn elected(&mut self, election: Election) -> Wish {
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
        Wish::ShutOut(former.map(Name::Warden).collect(), self.servers())
    }

    pub(super) fn be_named(&mut self) -> Wish {
        self.phase = Phase::Naming;
        Wish::Become(Name::Warden(self.term.unwrap_or(0)))
    }

    pub(super) fn note(&mut self) -> Wish {
        let shut = self.term.unwrap_or(0).saturating_sub(1);
        let note = write(self.ward.seats.shut(), shut);
        self.ask(Deed::Note, vec![note])
    }
}
