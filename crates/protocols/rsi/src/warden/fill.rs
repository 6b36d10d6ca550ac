//! Copies what new replicas lack, while it leads.

use std::sync::Arc;

use manxdb_core::LocalTime;
use manxdb_fabric::{Fault, Operation, Outcome};

use crate::lease::Lease;
use crate::replicas::{Event, Refill, Region, Spread};
use crate::seats::{Look, Owner, Seat};
use crate::session::Session;
use crate::vector::Snapshot;
use crate::version::{Stamp, ThreadId};
use crate::warden::{Deed, LOOKS, Phase, Warden, Wish};
use crate::work::{Step, Work};

/// The place under which a warden copies, and what it was about when it was time to look again.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) owner: Owner,
    session: Session,
    waiting: Option<Waiting>,
}

/// A region that is being copied, and what is to be asked for next, the how manieth time.
#[derive(Debug)]
struct Waiting {
    region: usize,
    work: Box<Refill>,
    operations: Vec<Operation>,
    times: u32,
}

impl Filling {
    /// After a loss its place is one of somebody who is over.
    pub(super) fn leave(&self, look: &mut Look) {
        let Owner { thread, after } = self.owner;
        let chair = look.chairs.get_mut(usize::from(thread.number()));
        if let Some(chair) = chair.filter(|chair| chair.seat == Seat::Taken(after)) {
            chair.seat = Seat::Over(after);
        }
    }
}

/// Whether somebody has what a replica of it lacks.
fn lacks(region: &Region) -> bool {
    let replicas = region.replicas();
    let is_there = replicas.first().is_some_and(|first| first.is_whole);
    is_there && replicas.iter().any(|replica| !replica.is_whole)
}

impl Warden {
    /// Goes on with the copy of a region, begins with the next one, or takes a place for that; leaves
    /// it when all are whole.
    pub(super) fn fill(&mut self, now: LocalTime, look: &Look) -> Wish {
        let region = self.map.regions().iter().position(lacks);
        let Some(region) = region else {
            return match self.filling.take() {
                Some(filling) => {
                    let leave = Lease::leave(self.ward.seats, filling.owner);
                    self.ask(Deed::Leave, vec![leave])
                }
                None => self.pause(),
            };
        };
        match &mut self.filling {
            None => self.want_place(look),
            Some(filling) => match filling.waiting.take() {
                Some(waiting) => {
                    self.phase = Phase::Filling(waiting.region, waiting.work);
                    Wish::Ask(waiting.operations, waiting.times)
                }
                None => self.begin_to_fill(now, region),
            },
        }
    }

    /// The last that is free: others begin to look anywhere.
    fn want_place(&mut self, look: &Look) -> Wish {
        let chairs = (0..).zip(&look.chairs);
        let free = chairs.filter_map(|(number, chair)| match chair.seat {
            Seat::Free(after) if after < Stamp::SEQUENCE_MAX => {
                let thread = ThreadId::new(number)?;
                Some(Owner { thread, after })
            }
            _ => None,
        });
        let Some(owner) = free.last() else {
            return self.pause();
        };
        let (free, taken) = (Seat::Free(owner.after), Seat::Taken(owner.after));
        let swap = self.ward.seats.swap(owner.thread, free, taken);
        self.ask(Deed::Take(owner), vec![swap])
    }

    /// A place is its own.
    pub(super) fn take_place(&mut self, now: LocalTime, owner: Owner) -> Wish {
        let session = Session::new(owner.thread, self.ward.vector, owner.after);
        self.filling = session.map(|session| Filling {
            owner,
            session,
            waiting: None,
        });
        self.look(now)
    }

    fn begin_to_fill(&mut self, now: LocalTime, region: usize) -> Wish {
        let begin = self.filling.as_ref();
        let begin = begin.and_then(|filling| filling.session.begin().ok());
        let Some(begin) = begin else {
            return self.pause(); // not reached: it commits nothing
        };
        let mut work = Spread::new(Arc::clone(&self.map), begin);
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
    ) -> Wish {
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
        outcomes: Vec<Outcome>,
    ) -> Wish {
        let (operations, times) = match work.step(outcomes) {
            Step::Done(Ok(())) => return self.filled(now, region),
            Step::Done(Err(fault)) => return self.give_place_up(fault),
            Step::Ask(operations) => (operations, 0),
            Step::Again(operations, times) => (operations, times),
        };
        if now.since(self.recent).0 < self.ward.lease.0 / LOOKS {
            self.phase = Phase::Filling(region, work);
            return Wish::Ask(operations, times);
        }
        if let Some(filling) = &mut self.filling {
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
    fn filled(&mut self, now: LocalTime, region: usize) -> Wish {
        let event = u16::try_from(region).ok().map(Event::Filled);
        let annals = self.ward.chart.annals.zip(event);
        let propose = annals.and_then(|(annals, event)| annals.propose(&self.map, event));
        let Some(mut work) = propose else {
            return self.pause(); // there is no room for more events
        };
        match work.step(Vec::new()).done() {
            Ok(_) => self.look(now), // no proposal ends before it begins
            Err(step) => self.wait(Phase::Proposing(work), step),
        }
    }

    /// Whoever copies next does so under another place: locks may be left of this one, which lapses.
    fn give_place_up(&mut self, fault: Fault) -> Wish {
        self.filling = None;
        self.fail(fault)
    }
}
