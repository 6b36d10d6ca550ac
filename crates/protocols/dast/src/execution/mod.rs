//! A shard's transactions in the order of their timestamps (DAST §4.3).
//!
//! A transaction is *known* once its body is here, *settled* once its timestamp is final and it
//! cannot be lost any more. The first known one runs when it is settled and nothing that is not
//! known yet can come before it; the replica says up to where that is so. One that is known and
//! not settled lets nothing past it: its final timestamp may lie anywhere behind, or it may vanish.
//!
//! A piece that waits for a value of another shard does not hold up the rest. It is *deferred*:
//! later pieces pass it unless their touches clash with its own, and then they are deferred too.
//! So every two pieces that clash run in the order of their timestamps, and the state is the one
//! that running whole transactions in that order gives.
//!
//! A transaction is *answerable* before it has run when each deferred piece gives what its arguments
//! say ([`Procedure::predetermined`](manxdb_txn::procedure::Procedure::predetermined)): its place in
//! the order is final, so a blind or commutative update does not wait for the row that it updates.
//!
//! | file | |
//! |---|---|
//! | here | which transaction's turn it is, and what is kept of it |
//! | [`pieces`] | which of its pieces run now, and which are deferred |
//! | [`values`] | values between shards, and what a transaction gives before it has run |
//! | [`crossings`] | which cross-region transactions lie before a local one of several shards |
//! | [`transfer`] | the whole of it, for a new replica of the shard |

mod check;
mod crossings;
mod pieces;
#[cfg(test)]
mod tests;
mod transfer;
mod values;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::check::ensure;
use manxdb_core::{Digest, NodeId};
use manxdb_txn::procedure::{Placement, Registry, ShardId, Slot};
use manxdb_txn::rows::Rows;
use serde::{Deserialize, Serialize};

use crate::call::{CallId, PieceOfCall, Planned};
use crate::timestamp::Timestamp;

use self::crossings::Crossings;
pub use self::transfer::Copy;
use self::values::waits_for;

pub use manxdb_common::{Given, Numbered};

/// What a transaction did on this shard, kept until nobody can ask for it any more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Done {
    /// Its place in the order.
    pub at: Timestamp,
    /// The transaction.
    pub planned: Arc<Planned>,
    /// What its pieces here gave.
    pub given: Given,
}

/// A transaction that has run here, and who waits for what it gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The transaction.
    pub id: CallId,
    /// Of the instance that ended: the client may have asked again, through somebody else.
    pub coordinator: NodeId,
}

/// What came of running what could run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Transactions that have run here as a whole.
    pub ended: Vec<Ended>,
    /// Transactions that have not, and of which pieces here gave values that other shards want.
    pub gave: Vec<Ended>,
    /// Transactions that have not, and of which every piece left here gives predetermined values.
    pub answerable: Vec<Ended>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Known {
    planned: Arc<Planned>,
    settled: bool,
}

/// A transaction whose turn has come and that has pieces left.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Running {
    planned: Arc<Planned>,
    /// Places of its pieces here that have not run.
    left: Vec<usize>,
    /// Values from other shards, and of its own pieces.
    values: BTreeMap<u32, Vec<u8>>,
    failed: Option<String>,
    /// Values of its pieces here that other shards have been given.
    shared: usize,
    /// Whether its coordinator has been told what its pieces here give, run or not.
    answered: bool,
}

/// Values from other shards that came before their transaction's turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Inputs {
    values: BTreeMap<u32, Vec<u8>>,
    /// Shards of which pieces failed, each with why.
    failed: BTreeMap<u32, String>,
}

/// The transactions and the rows of one shard on one replica.
pub struct Execution {
    shard: ShardId,
    procedures: Arc<Registry>,
    placement: Arc<dyn Placement>,
    rows: Rows,
    known: BTreeMap<Timestamp, Known>,
    running: BTreeMap<Timestamp, Running>,
    early: BTreeMap<CallId, Inputs>,
    done: BTreeMap<CallId, Done>,
    /// Cross-region transactions that were known here and never run.
    given_up: BTreeSet<CallId>,
    ended_below: BTreeMap<NodeId, u64>,
    /// The last transaction whose turn came.
    turn: Timestamp,
    crossings: Crossings,
    order: Vec<(Timestamp, CallId)>,
    keeps_order: bool,
    steps_run: u32,
    /// Records at which it pays to look for those that nobody wants any more.
    collect_at: usize,
    #[cfg(feature = "mutants")]
    mutant: Option<crate::mutants::Mutant>,
}

/// Records that may come between two collections of them.
const COLLECT_LEAST: usize = 16;

impl Execution {
    /// A shard that begins with `rows`.
    pub fn new(
        shard: ShardId,
        procedures: Arc<Registry>,
        placement: Arc<dyn Placement>,
        rows: Rows,
        keeps_order: bool,
    ) -> Self {
        Self {
            shard,
            procedures,
            placement,
            rows,
            known: BTreeMap::new(),
            running: BTreeMap::new(),
            early: BTreeMap::new(),
            done: BTreeMap::new(),
            given_up: BTreeSet::new(),
            ended_below: BTreeMap::new(),
            turn: Timestamp::ZERO,
            crossings: Crossings::default(),
            order: Vec::new(),
            keeps_order,
            steps_run: 0,
            collect_at: COLLECT_LEAST,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// Makes a transaction known. `settled`: `at` is its final timestamp, and it may run.
    pub fn insert(&mut self, at: Timestamp, planned: Arc<Planned>, settled: bool) {
        if at <= self.turn {
            // Only a repetition can come so late; its first instance has had its turn.
            return;
        }
        self.known.entry(at).or_insert(Known { planned, settled });
    }

    /// Whether a transaction is known at `at` and its turn has not come.
    #[must_use]
    pub fn is_known(&self, at: Timestamp) -> bool {
        self.known.contains_key(&at)
    }

    /// Whether a transaction waits here for its turn, has had it, was given up, or has ended for
    /// its client.
    #[must_use]
    pub fn knows(&self, id: CallId) -> bool {
        let of = |planned: &Planned| planned.id() == id;
        self.has_ended(id)
            || self.done.contains_key(&id)
            || self.given_up.contains(&id)
            || self.known.values().any(|known| of(&known.planned))
            || self.running.values().any(|running| of(&running.planned))
    }

    /// A transaction known at its final timestamp cannot be lost any more: it may run.
    pub fn secure(&mut self, at: Timestamp) {
        if let Some(known) = self.known.get_mut(&at) {
            known.settled = true;
        }
    }

    /// Checks what holds between any two steps.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        let first = self.known.keys().next();
        ensure(first.is_none_or(|first| *first > self.turn), || {
            format!(
                "X1: {first:?} waits for its turn, which came before {:?}",
                self.turn
            )
        })?;
        let last = self.running.keys().next_back();
        ensure(last.is_none_or(|last| *last <= self.turn), || {
            format!(
                "X2: {last:?} runs, and the last turn was at {:?}",
                self.turn
            )
        })?;
        for (at, running) in &self.running {
            let id = running.planned.id();
            ensure(!self.done.contains_key(&id), || {
                format!("X3: {id:?} at {at:?} runs and is done")
            })?;
            ensure(!running.left.is_empty() && running.left.is_sorted(), || {
                format!("X4: {id:?} at {at:?} runs, left {:?}", running.left)
            })?;
        }
        self.check_waiting()?;
        self.check_order()
    }

    /// The last transaction whose turn came.
    #[must_use]
    pub fn turn(&self) -> Timestamp {
        self.turn
    }

    /// Moves a transaction from its anticipated timestamp to its final one. False: the final one
    /// lies before (I3 is broken), unless this is a repetition of what has run already.
    #[must_use]
    pub fn settle(&mut self, anticipated: Timestamp, at: Timestamp) -> bool {
        let Some(mut known) = self.known.remove(&anticipated) else {
            return true;
        };
        if at < anticipated {
            let id = known.planned.id();
            return self.done.contains_key(&id) || self.has_ended(id);
        }
        known.settled = true;
        self.known.insert(at, known);
        true
    }

    /// Drops a transaction that was given up before it was settled, and remembers that: a new
    /// manager may tell of it once more.
    pub fn give_up(&mut self, id: CallId, anticipated: Timestamp) {
        let known = self.known.get(&anticipated);
        if known.is_some_and(|known| known.planned.id() == id) {
            let dropped = self.known.remove(&anticipated);
            assert!(
                dropped.is_none_or(|known| !known.settled),
                "a settled one is not given up"
            );
            self.given_up.insert(id);
        }
    }

    /// Forgets settled transactions whose turn has not come and that do not run where they are; they
    /// come again at other places.
    pub fn set_aside(&mut self, moved: impl Fn(Timestamp, &Planned) -> bool) {
        self.known
            .retain(|at, known| !known.settled || !moved(*at, &known.planned));
    }

    /// Runs what may run, given that everything up to `safe` is known.
    pub fn run(&mut self, safe: Timestamp) -> Progress {
        let mut progress = Progress::default();
        self.run_deferred(&mut progress);
        while let Some(first) = self.known.first_entry() {
            if *first.key() > safe || !first.get().settled {
                break;
            }
            let (at, known) = first.remove_entry();
            assert!(at > self.turn, "I2: {at:?} after {:?}", self.turn);
            self.turn = at;
            self.begin(at, known.planned, &mut progress);
        }
        progress
    }

    fn begin(&mut self, at: Timestamp, planned: Arc<Planned>, progress: &mut Progress) {
        let id = planned.id();
        let ended_below = self.ended_below.entry(id.client).or_default();
        let is_repetition = id.number < *ended_below || self.done.contains_key(&id);
        *ended_below = (*ended_below).max(planned.call.ended_below);
        let running_already = || self.running.values().any(|other| other.planned.id() == id);
        if is_repetition || running_already() {
            progress.ended.push(Ended {
                id,
                coordinator: planned.coordinator,
            });
            return;
        }
        if self.keeps_order {
            self.order.push((at, id));
        }
        self.crossings.turn(at, &planned);
        let here = planned.pieces.iter().enumerate();
        let here = here.filter(|(_, piece)| piece.shard() == self.shard);
        let left = here.map(|(place, _)| place).collect();
        let Inputs { values, failed } = self.early.remove(&id).unwrap_or_default();
        let mut failed = failed.into_iter();
        let concerns = |(from, _): &(u32, String)| waits_for(&planned, self.shard, ShardId(*from));
        let failed = failed.find(concerns).map(|(_, failure)| failure);
        let mut running = Running {
            planned,
            left,
            values,
            failed,
            shared: 0,
            answered: false,
        };
        self.predetermine(&mut running);
        let mut blockers = self.blockers(Timestamp::MAX);
        self.run_pieces(&mut running, &mut blockers);
        self.put_aside_or_end(at, running, progress);
    }

    /// What a transaction did here.
    #[must_use]
    pub fn done(&self, id: CallId) -> Option<&Done> {
        self.done.get(&id)
    }

    /// Whether calls with this identity have ended for their client.
    #[must_use]
    pub fn has_ended(&self, id: CallId) -> bool {
        let ended_below = self.ended_below.get(&id.client);
        ended_below.is_some_and(|below| id.number < *below)
    }

    /// Plants a defect.
    #[cfg(feature = "mutants")]
    pub fn plant(&mut self, mutant: Option<crate::mutants::Mutant>) {
        self.mutant = mutant;
        self.crossings.plant(mutant);
    }

    /// A cross-region transaction of the region, on whatever shard, has an anticipated timestamp.
    pub fn open_crossing(&mut self, anticipated: Timestamp) {
        self.crossings.open(anticipated);
    }

    /// It is decided; without a place it never runs.
    pub fn decide_crossing(&mut self, anticipated: Timestamp, at: Option<Timestamp>) {
        self.crossings.decide(anticipated, at);
    }

    /// Everything before this has run here.
    #[must_use]
    pub fn position(&self, safe: Timestamp) -> Timestamp {
        let waiting = self.known.keys().next().copied();
        let deferred = self.running.keys().next().copied();
        let first = waiting.into_iter().chain(deferred).min();
        first.map_or(safe, |first| first.min(safe))
    }

    /// The newest cross-region transaction that what has run here may depend on.
    #[must_use]
    pub fn cross_region_high(&self) -> Timestamp {
        self.crossings.high()
    }

    /// The first transaction in line, if its place is not final.
    #[must_use]
    pub fn first_unsettled(&self) -> Option<(Timestamp, CallId)> {
        let (at, known) = self.known.first_key_value()?;
        (!known.settled).then(|| (*at, known.planned.id()))
    }

    /// Deferred transactions, each with the values that its pieces here still wait for.
    pub fn missing(&self) -> Vec<(Arc<Planned>, Vec<Slot>)> {
        let missing = |running: &Running| {
            let pieces = running
                .left
                .iter()
                .filter_map(|place| running.planned.pieces.get(*place));
            let needed = pieces.flat_map(PieceOfCall::needs);
            let slots: Vec<Slot> = needed
                .filter(|slot| !running.values.contains_key(&slot.0))
                .filter(|slot| running.planned.giver_of(*slot) != Some(self.shard))
                .collect();
            (Arc::clone(&running.planned), slots)
        };
        let all = self.running.values().map(missing);
        all.filter(|(_, slots)| !slots.is_empty()).collect()
    }

    /// Transactions whose turn has come and that have pieces left, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let running = self.running.iter().map(|(at, running)| {
            let values: Vec<&u32> = running.values.keys().collect();
            format!(
                "{at:?} {:?} left {:?} has {values:?}",
                running.planned.id(),
                running.left
            )
        });
        running.collect::<Vec<_>>().join("; ")
    }

    /// Lets go of what no client asks for any more and no replica: of the region, which have all
    /// passed `region`, and of all regions, which have passed `everywhere`, but for one that has not
    /// and may ask for what `concerns` it.
    pub fn collect(
        &mut self,
        region: Timestamp,
        everywhere: Timestamp,
        concerns: impl Fn(&Done) -> bool,
    ) {
        // Looking at all of them pays when many have come since this last looked.
        if self.records() < self.collect_at {
            return;
        }
        let ended_below = &self.ended_below;
        let is_wanted = |id: &CallId| {
            let below = ended_below.get(&id.client).copied().unwrap_or(0);
            id.number >= below
        };
        self.done.retain(|id, done| {
            let passed = if done.planned.crosses_regions {
                everywhere
            } else {
                region
            };
            done.at >= passed || is_wanted(id) || concerns(done)
        });
        self.early.retain(|id, _| is_wanted(id));
        self.given_up.retain(is_wanted);
        self.collect_at = self.records() * 3 / 2 + COLLECT_LEAST;
    }

    /// Transactions that wait for their turn, or have pieces left.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.known.len() + self.running.len()
    }

    /// Records kept about transactions.
    #[must_use]
    pub fn records(&self) -> usize {
        self.known.len()
            + self.running.len()
            + self.early.len()
            + self.done.len()
            + self.given_up.len()
    }

    /// Steps of pieces run since this was last asked.
    pub fn take_steps_run(&mut self) -> u32 {
        std::mem::take(&mut self.steps_run)
    }

    /// The order in which transactions had their turn, if it is kept; without repetitions.
    #[must_use]
    pub fn order(&self) -> &[(Timestamp, CallId)] {
        &self.order
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// A number that is equal for replicas that ran the same.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest
            .number(self.rows.digest())
            .number(self.turn.micros)
            .number(self.turn.stretch);
        digest.value()
    }
}
