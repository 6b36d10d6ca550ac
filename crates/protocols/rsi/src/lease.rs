//! A thread's place, as its owner has it: takes it, keeps it, leaves it.
//!
//! A lease is kept by writing a word that differs from the one before, at least every
//! [`Lease::every`]. No clock is compared with another one: whoever judges a lease sees whether the
//! word changes, and for how long it has not, by its own clock ([`crate::warden`]). Nor does an owner
//! judge by itself whether its lease holds: one that is over is shut out of all memory before
//! anything else is done about it, so what it does late has no effect, and it hears so.

use manxdb_core::{LocalTime, Nanos};
use manxdb_fabric::{Fault, Operation, Outcome};

use crate::seats::{Owner, Seat, Seats};
use crate::version::{Stamp, ThreadId};
use crate::work::{Step, Work};

/// Why nobody gets a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum JoinError {
    /// All are taken. To be tried again when somebody has left.
    #[error("all {0} places are taken")]
    Full(u16),
    /// The server with the table did not answer. A place that was taken all the same lapses.
    #[error("{0}")]
    Fault(#[from] Fault),
}

/// Takes a place that is free.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Join {
    seats: Seats,
    /// Where it begins to look, so that those who come at once do not all want the same.
    first: u16,
    wanted: Option<Owner>,
    tries: u32,
}

impl Join {
    /// Looks from some place on, drawn by chance.
    #[must_use]
    pub fn new(seats: Seats, first: u16) -> Self {
        Self {
            seats,
            first,
            wanted: None,
            tries: 0,
        }
    }

    fn look(&mut self) -> Step<Result<Owner, JoinError>> {
        self.wanted = None;
        let read = vec![self.seats.read()];
        if self.tries == 0 {
            Step::Ask(read)
        } else {
            Step::Again(read, self.tries)
        }
    }

    fn looked(&mut self, copy: &[u8]) -> Step<Result<Owner, JoinError>> {
        let seats = self.seats.parse(copy).seats;
        let threads = self.seats.threads();
        let numbers = (0..threads).map(|step| (self.first % threads + step) % threads);
        let owner = numbers.into_iter().find_map(|number| {
            let thread = ThreadId::new(number)?;
            match seats.get(usize::from(number))?.0 {
                Seat::Free(after) if after < Stamp::SEQUENCE_MAX => Some(Owner { thread, after }),
                _ => None,
            }
        });
        let Some(owner) = owner else {
            return Step::Done(Err(JoinError::Full(threads)));
        };
        self.wanted = Some(owner);
        let (free, taken) = (Seat::Free(owner.after), Seat::Taken(owner.after));
        Step::Ask(vec![self.seats.swap(owner.thread, free, taken)])
    }
}

impl Work for Join {
    type Output = Result<Owner, JoinError>;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        match (outcomes.first(), self.wanted) {
            (None, _) => self.look(),
            (Some(Outcome::Failed(fault)), _) => Step::Done(Err((*fault).into())),
            (Some(Outcome::Read(copy)), None) => self.looked(copy),
            (Some(Outcome::Word(word)), Some(owner)) if *word == Seat::Free(owner.after).word() => {
                Step::Done(Ok(owner))
            }
            (Some(_), _) => {
                self.tries += 1; // somebody else was faster
                self.look()
            }
        }
    }
}

/// A place that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    seats: Seats,
    owner: Owner,
    last: u64,
}

impl Lease {
    /// Of the owner of a place.
    #[must_use]
    pub fn new(seats: Seats, owner: Owner) -> Self {
        let last = 0;
        Self { seats, owner, last }
    }

    /// How often a lease that lapses after so long is to be kept: three may be late.
    #[must_use]
    pub const fn every(lease: Nanos) -> Nanos {
        Nanos(lease.0 / 4)
    }

    /// Shows that the owner lives. The word is the owner's clock, for people; nobody compares it
    /// with another one.
    pub fn beat(&mut self, now: LocalTime) -> Operation {
        self.last = now.0.max(self.last + 1);
        Operation::Write {
            at: self.seats.beat(self.owner.thread),
            bytes: self.last.to_le_bytes().to_vec(),
        }
    }

    /// Leaves the place, when nothing is under way any more. Not to be kept after it.
    #[must_use]
    pub fn leave(self) -> Operation {
        let Owner { thread, after } = self.owner;
        self.seats
            .swap(thread, Seat::Taken(after), Seat::Over(after))
    }
}
