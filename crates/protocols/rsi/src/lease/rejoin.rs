//! An owner that lives finds its place again after the loss of a server.

use manxdb_core::check::ensure;
use std::sync::Arc;

use manxdb_fabric::{Address, Fault, Operation, OperationOutcome, WORD, WORD_LENGTH};

use crate::client_slots::{ClientSlot, ClientSlots, Owner};
use crate::lease::one;
use crate::machine::{Machine, Once, Step, copy_of};
use crate::replicas::{
    Chart, Closed, Event, Learn, LearnEpoch, Map, RaiseMax, ReplicatedOp, Undecided,
};
use crate::version::Stamp;

/// Why an owner does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RejoinError {
    /// It is over: its lease had lapsed, or it had left. What became of the commit that it was in, if
    /// it was in one, is not known any more.
    #[error("the place of thread {} after {} is somebody else's", .0.thread, .0.after)]
    Over(Owner),
    /// No server that it knew answers.
    #[error("{0}")]
    Fault(#[from] Fault),
}

/// An owner that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rejoined {
    /// Whose the place is from now on: the same thread's, behind its closing.
    pub owner: Owner,
    /// The map of the epoch.
    pub map: Arc<Map>,
    /// How it ended before: whether the commit that it was in is there.
    pub closed: Closed,
}

/// What an owner does that was shut out, or has met a server that is gone: waits until an epoch
/// begins in which its place is kept for it, and takes it. By a guest, at servers, as
/// [`Join`](crate::Join); it does not keep its lease meanwhile. It ends at the latest a lease after
/// that, or after its lease has lapsed in the epoch that it knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rejoin {
    client_slots: ClientSlots,
    chart: Chart,
    owner: Owner,
    /// What it has heard of its end.
    closed: Option<Closed>,
    /// Under which number it has wanted its place in an epoch that ended before it was anybody.
    wanted: Option<u64>,
    /// The epochs up to this one are over for it.
    past: u64,
    rounds: u32,
    phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Begun,
    Learning(Learn),
    Looking(ReplicatedOp<Once>),
    /// Swaps what is kept.
    Swapping(u64, ReplicatedOp<Once>),
    /// Makes sure that all replicas say so.
    Raising(u64, RaiseMax),
    Asking(u64, LearnEpoch),
}

type Back = Result<Rejoined, RejoinError>;

impl Rejoin {
    /// Of an owner, by the map of the epoch in which it was one.
    #[must_use]
    pub fn new(client_slots: ClientSlots, chart: Chart, owner: Owner) -> Self {
        let past = chart.map.epoch();
        Self {
            client_slots,
            chart,
            owner,
            closed: None,
            wanted: None,
            past,
            rounds: 0,
            phase: Phase::Begun,
        }
    }

    fn go(&mut self, phase: Phase) -> Step<Back> {
        self.phase = phase;
        self.step(Vec::new())
    }

    fn wait(&mut self, phase: Phase, step: Step<Back>) -> Step<Back> {
        self.phase = phase;
        step
    }

    fn ask(&self, operation: Operation, rounds: u32) -> ReplicatedOp<Once> {
        let once = Once::late(vec![operation], rounds);
        ReplicatedOp::new(Arc::clone(&self.chart.map), once)
    }

    /// Looks for a later map, and where its place is by it.
    fn begin(&mut self) -> Step<Back> {
        match self.chart.learn() {
            Some(learn) => self.go(Phase::Learning(learn)),
            None => self.look(),
        }
    }

    fn look(&mut self) -> Step<Back> {
        let at = self.client_slots.client_slot(self.owner.thread);
        let bytes = 3 * WORD;
        let look = self.ask(Operation::Read { at, bytes }, self.rounds);
        self.rounds += 1;
        self.go(Phase::Looking(look))
    }

    fn looked(&mut self, copy: &[u8]) -> Step<Back> {
        assert_eq!(
            copy.len(),
            3 * WORD_LENGTH,
            "a slot is read with whose it was"
        );
        let (words, _) = copy.as_chunks::<WORD_LENGTH>();
        let word = |place: usize| words.get(place).map_or(0, |word| u64::from_le_bytes(*word));
        let (client_slot, former) = (ClientSlot::of_word(word(0)), word(2));
        let is_past = self.chart.map.epoch() <= self.past;
        let own = self.owner.after;
        let is_own = |number| number == own || Some(number) == self.wanted;
        match client_slot {
            // The epoch is about to end, or its lease to lapse; or the client slot is kept already, and what
            // has happened is to be noted next.
            ClientSlot::Taken(number) if is_past && is_own(number) => self.begin(),
            ClientSlot::Kept(number) if is_past && (is_own(number) || is_own(former)) => {
                self.begin()
            }
            ClientSlot::Taken(by) if Some(by) == self.wanted => self.raise(by),
            ClientSlot::Kept(by) if !is_past && is_own(former) => {
                self.close(by);
                let kept =
                    self.client_slots
                        .swap(self.owner.thread, client_slot, ClientSlot::Taken(by));
                let swap = self.ask(kept, 0);
                self.wanted = Some(by);
                self.go(Phase::Swapping(by, swap))
            }
            _ => Step::Done(Err(RejoinError::Over(self.owner))),
        }
    }

    /// Hears how it ended, the first time.
    fn close(&mut self, by: u64) {
        let owner = self.owner;
        let by = Stamp {
            thread: owner.thread,
            sequence: by,
        };
        self.closed.get_or_insert(Closed { owner, by });
    }

    /// A server did not answer: others know whether that is one that is lost.
    fn again(&mut self, fault: Fault) -> Step<Back> {
        match fault {
            Fault::Gone(_) if self.chart.epoch_log.is_some() => self.begin(),
            fault => Step::Done(Err(fault.into())),
        }
    }

    fn raise(&mut self, by: u64) -> Step<Back> {
        let at = self.client_slots.client_slot(self.owner.thread);
        let word = |at: Address| (at, ClientSlot::Taken(by).word());
        let raise = RaiseMax::new(self.chart.map.all(at).into_iter().map(word));
        self.go(Phase::Raising(by, raise))
    }

    fn next(&mut self, by: u64) -> Step<Back> {
        let next = LearnEpoch::new(&self.chart);
        self.go(Phase::Asking(by, next))
    }

    fn asked(&mut self, by: u64, next: Result<Option<Event>, Undecided>) -> Step<Back> {
        match (next, self.closed) {
            (Ok(None), Some(closed)) => Step::Done(Ok(Rejoined {
                owner: Owner {
                    after: by,
                    ..self.owner
                },
                map: Arc::clone(&self.chart.map),
                closed,
            })),
            (Ok(Some(event)), _) if !event.is_loss() => {
                // The table is where it was, and what comes after this is asked next.
                self.chart.map = Arc::new(self.chart.map.after(event));
                self.next(by)
            }
            (Ok(Some(_)), _) => {
                self.past = self.chart.map.epoch();
                self.begin()
            }
            _ => self.begin(),
        }
    }
}

impl Rejoin {
    fn check_wanted(&self, by: u64) -> Result<(), String> {
        ensure(self.wanted == Some(by), || {
            format!("it takes the slot behind {by} and wants {:?}", self.wanted)
        })?;
        ensure(by > self.owner.after, || {
            format!(
                "it goes on behind {by}, and was there after {}",
                self.owner.after
            )
        })
    }
}

impl Machine for Rejoin {
    type Output = Back;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        match std::mem::replace(&mut self.phase, Phase::Begun) {
            Phase::Begun => self.begin(),
            Phase::Learning(mut work) => match work.step(outcomes).done() {
                Ok(Ok(map)) => {
                    self.chart.map = Arc::new(map);
                    self.look()
                }
                Ok(Err(fault)) => Step::Done(Err(fault.into())),
                Err(step) => self.wait(Phase::Learning(work), step),
            },
            Phase::Looking(mut work) => match work.step(outcomes).done() {
                Ok(found) => match one(found) {
                    Ok(outcome) => self.looked(copy_of(&outcome).unwrap_or_default()),
                    Err(fault) => self.again(fault),
                },
                Err(step) => self.wait(Phase::Looking(work), step),
            },
            Phase::Swapping(by, mut work) => match work.step(outcomes).done() {
                Ok(found) => match one(found) {
                    Ok(OperationOutcome::Word(word)) if word == ClientSlot::Kept(by).word() => {
                        self.next(by)
                    }
                    Ok(_) => self.begin(), // its lease has lapsed, or the swap was done before
                    Err(fault) => self.again(fault),
                },
                Err(step) => self.wait(Phase::Swapping(by, work), step),
            },
            Phase::Raising(by, mut work) => match work.step(outcomes).done() {
                Ok(Ok(())) => self.next(by),
                Ok(Err(fault)) => self.again(fault),
                Err(step) => self.wait(Phase::Raising(by, work), step),
            },
            Phase::Asking(by, mut work) => match work.step(outcomes).done() {
                Ok(next) => self.asked(by, next),
                Err(step) => self.wait(Phase::Asking(by, work), step),
            },
        }
    }

    fn check(&self) -> Result<(), String> {
        let epoch = self.chart.map.epoch();
        ensure(self.past <= epoch, || {
            format!("epoch {} is past in epoch {epoch}", self.past)
        })?;
        ensure(
            self.closed.is_none_or(|closed| closed.owner == self.owner),
            || "an owner hears of its own end".to_owned(),
        )?;
        ensure(self.wanted.is_none() || self.closed.is_some(), || {
            "an owner hears of its end before it takes its slot again".to_owned()
        })?;
        match &self.phase {
            Phase::Begun => Ok(()),
            Phase::Learning(work) => work.check(),
            Phase::Looking(work) => work.check(),
            Phase::Swapping(by, work) => {
                self.check_wanted(*by)?;
                work.check()
            }
            Phase::Raising(by, work) => {
                self.check_wanted(*by)?;
                work.check()
            }
            Phase::Asking(by, work) => {
                self.check_wanted(*by)?;
                work.check()
            }
        }
    }
}
