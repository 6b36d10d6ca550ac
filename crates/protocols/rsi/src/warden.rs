//! Who decides that a thread's owner is dead, has it shut out, recovers it, and frees its place.
//!
//! Any number of wardens watch the table ([`crate::seats`]); one leads. All that is decided is in the
//! table, so a warden that fails is followed by another that knows nothing of it:
//!
//! | what is done | so that |
//! |---|---|
//! | a beat that has not changed for a lease: the seat is swapped to `Over` | it is decided once, and for whoever leads next too |
//! | all servers shut the owner out, for good | nothing that it does late has an effect |
//! | what it had committed is installed, its number closed ([`Recover`]) | its locks are nobody's |
//! | the seat is swapped to `Free`, with that number | the next owner is another one |
//!
//! Wardens judge each other in the same way, after half a lease. Who takes over swaps the term, and
//! has all wardens of earlier terms shut out before it does anything else: two never recover at a
//! time, and every owner of a place is buried once. A warden that stands by watches the owners as
//! well, so that of those who die together with the one who leads none is noticed later.
//!
//! **Time.** A span is measured by one clock, the warden's own, which may stand still, be slow or go
//! back, but is not to jump ahead: it is a monotonic one. A lapse is counted from the moment at which
//! a beat had been seen to the one at which it was asked for again, so that neither a read that takes
//! long nor a warden that stood still costs anybody the lease. Whoever dies is noticed within the
//! lease and two looks, a sixteenth of it each; when the warden dies over it, it takes another half
//! of a lease and two looks until the next one goes on. So a place is free, and its locks in nobody's
//! way, less than two leases after its owner has died, while one warden is left and servers answer.
//!
//! A warden does one thing at a time: it says what it wishes, and hears when that is done.

use manxdb_core::{LocalTime, Nanos};
use manxdb_fabric::{Address, Fault, Operation, Outcome};

use crate::log::Log;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::recover::{Recover, Recovered};
use crate::seats::{Look, Name, Owner, Seat, Seats};
use crate::vector::Vector;
use crate::version::ThreadId;
use crate::work::{Step, Work};

/// Looks at the table while a lease lasts.
const LOOKS: u64 = 16;

/// What a warden is to know.
#[derive(Debug, Clone)]
pub struct Ward {
    /// The table.
    pub seats: Seats,
    /// The vector of the same threads.
    pub vector: Vector,
    /// Where each of them logs.
    pub logs: Vec<Log>,
    /// Who does not show for this long that it lives is dead. Owners keep their leases four times
    /// as often ([`crate::Lease::every`]).
    pub lease: Nanos,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Nothing, for so long; then [`Heard::Done`].
    Pause(Nanos),
    /// These operations, all at once, after a pause if they are to be done again the how manieth
    /// time; then [`Heard::Outcomes`].
    Ask(Vec<Operation>, u32),
    /// All memory servers are to shut somebody out for good. [`Heard::Done`] when each has, or is
    /// itself gone for good.
    ShutOut(Name),
    /// From now on operations are this one's, whom servers can shut out; then [`Heard::Done`]. A
    /// server that does not let it in is a fault as any other.
    Become(Name),
    /// Nothing more.
    End(End),
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It is done.
    Done,
    /// This has come of the operations.
    Outcomes(Vec<Outcome>),
}

/// Why a warden ends. Another one may be begun in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// Another one leads.
    #[error("another warden leads, in term {0}")]
    Deposed(u64),
    /// The server with the table does not answer, or has shut this warden out for another.
    #[error("{0}")]
    Fault(Fault),
}

/// One of those who watch.
#[derive(Debug)]
pub struct Warden {
    ward: Ward,
    /// It leads; none: it stands by.
    term: Option<u64>,
    phase: Phase,
    watches: Vec<Watch>,
    /// Of the warden that leads.
    watch: Watch,
    /// When it looked first.
    began: Option<LocalTime>,
    /// Its own beat.
    last: u64,
    /// The thread that was looked after last.
    turn: u16,
    buried: u64,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

#[derive(Debug)]
enum Phase {
    Pausing,
    /// Reads the table, which was asked for at this time.
    Looking(LocalTime),
    /// Swaps the term for the next one, this; up to the other wardens are shut out.
    Electing(u64, u64),
    /// Shuts out the wardens of this term and of later ones.
    Succeeding(u64),
    /// Takes the name of its term.
    Naming,
    /// Writes up to where wardens are shut out.
    Noting,
    Condemning(Owner),
    ShuttingOut(Owner),
    Recovering(Owner, Box<Recover>),
    Freeing(Owner),
}

/// A beat that is watched.
#[derive(Debug, Clone, Copy, Default)]
struct Watch {
    /// Whose it is, and what it was.
    seen: Option<(u64, u64)>,
    /// When it was seen so first, or a little later.
    since: LocalTime,
}

impl Watch {
    /// Takes a look that was asked for at one time and answered at another. For how long at least
    /// nothing has changed.
    fn look(&mut self, found: (u64, u64), asked: LocalTime, answered: LocalTime) -> Nanos {
        if self.seen == Some(found) {
            return asked.since(self.since);
        }
        self.seen = Some(found);
        self.since = answered;
        Nanos::ZERO
    }
}

impl Warden {
    /// One that stands by, as a guest.
    #[must_use]
    pub fn new(ward: Ward) -> Self {
        let seats = usize::from(ward.seats.threads());
        Self {
            ward,
            term: None,
            phase: Phase::Pausing,
            watches: vec![Watch::default(); seats],
            watch: Watch::default(),
            began: None,
            last: 0,
            turn: 0,
            buried: 0,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// The same with a defect.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    /// The term in which it leads; none: it stands by.
    #[must_use]
    pub fn term(&self) -> Option<u64> {
        self.term
    }

    /// Owners that it has recovered and whose places it has freed.
    #[must_use]
    pub fn buried(&self) -> u64 {
        self.buried
    }

    /// Goes on; the first time with [`Heard::Done`]. After [`Wish::End`] it is not to be called.
    pub fn step(&mut self, now: LocalTime, heard: Heard) -> Wish {
        let outcomes = match heard {
            Heard::Done => Vec::new(),
            Heard::Outcomes(outcomes) => outcomes,
        };
        match std::mem::replace(&mut self.phase, Phase::Pausing) {
            Phase::Recovering(owner, work) => self.recover(owner, work, outcomes),
            phase => match fault(&outcomes) {
                Some(fault) => Wish::End(End::Fault(fault)),
                None => self.proceed(now, phase, &outcomes),
            },
        }
    }

    fn proceed(&mut self, now: LocalTime, phase: Phase, outcomes: &[Outcome]) -> Wish {
        let word = match outcomes.first() {
            Some(Outcome::Word(word)) => Some(*word),
            _ => None,
        };
        match phase {
            Phase::Pausing | Phase::Noting => self.look(now),
            Phase::Looking(asked) => match outcomes.first() {
                Some(Outcome::Read(copy)) => self.looked(asked, now, copy),
                _ => self.pause(), // no carrier answers a read otherwise
            },
            Phase::Electing(term, shut) if word == Some(term - 1) => {
                self.term = Some(term);
                self.succeed(shut + 1)
            }
            Phase::Electing(..) => self.pause(), // another one was faster
            Phase::Succeeding(former) => self.succeed(former + 1),
            Phase::Naming => self.note(),
            Phase::Condemning(owner) => self.condemned(now, owner, word),
            Phase::ShuttingOut(owner) => self.begin_to_recover(owner),
            Phase::Freeing(owner) => {
                self.buried += u64::from(word == Some(Seat::Over(owner.after).word()));
                self.look(now)
            }
            Phase::Recovering(..) => self.pause(), // it is handled before
        }
    }

    fn ask(&mut self, phase: Phase, operations: Vec<Operation>) -> Wish {
        self.phase = phase;
        Wish::Ask(operations, 0)
    }

    fn pause(&mut self) -> Wish {
        self.phase = Phase::Pausing;
        Wish::Pause(Nanos(self.ward.lease.0 / LOOKS))
    }

    /// Reads the table; who leads shows that it lives.
    fn look(&mut self, now: LocalTime) -> Wish {
        let mut operations = vec![self.ward.seats.read()];
        if self.term.is_some() {
            self.last = now.0.max(self.last + 1);
            operations.push(write(self.ward.seats.term_beat(), self.last));
        }
        self.ask(Phase::Looking(now), operations)
    }

    fn looked(&mut self, asked: LocalTime, now: LocalTime, copy: &[u8]) -> Wish {
        let look = self.ward.seats.parse(copy);
        let lapsed = self.lapsed(&look, asked, now);
        match self.term {
            Some(term) if term != look.term => Wish::End(End::Deposed(look.term)),
            Some(_) => self.lead(&look, &lapsed),
            None => self.stand_by(&look, asked, now),
        }
    }

    /// Which owners have not shown for a lease that they live.
    fn lapsed(&mut self, look: &Look, asked: LocalTime, now: LocalTime) -> Vec<bool> {
        let lease = self.ward.lease;
        let seats = look.seats.iter().zip(&mut self.watches);
        let judge = |((seat, beat), watch): (&(Seat, u64), &mut Watch)| {
            #[cfg(feature = "mutants")]
            match self.mutant {
                Some(Mutant::BelievesClocks) => {
                    return matches!(seat, Seat::Taken(_)) && now.since(LocalTime(*beat)) >= lease;
                }
                Some(Mutant::CountsTheWait) => {
                    return watch.look((seat.word(), *beat), now, asked) >= lease;
                }
                _ => {}
            }
            watch.look((seat.word(), *beat), asked, now) >= lease
        };
        seats.map(judge).collect()
    }

    /// Leads when the one who led has not shown for half a lease that it lives, or nobody ever has.
    /// Who has not watched the owners for a lease yet lets others go first.
    fn stand_by(&mut self, look: &Look, asked: LocalTime, now: LocalTime) -> Wish {
        let silence = self.watch.look((look.term, look.beat), asked, now);
        let began = *self.began.get_or_insert(now);
        let lease = self.ward.lease;
        let is_new = asked.since(began) < lease;
        let patience = if is_new { lease } else { Nanos(lease.0 / 2) };
        if look.term > 0 && silence < patience {
            return self.pause();
        }
        let term = look.term + 1;
        let swap = Operation::CompareSwap {
            at: self.ward.seats.term(),
            expected: look.term,
            new: term,
        };
        self.ask(Phase::Electing(term, look.shut), vec![swap])
    }

    /// Shuts out the wardens from this term on that came before.
    fn succeed(&mut self, former: u64) -> Wish {
        let term = self.term.unwrap_or(0);
        #[cfg(feature = "mutants")]
        let former = match self.mutant {
            Some(Mutant::SucceedsTheLiving) => term,
            _ => former,
        };
        if former < term {
            self.phase = Phase::Succeeding(former);
            return Wish::ShutOut(Name::Warden(former));
        }
        self.phase = Phase::Naming;
        Wish::Become(Name::Warden(term))
    }

    fn note(&mut self) -> Wish {
        let shut = self.term.unwrap_or(0).saturating_sub(1);
        let note = write(self.ward.seats.shut(), shut);
        self.ask(Phase::Noting, vec![note])
    }

    /// Buries the next owner that is over, by turns: one whose servers do not answer keeps nobody
    /// else waiting.
    fn lead(&mut self, look: &Look, lapsed: &[bool]) -> Wish {
        let threads = self.ward.seats.threads();
        for step in 1..=threads {
            let number = (self.turn + step) % threads;
            let place = usize::from(number);
            let seat = look.seats.get(place).map(|(seat, _)| *seat);
            let Some((thread, seat)) = ThreadId::new(number).zip(seat) else {
                continue;
            };
            let is_lapsed = lapsed.get(place) == Some(&true);
            match seat {
                Seat::Taken(after) if is_lapsed => {
                    self.turn = number;
                    let owner = Owner { thread, after };
                    let swap = self.ward.seats.swap(thread, seat, Seat::Over(after));
                    return self.ask(Phase::Condemning(owner), vec![swap]);
                }
                Seat::Over(after) => {
                    self.turn = number;
                    return self.shut_out(Owner { thread, after });
                }
                _ => {}
            }
        }
        self.pause()
    }

    fn condemned(&mut self, now: LocalTime, owner: Owner, word: Option<u64>) -> Wish {
        match word.map(Seat::of_word) {
            Some(Seat::Taken(after) | Seat::Over(after)) if after == owner.after => {
                self.shut_out(owner)
            }
            _ => self.look(now), // it is not as it was
        }
    }

    fn shut_out(&mut self, owner: Owner) -> Wish {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::RecoversTheLiving) {
            return self.begin_to_recover(owner);
        }
        self.phase = Phase::ShuttingOut(owner);
        Wish::ShutOut(Name::Owner(owner))
    }

    fn begin_to_recover(&mut self, owner: Owner) -> Wish {
        let place = usize::from(owner.thread.number());
        let Some(log) = self.ward.logs.get(place).cloned() else {
            return self.pause(); // the ward has fewer logs than seats
        };
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut))]
        let mut recover = Recover::new(owner.thread, self.ward.vector, log);
        #[cfg(feature = "mutants")]
        {
            recover.mutant = self.mutant;
        }
        self.recover(owner, Box::new(recover), Vec::new())
    }

    fn recover(&mut self, owner: Owner, mut work: Box<Recover>, outcomes: Vec<Outcome>) -> Wish {
        match work.step(outcomes) {
            Step::Ask(operations) => self.ask(Phase::Recovering(owner, work), operations),
            Step::Again(operations, times) => {
                self.phase = Phase::Recovering(owner, work);
                Wish::Ask(operations, times)
            }
            Step::Done(Ok(recovered)) => self.free(owner, recovered),
            Step::Done(Err(Fault::Gone(_))) => self.pause(), // it will be its turn again
            Step::Done(Err(fault)) => Wish::End(End::Fault(fault)),
        }
    }

    fn free(&mut self, owner: Owner, recovered: Recovered) -> Wish {
        let last = recovered.last.sequence.max(owner.after);
        let (over, free) = (Seat::Over(owner.after), Seat::Free(last));
        let swap = self.ward.seats.swap(owner.thread, over, free);
        self.ask(Phase::Freeing(owner), vec![swap])
    }
}

fn write(at: Address, word: u64) -> Operation {
    let bytes = word.to_le_bytes().to_vec();
    Operation::Write { at, bytes }
}

fn fault(outcomes: &[Outcome]) -> Option<Fault> {
    outcomes.iter().find_map(|outcome| match outcome {
        Outcome::Failed(fault) => Some(*fault),
        _ => None,
    })
}
