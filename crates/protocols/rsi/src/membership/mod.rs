//! Who decides that a thread's owner is dead, has it shut out, recovers it, and frees its place.
//!
//! Any number of recovery coordinators watch the table ([`crate::client_slots`]); one leads. All that is decided is in the
//! table, so a recovery coordinator that fails is followed by another that knows nothing of it:
//!
//! | what is done | so that |
//! |---|---|
//! | a beat that has not changed for a lease: the client slot is swapped to `Over` | it is decided once, and for whoever leads next too |
//! | all servers shut the owner out, for good | nothing that it does late has an effect |
//! | what it had committed is installed, its number closed ([`Recover`]) | its locks are nobody's |
//! | the client slot is swapped to `Free`, with that number | the next owner is another one |
//!
//! Recovery coordinators judge each other in the same way, after half a lease. Who takes over swaps the term, and
//! has all recovery coordinators of earlier terms shut out before it does anything else: two never recover at a
//! time, and every owner of a place is reaped once. A recovery coordinator that stands by watches the owners as
//! well, so that of those who die together with the one who leads none is noticed later.
//!
//! **Time.** A span is measured by one clock, the recovery coordinator's own, which may stand still, be slow or go
//! back, but is not to jump ahead: it is a monotonic one. A lapse is counted from the moment at which
//! a beat had been seen to the one at which it was asked for again, so that neither a read that takes
//! long nor a recovery coordinator that stood still costs anybody the lease. Whoever dies is noticed within the
//! lease and two looks, a sixteenth of it each; when the recovery coordinator dies over it, it takes another half
//! of a lease and two looks until the next one goes on. So a place is free, and its locks in nobody's
//! way, less than two leases after its owner has died, while one recovery coordinator is left and servers answer.
//!
//! **Losses.** Over replicated memory ([`crate::replicas`]) the same recovery coordinators see to the loss of memory
//! servers. Each look is at every server, and at what the servers say about events:
//!
//! | what a recovery coordinator sees | what it does |
//! |---|---|
//! | an event is noted | it goes on by the map after it |
//! | an event is accepted by some, and not noted | it settles it, and goes on by the map after it, which nobody may use yet |
//! | a server is gone | it proposes that this one is lost |
//! | it leads, and a loss is decided that is not noted | it opens the next epoch: has all owners shut out by all servers that are left, restores ([`crate::Restore`]), frees the client slots of those who were over, keeps those of the others, and only then notes what has happened |
//! | it leads, and a replica is not whole | it takes a place for itself and copies what is lacking under the locks of that place ([`crate::Refill`]), a step at a time between its looks; then it proposes that the region is whole |
//!
//! So one that is elected in such a map restores before it does anything else, and the one that led
//! when the server was lost goes on with its term. Whoever is elected asks before it leads whether the
//! next event is decided ([`crate::LearnEpoch`]), as owners do; then there is one recovery coordinator of a term, whatever
//! the maps are by which recovery coordinators know each other. A recovery coordinator that stands by watches the beats of the one
//! that leads by the map in which that one is to restore, and follows it as ever. Leases of owners count from the
//! beginning of an epoch. The place under which a recovery coordinator copies lapses when the recovery coordinator is gone, and is
//! reaped like any other, so that nobody waits for the locks.
//!
//! A recovery coordinator does one thing at a time: it says what it wishes, and hears when that is done.

mod check;
mod elect;
mod events;
mod fill;
mod lost_servers;
mod open;
mod reap;
mod watch;

use manxdb_core::check::deep;
use std::sync::Arc;

use manxdb_core::{LocalTime, Nanos};
use manxdb_fabric::{Address, Fault, Operation, OperationOutcome, ServerId};

use self::fill::Filling;
use self::open::Opening;
use self::watch::Watch;
use crate::begin::Begin;
use crate::client_slots::{ClientSlot, ClientSlots, Look, Name, Owner};
use crate::log::Log;
use crate::machine::{Machine, Once, Step, copy_of, fault};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::recover::Recover;
use crate::replicas::{Chart, Event, LearnEpoch, Map, Propose, Refill, ReplicatedOp};
use crate::vector::Vector;

/// Looks at the table while a lease lasts.
const LOOKS: u64 = 16;

/// What a recovery coordinator is to know.
#[derive(Debug, Clone)]
pub struct Ward {
    /// The table.
    pub client_slots: ClientSlots,
    /// The vector of the same threads.
    pub vector: Vector,
    /// Where each of them logs: on servers, or in a region.
    pub logs: Vec<Log>,
    /// Who does not show for this long that it lives is dead. Owners keep their leases four times
    /// as often ([`crate::Lease::every`]).
    pub lease: Nanos,
    /// Which servers have all that.
    pub chart: Chart,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipAction {
    /// Nothing, for so long; then [`MembershipEvent::Done`].
    Pause(Nanos),
    /// These operations at servers, all at once, after a pause that grows with the number of attempts;
    /// then [`MembershipEvent::Outcomes`]. [`Fault::Gone`] of a server that may be given up.
    Ask(Vec<Operation>, u32),
    /// These are to be shut out for good by each of these servers; by all there are, if none is
    /// named. [`MembershipEvent::Done`] when each has, or is itself gone for good. When one does neither,
    /// [`MembershipEvent::Outcomes`] with [`Fault::Gone`] of it: then it is given up, if that can be.
    ShutOut(Vec<Name>, Vec<ServerId>),
    /// From now on operations are this one's, whom servers can shut out; then [`MembershipEvent::Done`]. A
    /// server that does not let it in is a fault as any other.
    Become(Name),
    /// Nothing more.
    End(End),
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MembershipEvent {
    /// It is done.
    Done,
    /// This has come of the operations.
    Outcomes(Vec<OperationOutcome>),
}

/// Why a recovery coordinator ends. Another one may be begun in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum End {
    /// Another one leads.
    #[error("another recovery coordinator leads, in term {0}")]
    Deposed(u64),
    /// A server has shut this recovery coordinator out for another; or what cannot be done without does not
    /// answer: the server with the table, if there is one alone, or all that had a region.
    #[error("{0}")]
    Fault(Fault),
}

/// One of those who watch.
#[derive(Debug)]
pub struct RecoveryCoordinator {
    ward: Ward,
    /// What all events make of the map that it has heard are decided.
    map: Arc<Map>,
    /// The last of these, which nobody has noted yet: until then nobody may use the map.
    pending: Vec<Event>,
    /// It leads; none: it stands by.
    term: Option<u64>,
    phase: Phase,
    watches: Vec<Watch>,
    /// Of the recovery coordinator that leads.
    watch: Watch,
    /// When it looked first.
    began: Option<LocalTime>,
    /// When it looked last.
    recent: LocalTime,
    /// All replicas of the table have what the primary has, as far as it is up to recovery coordinators.
    is_level: bool,
    /// The place under which it copies what new replicas lack.
    filling: Option<Filling>,
    /// Its own beat.
    last: u64,
    /// The thread that was looked after last.
    turn: u16,
    reaped: u64,
    opened: u64,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

#[derive(Debug)]
enum Phase {
    Pausing,
    /// Operations are under way.
    Doing(MembershipDeed, ReplicatedOp<Once>),
    /// Asks whether the next event is decided.
    Asking(Purpose, LearnEpoch),
    /// Proposes that a server is lost, or a region whole.
    Proposing(Propose),
    /// Shuts out the recovery coordinators of earlier terms.
    Succeeding,
    /// Takes the name of its term.
    Naming,
    ShuttingOut(Owner),
    Recovering(Owner, Box<ReplicatedOp<Recover>>),
    /// After a loss.
    Opening(Box<Opening>),
    /// Takes a snapshot to copy the region of this number.
    Beginning(usize, ReplicatedOp<Begin>),
    /// Copies it.
    Filling(usize, Box<Refill>),
}

/// Why it asks whether the next event is decided.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    /// Somebody has accepted one.
    Settle,
    /// It wants to lead.
    Lead(Election),
    /// It has taken a place, under which it copies what new replicas lack.
    Fill(Owner),
}

/// What operations are for.
#[derive(Debug, Clone, Copy)]
enum MembershipDeed {
    /// Reads the table, which was asked for at this time, and what servers say about events.
    Look(LocalTime),
    /// Swaps the term for the next one.
    Elect(Election),
    /// Writes up to where recovery coordinators are shut out.
    Note,
    /// Swaps a client slot to be over.
    Condemn(Owner, ClientSlot),
    /// Swaps it to be free.
    Free(Owner),
    /// Notes events.
    Announce,
    /// Swaps a client slot to be its own.
    Take(Owner),
    /// Swaps its client slot to be over.
    Leave,
}

/// A term that a recovery coordinator wants, and up to which one the recovery coordinators before are shut out.
#[derive(Debug, Clone, Copy)]
struct Election {
    term: u64,
    shut: u64,
}

impl RecoveryCoordinator {
    /// One that stands by, as a guest.
    #[must_use]
    pub fn new(ward: Ward) -> Self {
        let client_slots = usize::from(ward.client_slots.threads());
        Self {
            map: Arc::clone(&ward.chart.map),
            ward,
            pending: Vec::new(),
            term: None,
            phase: Phase::Pausing,
            watches: vec![Watch::default(); client_slots],
            watch: Watch::default(),
            began: None,
            recent: LocalTime::default(),
            is_level: false,
            filling: None,
            last: 0,
            turn: 0,
            reaped: 0,
            opened: 0,
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
    pub fn reaped(&self) -> u64 {
        self.reaped
    }

    /// Epochs that it has opened after losses.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// The map by which it goes, whether or not that may be used already.
    #[must_use]
    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// Goes on; the first time with [`MembershipEvent::Done`]. After [`MembershipAction::End`] it is not to be called.
    pub fn step(&mut self, now: LocalTime, heard: MembershipEvent) -> MembershipAction {
        let action = self.advance(now, heard);
        if deep() {
            let checked = self.check();
            assert!(checked.is_ok(), "an invariant is broken: {checked:?}");
        }
        action
    }

    fn advance(&mut self, now: LocalTime, heard: MembershipEvent) -> MembershipAction {
        let outcomes = match heard {
            MembershipEvent::Done => Vec::new(),
            MembershipEvent::Outcomes(outcomes) => outcomes,
        };
        match std::mem::replace(&mut self.phase, Phase::Pausing) {
            Phase::Doing(deed, mut work) => match work.step(outcomes).done() {
                Ok(outcomes) => self.did(now, deed, &outcomes),
                Err(step) => self.wait(Phase::Doing(deed, work), step),
            },
            Phase::Asking(purpose, mut work) => match work.step(outcomes).done() {
                Ok(next) => self.asked(now, purpose, next),
                Err(step) => self.wait(Phase::Asking(purpose, work), step),
            },
            Phase::Proposing(mut work) => match work.step(outcomes).done() {
                Ok(event) => self.asked(now, Purpose::Settle, event.map(Some)),
                Err(step) => self.wait(Phase::Proposing(work), step),
            },
            Phase::Recovering(owner, work) => self.recover(owner, work, outcomes),
            Phase::Opening(opening) => self.go_on_opening(*opening, outcomes),
            Phase::Beginning(region, mut work) => match work.step(outcomes).done() {
                Ok(begun) => self.begun(now, region, begun),
                Err(step) => self.wait(Phase::Beginning(region, work), step),
            },
            Phase::Filling(region, work) => self.go_on_filling(now, region, work, outcomes),
            phase => match fault(&outcomes) {
                Some(fault) => self.fail(fault),
                None => self.proceed(now, phase),
            },
        }
    }

    /// What was wished for is done, and nothing has come of it but that.
    fn proceed(&mut self, now: LocalTime, phase: Phase) -> MembershipAction {
        match phase {
            Phase::Succeeding => self.be_named(),
            Phase::Naming => self.note(),
            Phase::ShuttingOut(owner) => self.begin_to_recover(owner),
            _ => self.look(now),
        }
    }

    fn did(
        &mut self,
        now: LocalTime,
        deed: MembershipDeed,
        outcomes: &[OperationOutcome],
    ) -> MembershipAction {
        if let MembershipDeed::Look(asked) = deed {
            return self.looked(asked, now, outcomes);
        }
        if let Some(fault) = fault(outcomes) {
            return self.fail(fault);
        }
        let word = match outcomes.first() {
            Some(OperationOutcome::Word(word)) => Some(*word),
            _ => None,
        };
        match deed {
            MembershipDeed::Elect(election) => self.swapped(now, election, word),
            MembershipDeed::Condemn(owner, client_slot) => {
                self.condemned(now, owner, client_slot, word)
            }
            MembershipDeed::Free(owner) => {
                self.reaped += u64::from(word == Some(ClientSlot::Over(owner.after).word()));
                self.look(now)
            }
            MembershipDeed::Announce => {
                self.pending.clear();
                self.look(now)
            }
            MembershipDeed::Take(owner) if word == Some(ClientSlot::Free(owner.after).word()) => {
                self.ask_next(now, Purpose::Fill(owner))
            }
            MembershipDeed::Look(_)
            | MembershipDeed::Note
            | MembershipDeed::Take(_)
            | MembershipDeed::Leave => self.look(now),
        }
    }

    /// Asks for a piece of work, and what it is to be called while it is under way.
    fn wait(&mut self, phase: Phase, step: Step<MembershipAction>) -> MembershipAction {
        self.phase = phase;
        match step {
            Step::Post(operations) => MembershipAction::Ask(operations, 0),
            Step::Backoff(operations, times) => MembershipAction::Ask(operations, times),
            Step::Done(wish) => wish,
        }
    }

    fn ask(&mut self, deed: MembershipDeed, operations: Vec<Operation>) -> MembershipAction {
        let mut work = ReplicatedOp::new(Arc::clone(&self.map), Once::new(operations));
        #[cfg(feature = "mutants")]
        {
            work = work.with(self.mutant);
        }
        match work.step(Vec::new()).done() {
            Ok(outcomes) => match fault(&outcomes) {
                Some(fault) => self.fail(fault), // no server has the region any more
                None => self.pause(),            // nothing was to be done
            },
            Err(step) => self.wait(Phase::Doing(deed, work), step),
        }
    }

    fn pause(&mut self) -> MembershipAction {
        self.phase = Phase::Pausing;
        MembershipAction::Pause(Nanos(self.ward.lease.0 / LOOKS))
    }

    /// Reads the table, and what every server says about events; who leads shows that it lives.
    fn look(&mut self, now: LocalTime) -> MembershipAction {
        let client_slots = self.ward.client_slots;
        let mut operations = vec![client_slots.read()];
        self.recent = now;
        if self.term.is_some() {
            self.last = now.0.max(self.last + 1);
            operations.push(write(client_slots.term_beat(), self.last));
        }
        if let Some(filling) = &self.filling {
            operations.push(write(client_slots.beat(filling.owner.thread), self.last));
        }
        if let Some(epoch_log) = self.ward.chart.epoch_log {
            operations.extend(epoch_log.look(&self.map, self.since()));
        }
        self.ask(MembershipDeed::Look(now), operations)
    }

    fn looked(
        &mut self,
        asked: LocalTime,
        now: LocalTime,
        outcomes: &[OperationOutcome],
    ) -> MembershipAction {
        let fenced = outcomes.iter().find_map(|outcome| match outcome {
            OperationOutcome::Failed(fault @ Fault::Fenced(_)) => Some(*fault),
            _ => None,
        });
        if let Some(fault) = fenced {
            return MembershipAction::End(End::Fault(fault));
        }
        if let Some(epoch_log) = self.ward.chart.epoch_log {
            let own = 1 + usize::from(self.term.is_some()) + usize::from(self.filling.is_some());
            assert!(
                own <= outcomes.len(),
                "the table and the beats have outcomes"
            );
            let others = outcomes.get(own..).unwrap_or_default();
            let news = epoch_log.news(&self.map, self.since(), others);
            if let Some(wish) = self.hear(now, &news) {
                return wish;
            }
        }
        match fault(outcomes) {
            Some(fault) => self.fail(fault),
            None => match outcomes.first().map(copy_of) {
                Some(Ok(copy)) => self.judge(asked, now, copy),
                _ => self.pause(), // not reached: it was asked for, and there is no fault
            },
        }
    }

    fn judge(&mut self, asked: LocalTime, now: LocalTime, copy: &[u8]) -> MembershipAction {
        let look = self.ward.client_slots.parse(copy);
        assert_eq!(
            look.chairs.len(),
            self.watches.len(),
            "each slot of the table is watched"
        );
        if self.pending.iter().copied().any(Event::is_loss) {
            // Owners wait for the next epoch, and do not keep their leases until it begins.
            self.watches.fill(Watch::default());
        }
        let lapsed = self.lapsed(&look, asked, now);
        match self.term {
            Some(term) if term != look.term => MembershipAction::End(End::Deposed(look.term)),
            Some(_) => self.lead(now, look, &lapsed),
            None => self.stand_by(&look, asked, now),
        }
    }

    /// What the one who leads does: one thing, and then it looks again.
    fn lead(&mut self, now: LocalTime, look: Look, lapsed: &[bool]) -> MembershipAction {
        if !self.pending.is_empty() {
            return self.open(look);
        }
        if !self.is_level && self.ward.chart.epoch_log.is_some() {
            return self.level(look);
        }
        match self.reap(&look, lapsed) {
            Some(wish) => wish,
            None => self.fill(now, &look),
        }
    }

    fn servers(&self) -> Vec<ServerId> {
        self.map.servers().collect()
    }
}

fn write(at: Address, word: u64) -> Operation {
    let bytes = word.to_le_bytes().to_vec();
    Operation::Write { at, bytes }
}
