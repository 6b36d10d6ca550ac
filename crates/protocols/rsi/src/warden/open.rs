//! Opens the epoch after a loss.

use std::sync::Arc;

use manxdb_fabric::{Address, Fault, Outcome};

#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::replicas::{Closed, Event, Raise, Restore};
use crate::seats::{Chair, Look, Name, Owner, Seat};
use crate::version::ThreadId;
use crate::warden::{Deed, End, Phase, Warden, Wish};
use crate::work::{Work, fault};

/// How far the opening of an epoch has come. Who dies over it is followed by one that begins anew,
/// and finds of each place what was there before or what was to be there.
#[derive(Debug)]
pub(super) struct Opening {
    /// What the table said when the loss was decided and former wardens were shut out.
    look: Look,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// All owners are being shut out.
    Fencing,
    Restoring(Box<Restore>),
    /// Writes for whom seats are kept,
    Keeping(Vec<(Address, u64)>, Raise),
    /// then the seats, and all else that the table has, on all its replicas.
    Seating(Raise),
    /// Without a loss: writes what the table has to the replicas that lack it.
    Levelling(Raise),
}

/// Threads with what a look has found of their places.
fn places(look: &Look) -> impl Iterator<Item = (ThreadId, &Chair)> {
    let chairs = (0..).zip(&look.chairs);
    chairs.filter_map(|(number, chair)| Some((ThreadId::new(number)?, chair)))
}

impl Warden {
    /// Notes what has happened; after a loss when all is restored.
    pub(super) fn open(&mut self, mut look: Look) -> Wish {
        let is_loss = self.pending.iter().copied().any(Event::is_loss);
        #[cfg(feature = "mutants")]
        let is_loss = is_loss && self.mutant != Some(Mutant::LeadsBeforeItRestores);
        if !is_loss {
            return self.announce();
        }
        if let Some(filling) = self.filling.take() {
            filling.leave(&mut look);
        }
        let owner = |(thread, chair): (ThreadId, &Chair)| match chair.seat {
            Seat::Taken(after) | Seat::Over(after) => Some(Name::Owner(Owner { thread, after })),
            // Nobody is this one yet: it would have been on all replicas before the loss was decided.
            Seat::Kept(_) | Seat::Free(_) => None,
        };
        let names: Vec<Name> = places(&look).filter_map(owner).collect();
        #[cfg(feature = "mutants")]
        let names = match self.mutant {
            Some(Mutant::RestoresUnderTheLiving) => Vec::new(),
            _ => names,
        };
        if names.is_empty() {
            return self.restore(look);
        }
        let stage = Stage::Fencing;
        self.phase = Phase::Opening(Box::new(Opening { look, stage }));
        Wish::ShutOut(names, self.servers())
    }

    pub(super) fn go_on_opening(&mut self, opening: Opening, outcomes: Vec<Outcome>) -> Wish {
        let Opening { look, stage } = opening;
        match stage {
            Stage::Fencing => match fault(&outcomes) {
                Some(fault) => self.fail(fault),
                None => self.restore(look),
            },
            Stage::Restoring(mut work) => match work.step(outcomes).done() {
                Ok(Ok(closed)) => self.keep(look, &closed),
                Ok(Err(fault)) => self.fail(fault),
                Err(step) => self.wait(at(look, Stage::Restoring(work)), step),
            },
            Stage::Keeping(seats, mut work) => match work.step(outcomes).done() {
                Ok(Ok(())) => self.seat(look, seats),
                Ok(Err(fault)) => self.fail(fault),
                Err(step) => self.wait(at(look, Stage::Keeping(seats, work)), step),
            },
            Stage::Seating(mut work) => match work.step(outcomes).done() {
                Ok(Ok(())) => self.announce(),
                Ok(Err(fault)) => self.fail(fault),
                Err(step) => self.wait(at(look, Stage::Seating(work)), step),
            },
            Stage::Levelling(mut work) => match work.step(outcomes).done() {
                Ok(Ok(())) => self.pause(),
                Ok(Err(fault)) => self.fail(fault),
                Err(step) => self.wait(at(look, Stage::Levelling(work)), step),
            },
        }
    }

    /// Whoever led before may have died over a swap that only the primary has seen.
    pub(super) fn level(&mut self, look: Look) -> Wish {
        self.is_level = true;
        let table = self.ward.seats;
        let mut words = vec![(table.term(), look.term), (table.shut(), look.shut)];
        for (thread, chair) in places(&look) {
            words.push((table.former(thread), chair.former));
            words.push((table.seat(thread), chair.seat.word()));
        }
        let mut work = Raise::new(self.on_servers(&words));
        match work.step(Vec::new()).done() {
            Ok(_) => self.pause(), // not reached: there is a term
            Err(step) => self.wait(at(look, Stage::Levelling(work)), step),
        }
    }

    /// Installs, publishes and closes all.
    fn restore(&mut self, look: Look) -> Wish {
        let logs = self.ward.logs.iter().map(|log| log.on(&self.map));
        let Some(logs) = logs.collect() else {
            let region = self.ward.vector.base().server;
            return Wish::End(End::Fault(Fault::Gone(region))); // no server has them any more
        };
        // One whose place is kept was closed before, and hears the same of its end.
        let owner = |(thread, chair): (ThreadId, &Chair)| match chair.seat {
            Seat::Taken(after) | Seat::Over(after) => Some(Owner { thread, after }),
            Seat::Kept(_) => Some(Owner {
                thread,
                after: chair.former,
            }),
            Seat::Free(_) => None,
        };
        let owners = places(&look).filter_map(owner).collect();
        let map = Arc::clone(&self.map);
        let mut work = Restore::new(map, self.ward.vector, logs, owners);
        #[cfg(feature = "mutants")]
        {
            work = work.with(self.mutant);
        }
        match work.step(Vec::new()).done() {
            Ok(_) => self.pause(), // it has a vector to read
            Err(step) => self.wait(at(look, Stage::Restoring(Box::new(work))), step),
        }
    }

    /// Seats as they are to be, on every server that has the table.
    fn keep(&mut self, look: Look, closed: &[Closed]) -> Wish {
        let table = self.ward.seats;
        let (mut formers, mut seats) = (Vec::new(), Vec::new());
        seats.push((table.term(), look.term));
        seats.push((table.shut(), look.shut));
        for (thread, chair) in places(&look) {
            let closing = closed.iter().find(|closed| closed.by.thread == thread);
            let by = closing.map_or(0, |closed| closed.by.sequence);
            let (seat, former) = match chair.seat {
                Seat::Free(number) => (Seat::Free(number), chair.former),
                Seat::Over(_) => (Seat::Free(by), chair.former),
                Seat::Kept(_) => (Seat::Kept(by), chair.former),
                Seat::Taken(after) => (Seat::Kept(by), after),
            };
            #[cfg(feature = "mutants")]
            let seat = match (seat, self.mutant) {
                (Seat::Kept(by), Some(Mutant::KeepsNoPlaces)) => Seat::Free(by),
                _ => seat,
            };
            self.buried += u64::from(matches!(chair.seat, Seat::Over(_)));
            formers.push((table.former(thread), former));
            seats.push((table.seat(thread), seat.word()));
        }
        let seats = self.on_servers(&seats);
        let mut work = Raise::new(self.on_servers(&formers));
        match work.step(Vec::new()).done() {
            Ok(_) => self.seat(look, seats), // there are none
            Err(step) => self.wait(at(look, Stage::Keeping(seats, work)), step),
        }
    }

    fn on_servers(&self, words: &[(Address, u64)]) -> Vec<(Address, u64)> {
        let places = |(at, word): &(Address, u64)| {
            let (places, word) = (self.map.all(*at), *word);
            places.into_iter().map(move |at| (at, word))
        };
        words.iter().flat_map(places).collect()
    }

    fn seat(&mut self, look: Look, seats: Vec<(Address, u64)>) -> Wish {
        let mut work = Raise::new(seats);
        match work.step(Vec::new()).done() {
            Ok(_) => self.announce(), // not reached: there is a term
            Err(step) => self.wait(at(look, Stage::Seating(work)), step),
        }
    }

    /// Says to all servers what has happened: the map may be used.
    fn announce(&mut self) -> Wish {
        let annals = self.ward.chart.annals;
        let notes = annals.map(|annals| annals.note_all(&self.map, &self.pending));
        self.opened += u64::from(self.pending.iter().copied().any(Event::is_loss));
        self.ask(Deed::Announce, notes.unwrap_or_default())
    }
}

fn at(look: Look, stage: Stage) -> Phase {
    Phase::Opening(Box::new(Opening { look, stage }))
}
