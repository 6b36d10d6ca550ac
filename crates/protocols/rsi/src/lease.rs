//! A thread's place, as its owner has it: takes it, keeps it, leaves it; and finds it again after the
//! loss of a server.
//!
//! A lease is kept by writing a word that differs from the one before, at least every
//! [`Lease::every`]. No clock is compared with another one: whoever judges a lease sees whether the
//! word changes, and for how long it has not, by its own clock ([`crate::membership`]). Nor does an owner
//! judge by itself whether its lease holds: one that is over is shut out of all memory before
//! anything else is done about it, so what it does late has no effect, and it hears so.
//!
//! **Over replicas.** Whoever has swapped a client slot on all of them is not its owner yet. It asks those who
//! decide about losses whether the next one is undecided ([`LearnEpoch`]); then whoever restores after that
//! one finds it in the table. If it is decided, a place that was just taken is given up ([`Join`]). A
//! place that was kept is wanted again in the next epoch, for it is nobody else's ([`Rejoin`]).

mod rejoin;

use manxdb_core::check::ensure;
use std::sync::Arc;

use manxdb_core::{LocalTime, Nanos};
use manxdb_fabric::{Address, Fault, Operation, OperationOutcome};

pub use self::rejoin::{Rejoin, RejoinError, Rejoined};
use crate::client_slots::{ClientSlot, ClientSlots, Owner};
use crate::machine::{Machine, Once, Step, assert_all_answered, copy_of, only, word_of};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::replicas::{Chart, Event, Learn, LearnEpoch, Map, ReplicatedOp, Undecided};
use crate::version::{Stamp, ThreadId};

/// Why nobody gets a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum JoinError {
    /// All are taken. To be tried again when somebody has left.
    #[error("all {0} places are taken")]
    Full(u16),
    /// A server did not answer. A place that was taken all the same lapses. To be tried again when
    /// its loss is agreed on, if it is one of several.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// A server is lost, and nobody is let in until all is restored. To be tried again then.
    #[error("a memory server is lost, and what it had is not restored yet")]
    Ending,
}

/// A place that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Joined {
    /// Whose it is from now on.
    pub owner: Owner,
    /// The map of the epoch in which it is.
    pub map: Arc<Map>,
}

/// Takes a place that is free. It finds its way to the replicas by itself: what it asks for is asked
/// of servers, by a guest ([`crate::Name::Guest`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Join {
    client_slots: ClientSlots,
    chart: Chart,
    /// Where it begins to look, so that those who come at once do not all want the same.
    first: u16,
    tries: u32,
    phase: Phase,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    Learning(Learn),
    /// Whether a loss is being seen to. Asked before a place is taken, or who tries again and again
    /// meanwhile would take all of them; and after it, because only then nobody begins to.
    Asking(Option<Owner>, LearnEpoch),
    Looking(ReplicatedOp<Once>),
    Swapping(Owner, ReplicatedOp<Once>),
}

type Taken = Result<Joined, JoinError>;

impl Join {
    /// Looks from some place on, drawn by chance.
    #[must_use]
    pub fn new(client_slots: ClientSlots, chart: Chart, first: u16) -> Self {
        Self {
            client_slots,
            chart,
            first,
            tries: 0,
            phase: Phase::Begun,
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

    fn learn(&mut self) -> Step<Taken> {
        match self.chart.learn() {
            Some(learn) => self.go(Phase::Learning(learn)),
            None => self.look(),
        }
    }

    fn ask_next(&mut self, owner: Option<Owner>) -> Step<Taken> {
        let next = LearnEpoch::new(&self.chart);
        self.go(Phase::Asking(owner, next))
    }

    /// Begins what is next.
    fn go(&mut self, phase: Phase) -> Step<Taken> {
        self.phase = phase;
        self.step(Vec::new())
    }

    fn wait(&mut self, phase: Phase, step: Step<Taken>) -> Step<Taken> {
        self.phase = phase;
        step
    }

    fn ask(&self, operation: Operation, tries: u32) -> ReplicatedOp<Once> {
        let once = Once::late(vec![operation], tries);
        let spread = ReplicatedOp::new(Arc::clone(&self.chart.map), once);
        #[cfg(feature = "mutants")]
        let spread = spread.with(self.mutant);
        spread
    }

    fn look(&mut self) -> Step<Taken> {
        let look = self.ask(self.client_slots.read(), self.tries);
        self.go(Phase::Looking(look))
    }

    fn looked(&mut self, copy: &[u8]) -> Step<Taken> {
        let chairs = self.client_slots.parse(copy).chairs;
        let threads = self.client_slots.threads();
        let numbers = (0..threads).map(|step| (self.first % threads + step) % threads);
        let owner = numbers.into_iter().find_map(|number| {
            let thread = ThreadId::new(number)?;
            match chairs.get(usize::from(number))?.client_slot {
                ClientSlot::Free(after) if after < Stamp::SEQUENCE_MAX => {
                    Some(Owner { thread, after })
                }
                _ => None,
            }
        });
        let Some(owner) = owner else {
            return Step::Done(Err(JoinError::Full(threads)));
        };
        let (free, taken) = (
            ClientSlot::Free(owner.after),
            ClientSlot::Taken(owner.after),
        );
        let swap = self.client_slots.swap(owner.thread, free, taken);
        let swap = self.ask(swap, 0);
        self.go(Phase::Swapping(owner, swap))
    }

    fn swapped(&mut self, owner: Owner, word: u64) -> Step<Taken> {
        if word != ClientSlot::Free(owner.after).word() {
            self.tries += 1; // somebody else was faster
            return self.look();
        }
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::JoinsWithoutAsking) {
            return self.asked(Some(owner), Ok(None));
        }
        self.ask_next(Some(owner))
    }

    fn asked(
        &mut self,
        owner: Option<Owner>,
        next: Result<Option<Event>, Undecided>,
    ) -> Step<Taken> {
        let map = Arc::clone(&self.chart.map);
        match next {
            Ok(None) => match owner {
                Some(owner) => Step::Done(Ok(Joined { owner, map })),
                None => self.look(),
            },
            Ok(Some(event)) if !event.is_loss() => {
                // The table is where it was, and what comes after this is asked next.
                self.chart.map = Arc::new(map.after(event));
                self.ask_next(owner)
            }
            Ok(Some(_)) | Err(Undecided::Exhausted) => Step::Done(Err(JoinError::Ending)),
            Err(Undecided::Fault(fault)) => Step::Done(Err(fault.into())),
        }
    }
}

impl Machine for Join {
    type Output = Taken;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => self.learn(),
            Phase::Learning(mut work) => match work.step(outcomes).done() {
                Ok(Ok(map)) => {
                    self.chart.map = Arc::new(map);
                    self.ask_next(None)
                }
                Ok(Err(fault)) => Step::Done(Err(fault.into())),
                Err(step) => self.wait(Phase::Learning(work), step),
            },
            Phase::Looking(mut work) => match work.step(outcomes).done() {
                Ok(found) => match one(found) {
                    Ok(outcome) => self.looked(copy_of(&outcome).unwrap_or_default()),
                    Err(fault) => Step::Done(Err(fault.into())),
                },
                Err(step) => self.wait(Phase::Looking(work), step),
            },
            Phase::Swapping(owner, mut work) => match work.step(outcomes).done() {
                Ok(found) => match one(found) {
                    Ok(outcome) => self.swapped(owner, word_of(&outcome).unwrap_or(u64::MAX)),
                    Err(fault) => Step::Done(Err(fault.into())),
                },
                Err(step) => self.wait(Phase::Swapping(owner, work), step),
            },
            Phase::Asking(owner, mut work) => match work.step(outcomes).done() {
                Ok(next) => self.asked(owner, next),
                Err(step) => self.wait(Phase::Asking(owner, work), step),
            },
        }
    }

    fn check(&self) -> Result<(), String> {
        let threads = self.client_slots.threads();
        ensure(threads > 0, || "a table has slots".to_owned())?;
        let owner = match &self.phase {
            Phase::Begun => None,
            Phase::Learning(work) => return work.check(),
            Phase::Looking(work) => return work.check(),
            Phase::Asking(owner, _) => *owner,
            Phase::Swapping(owner, _) => Some(*owner),
        };
        let is_fine =
            |owner: Owner| owner.thread.number() < threads && owner.after < Stamp::SEQUENCE_MAX;
        ensure(owner.is_none_or(is_fine), || {
            format!("{owner:?} has a slot of the table, and numbers left")
        })
    }
}

/// What came of one operation.
fn one(outcomes: Vec<OperationOutcome>) -> Result<OperationOutcome, Fault> {
    assert_all_answered(&outcomes, 1);
    match only(outcomes) {
        Some(OperationOutcome::Failed(fault)) => Err(fault),
        Some(outcome) => Ok(outcome),
        None => Ok(OperationOutcome::Written), // not reached: there is one
    }
}

/// A place that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Where it is kept: on all servers that have the table.
    beats: Vec<Address>,
    last: u64,
}

impl Lease {
    /// Of the owner of a place, by the map of its epoch.
    #[must_use]
    pub fn new(client_slots: ClientSlots, owner: Owner, map: &Map) -> Self {
        let beats = map.all(client_slots.beat(owner.thread));
        let mut servers: Vec<_> = beats.iter().map(|at| at.server).collect();
        servers.sort_unstable();
        assert!(
            servers.windows(2).all(|pair| pair[0] < pair[1]),
            "a lease is kept at each server once: {servers:?}"
        );
        Self { beats, last: 0 }
    }

    /// How often a lease that lapses after so long is to be kept: three may be late.
    #[must_use]
    pub const fn every(lease: Nanos) -> Nanos {
        Nanos(lease.0 / 4)
    }

    /// Shows that the owner lives, on all replicas: one that does nothing else hears here that it is
    /// shut out, whichever server was lost. The word is the owner's clock, for people; nobody
    /// compares it with another one.
    pub fn beat(&mut self, now: LocalTime) -> Vec<Operation> {
        let before = self.last;
        self.last = now.0.max(self.last + 1);
        assert!(self.last > before, "each beat is another one: {before}");
        let write = |at: &Address| Operation::Write {
            at: *at,
            bytes: self.last.to_le_bytes().to_vec(),
        };
        self.beats.iter().map(write).collect()
    }

    /// Leaves a place, when nothing is under way any more. Not to be kept after it. To be carried out
    /// as an operation of the table's region is ([`ReplicatedOp`]).
    #[must_use]
    pub fn leave(client_slots: ClientSlots, owner: Owner) -> Operation {
        let Owner { thread, after } = owner;
        client_slots.swap(thread, ClientSlot::Taken(after), ClientSlot::Over(after))
    }
}
