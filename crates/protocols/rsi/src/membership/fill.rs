//! Copies what new replicas lack, while it leads.

use std::sync::Arc;

use manxdb_core::LocalTime;
use manxdb_core::check::ensure;
use manxdb_fabric::{Fault, Operation, OperationOutcome};

use crate::client_slots::{ClientSlot, Look, Owner};
use crate::lease::Lease;
use crate::machine::{Machine, Step};
use crate::membership::{LOOKS, MembershipAction, MembershipDeed, Phase, RecoveryCoordinator};
use crate::replicas::{Event, Refill, ReplicatedOp, ReplicatedRegion};
use crate::session::Session;
use crate::vector::Snapshot;
use crate::version::{Stamp, ThreadId};

/// The place under which a recovery coordinator copies, and what it was about when it was time to look again.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) owner: Owner,
    session: Session,
    waiting: Option<Waiting>,
}

/// A region that is being copied, what is to be asked for next, and how many attempts were made.
#[derive(Debug)]
struct Waiting {
    region: usize,
    work: Box<Refill>,
    operations: Vec<Operation>,
    times: u32,
}

impl Filling {
    /// What is true of it between two steps of its recovery coordinator.
    pub(super) fn check(&self, threads: u16) -> Result<(), String> {
        let Owner { thread, after } = self.owner;
        ensure(thread.number() < threads, || {
            format!("regions are copied under slot {thread} of {threads}")
        })?;
        let next = Stamp {
            thread,
            sequence: after + 1,
        };
        ensure(self.session.holder() == next, || {
            let holder = self.session.holder();
            format!("who copies regions commits nothing: it locks as {holder}, not as {next}")
        })
    }

    /// After a loss its place is one of somebody who is over.
    pub(super) fn leave(&self, look: &mut Look) {
        let Owner { thread, after } = self.owner;
        let chair = look.chairs.get_mut(usize::from(thread.number()));
        if let Some(chair) = chair.filter(|chair| chair.client_slot == ClientSlot::Taken(after)) {
            chair.client_slot = ClientSlot::Over(after);
        }
    }
}

/// Whether somebody has what a replica of it lacks.
fn lacks(region: &ReplicatedRegion) -> bool {
    let replicas = region.replicas();
    let is_there = replicas.first().is_some_and(|first| first.is_whole);
    is_there && replicas.iter().any(|replica| !replica.is_whole)
}

impl RecoveryCoordinator {
    /// Goes on with the copy of a region, begins with the next one, or takes a place for that; leaves
    /// it when all are whole.
    pub(super) fn fill(&mut self, now: LocalTime, look: &Look) -> MembershipAction {
        let region = self.map.regions().iter().position(lacks);
        let Some(region) = region else {
            return match self.filling.take() {
                Some(filling) => {
                    let leave = Lease::leave(self.ward.client_slots, filling.owner);
                    self.ask(MembershipDeed::Leave, vec![leave])
                }
                None => self.pause(),
            };
        };
        match &mut self.filling {
            None => self.want_place(look),
            Some(filling) => match filling.waiting.take() {
                Some(waiting) => {
                    self.phase = Phase::Filling(waiting.region, waiting.work);
                    MembershipAction::Ask(waiting.operations, waiting.times)
                }
                None => self.begin_to_fill(now, region),
            },
        }
    }

    /// The last that is free: others begin to look anywhere.
    fn want_place(&mut self, look: &Look) -> MembershipAction {
        let chairs = (0..).zip(&look.chairs);
        let free = chairs.filter_map(|(number, chair)| match chair.client_slot {
            ClientSlot::Free(after) if after < Stamp::SEQUENCE_MAX => {
                let thread = ThreadId::new(number)?;
                Some(Owner { thread, after })
            }
            _ => None,
        });
        let Some(owner) = free.last() else {
            return self.pause();
        };
        let (free, taken) = (
            ClientSlot::Free(owner.after),
            ClientSlot::Taken(owner.after),
        );
        let swap = self.ward.client_slots.swap(owner.thread, free, taken);
        self.ask(MembershipDeed::Take(owner), vec![swap])
    }

    /// A place is its own.
    pub(super) fn take_place(&mut self, now: LocalTime, owner: Owner) -> MembershipAction {
        assert!(self.filling.is_none(), "who copies regions has one slot");
        let session = Session::new(owner.thread, self.ward.vector, owner.after);
        self.filling = session.map(|session| Filling {
            owner,
            session,
            waiting: None,
        });
        assert!(
            self.filling.is_some(),
            "the vector has a line for slot {}",
            owner.thread
        );
        self.look(now)
    }

    fn begin_to_fill(&mut self, now: LocalTime, region: usize) -> MembershipAction {
        let begin = self.filling.as_ref();
        let begin = begin.and_then(|filling| filling.session.begin().ok());
        let Some(begin) = begin else {
            return self.pause(); // not reached: it commits nothing
        };
        let mut work = ReplicatedOp::new(Arc::clone(&self.map), begin);
        match work.step(Vec::new()).done() {
            Ok(begun) => self.begun(now, region, begun),
            Err(step) => self.wait(Phase::Beginning(region, work), step),
        }
    }

    pub(super) fn begun(
        &mut self,
        now: LocalTime,
        region: usize,
        begun: Result<Snapshot, Fault>,
    ) -> MembershipAction {
        let snapshot = match begun {
            Ok(snapshot) => snapshot,
            Err(fault) => return self.give_place_up(fault),
        };
        let Some(stamp) = self
            .filling
            .as_ref()
            .map(|filling| filling.session.holder())
        else {
            return self.look(now); // not reached: it has a place
        };
        let map = Arc::clone(&self.map);
        let work = Refill::new(map, region, stamp, snapshot);
        #[cfg(feature = "mutants")]
        let work = work.with(self.mutant);
        self.go_on_filling(now, region, Box::new(work), Vec::new())
    }

    /// A step of a copy, unless it is time to look again.
    pub(super) fn go_on_filling(
        &mut self,
        now: LocalTime,
        region: usize,
        mut work: Box<Refill>,
        outcomes: Vec<OperationOutcome>,
    ) -> MembershipAction {
        let (operations, times) = match work.step(outcomes) {
            Step::Done(Ok(())) => return self.filled(now, region),
            Step::Done(Err(fault)) => return self.give_place_up(fault),
            Step::Post(operations) => (operations, 0),
            Step::Backoff(operations, times) => (operations, times),
        };
        if now.since(self.recent).0 < self.ward.lease.0 / LOOKS {
            self.phase = Phase::Filling(region, work);
            return MembershipAction::Ask(operations, times);
        }
        assert!(self.filling.is_some(), "who copies a region has a slot");
        if let Some(filling) = &mut self.filling {
            assert!(filling.waiting.is_none(), "one region is copied at a time");
            filling.waiting = Some(Waiting {
                region,
                work,
                operations,
                times,
            });
        }
        self.look(now)
    }

    /// A region is whole, which is to be agreed on.
    fn filled(&mut self, now: LocalTime, region: usize) -> MembershipAction {
        let event = u16::try_from(region).ok().map(Event::Filled);
        let epoch_log = self.ward.chart.epoch_log.zip(event);
        let propose = epoch_log.and_then(|(epoch_log, event)| epoch_log.propose(&self.map, event));
        let Some(mut work) = propose else {
            return self.pause(); // there is no room for more events
        };
        match work.step(Vec::new()).done() {
            Ok(_) => self.look(now), // no proposal ends before it begins
            Err(step) => self.wait(Phase::Proposing(work), step),
        }
    }

    /// Whoever copies next does so under another place: locks may be left of this one, which lapses.
    fn give_place_up(&mut self, fault: Fault) -> MembershipAction {
        self.filling = None;
        self.fail(fault)
    }
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::{Address, ServerId};

    use super::*;
    use crate::vector::Vector;

    #[test]
    fn who_copies_regions_and_commits_is_found() {
        let base = Address {
            server: ServerId(0),
            offset: 0,
        };
        let vector = Vector::new(base, 4).unwrap();
        let thread = ThreadId::new(2).unwrap();
        let filling = |after, sequence| Filling {
            owner: Owner { thread, after },
            session: Session::new(thread, vector, sequence).unwrap(),
            waiting: None,
        };
        assert_eq!(filling(7, 7).check(4), Ok(()));
        let committed = filling(7, 8).check(4).unwrap_err();
        assert!(committed.contains("commits nothing"), "{committed}");
        let elsewhere = filling(7, 7).check(2).unwrap_err();
        assert!(elsewhere.contains("slot 2 of 2"), "{elsewhere}");
    }
}
