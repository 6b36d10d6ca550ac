//! The transactions of one shard on one replica, once their order is decided: [`Pieces`] runs what
//! has its inputs, and hands values between shards.
//!
//! A protocol gives each transaction its turn, one after another. Turns decide who comes first
//! where two transactions meet on a row, and nothing else: whatever does not meet runs as soon as
//! its inputs are there. So the state is the one that running whole transactions in the order of
//! their turns gives, and replicas that give the same turns to those that meet end equal.
//!
//! What a transaction holds are the rows it touches, from its turn on; what touches them later
//! waits. [`Release`] says until when:
//!
//! | | held until | as in |
//! |---|---|---|
//! | [`Release::Transaction`] | all its pieces here have run | SLOG as published: locks |
//! | [`Release::Piece`] | the piece that touches them has run | Janus; DAST's deferred pieces |
//!
//! A piece of which an input failed on another shard fails in its place without running, and so do
//! those that wait for it. Whether a piece runs does not depend on when values arrive.

mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::check::ensure;
use manxdb_core::{Digest, Work};
use manxdb_txn::procedure::{Placement, Procedure, Registry, ShardId, Touch, Values};
use manxdb_txn::rows::{Rows, run_piece};
use serde::{Deserialize, Serialize};

use self::turn::Turn;
use crate::call::{CallId, Given, Planned};
use crate::conflicts::Conflicts;

/// Until when a transaction holds the rows that it touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Release {
    /// Until all its pieces of this shard have run; none of them begins before all rows are free.
    #[default]
    Transaction,
    /// Each row until the piece that touches it has run.
    Piece,
}

/// A value by its slot, or why the piece that was to give it failed.
pub type Passed = Vec<(u32, Result<Vec<u8>, String>)>;

/// A transaction that has run on this shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedHere {
    /// The transaction.
    pub planned: Arc<Planned>,
    /// What its pieces here gave.
    pub given: Given,
}

/// Values that other shards wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForOthers {
    /// The transaction.
    pub planned: Arc<Planned>,
    /// Which shard waits for them.
    pub to: ShardId,
    /// The values.
    pub passed: Passed,
}

/// What came of a step.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Transactions that have run here as a whole.
    pub ended: Vec<EndedHere>,
    /// Values for other shards.
    pub passed: Vec<ForOthers>,
}

/// Why a transaction whose turn has come has pieces left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// It waits for a value of another shard.
    Input,
    /// It waits for a row that an earlier transaction holds.
    Row(CallId),
}

/// What a transaction, or a piece of it, holds: `(turn, place)`, with place 0 for a whole one.
type Hold = (u64, usize);

/// The transactions of one shard whose turns have come, and its rows.
pub struct Pieces {
    shard: ShardId,
    procedures: Arc<Registry>,
    placement: Arc<dyn Placement>,
    rows: Rows,
    release: Release,
    /// Turns given so far.
    turns: u64,
    running: BTreeMap<u64, Turn>,
    by_id: BTreeMap<CallId, u64>,
    held: Conflicts<Hold>,
    /// Of each hold that others wait for, those.
    waiting: BTreeMap<Hold, Vec<Hold>>,
    /// Of each that waits, how many it waits for.
    blockers: BTreeMap<Hold, BTreeSet<Hold>>,
    /// Values that came before their transaction's turn.
    early: BTreeMap<CallId, Passed>,
    /// Transactions that have run, in the order in which their turns came, if that is kept.
    order: Option<Vec<CallId>>,
    /// Of all transactions whose turn came, for comparing replicas: order counts only where it must.
    turns_digest: u64,
    work: Work,
    #[cfg(feature = "mutants")]
    frees_early: bool,
}

impl Pieces {
    /// A shard that begins with `rows`.
    pub fn new(
        shard: ShardId,
        procedures: Arc<Registry>,
        placement: Arc<dyn Placement>,
        rows: Rows,
        release: Release,
    ) -> Self {
        Self {
            shard,
            procedures,
            placement,
            rows,
            release,
            turns: 0,
            running: BTreeMap::new(),
            by_id: BTreeMap::new(),
            held: Conflicts::default(),
            waiting: BTreeMap::new(),
            blockers: BTreeMap::new(),
            early: BTreeMap::new(),
            order: None,
            turns_digest: 0,
            work: Work::default(),
            #[cfg(feature = "mutants")]
            frees_early: false,
        }
    }

    /// Keeps the order of turns, for checkers.
    pub fn keep_order(&mut self) {
        self.order = Some(Vec::new());
    }

    /// Plants a defect: rows are free as soon as a transaction's first piece has run.
    #[cfg(feature = "mutants")]
    pub fn free_early(&mut self) {
        self.frees_early = true;
    }

    /// What a transaction touches on a shard, in the order of its pieces there.
    ///
    /// A procedure that is not known touches everything: it fails in its turn.
    #[must_use]
    pub fn touches_of(procedures: &Registry, planned: &Planned, shard: ShardId) -> Vec<Touch> {
        let places = planned.places_on(shard);
        let all = places.flat_map(|place| touches_of_piece(procedures, planned, place));
        all.collect()
    }

    /// The next turn is this transaction's. A transaction has one turn on a shard.
    pub fn turn(&mut self, planned: Arc<Planned>) -> Progress {
        let id = planned.id();
        let left: Vec<usize> = planned.places_on(self.shard).collect();
        assert!(!left.is_empty(), "P1: {id:?} touches the shard of its turn");
        let number = self.turns;
        self.turns += 1;
        let before = self.by_id.insert(id, number);
        assert!(before.is_none(), "P2: {id:?} has one turn");
        self.turns_digest = self.turns_digest.wrapping_add(Self::digest_of(id));
        if let Some(order) = &mut self.order {
            order.push(id);
        }
        self.take_hold(number, &planned, &left);
        let mut turn = Turn::new(planned, left);
        turn.take_in(self.early.remove(&id).unwrap_or_default());
        self.running.insert(number, turn);
        self.go_on([number].into())
    }

    /// Takes values of another shard for a transaction, whether or not its turn has come.
    pub fn give(&mut self, id: CallId, passed: Passed) -> Progress {
        let Some(number) = self.by_id.get(&id).copied() else {
            self.early.entry(id).or_default().extend(passed);
            return Progress::default();
        };
        // A transaction that has run has all its inputs: these are the same again.
        let Some(turn) = self.running.get_mut(&number) else {
            return Progress::default();
        };
        turn.take_in(passed);
        self.go_on([number].into())
    }

    /// Enters what a transaction touches, behind all that touches it already.
    fn take_hold(&mut self, number: u64, planned: &Planned, left: &[usize]) {
        let of_piece = |place: &usize| {
            let touches = touches_of_piece(&self.procedures, planned, *place);
            ((number, *place), touches)
        };
        let pieces: Vec<(Hold, Vec<Touch>)> = left.iter().map(of_piece).collect();
        let holds = match self.release {
            Release::Piece => pieces,
            Release::Transaction => {
                let all = pieces.into_iter().flat_map(|(_, touches)| touches);
                vec![((number, 0), all.collect())]
            }
        };
        for (hold, touches) in holds {
            let ahead = self.held.clashing(&touches);
            self.work.keys += u32::try_from(touches.len()).unwrap_or(u32::MAX);
            for other in &ahead {
                assert!(*other < hold, "P3: what holds a row came earlier");
                self.waiting.entry(*other).or_default().push(hold);
            }
            if !ahead.is_empty() {
                self.blockers.insert(hold, ahead.into_iter().collect());
            }
            self.held.add(hold, touches);
        }
    }

    /// Lets go of what is held; the turns of those that waited for nothing else.
    fn let_go(&mut self, hold: Hold, freed: &mut BTreeSet<u64>) {
        let touches = self.held.remove(hold);
        let touched = touches.map_or(0, |touches| touches.len());
        self.work.keys += u32::try_from(touched).unwrap_or(u32::MAX);
        for waiting in self.waiting.remove(&hold).unwrap_or_default() {
            let Some(blockers) = self.blockers.get_mut(&waiting) else {
                continue;
            };
            blockers.remove(&hold);
            if blockers.is_empty() {
                self.blockers.remove(&waiting);
                freed.insert(waiting.0);
            }
        }
    }

    fn hold_of(&self, number: u64, place: usize) -> Hold {
        match self.release {
            Release::Transaction => (number, 0),
            Release::Piece => (number, place),
        }
    }

    /// Runs all that can run now that something has changed for these turns.
    fn go_on(&mut self, mut changed: BTreeSet<u64>) -> Progress {
        let mut progress = Progress::default();
        while let Some(number) = changed.pop_first() {
            let Some(mut turn) = self.running.remove(&number) else {
                continue;
            };
            self.run_pieces(number, &mut turn, &mut changed);
            progress.passed.extend(turn.for_others(self.shard));
            if !turn.is_over() {
                self.running.insert(number, turn);
                continue;
            }
            self.let_go((number, 0), &mut changed);
            progress.ended.push(EndedHere {
                given: turn.given(self.shard),
                planned: turn.planned,
            });
        }
        progress
    }

    fn run_pieces(&mut self, number: u64, turn: &mut Turn, freed: &mut BTreeSet<u64>) {
        let planned = Arc::clone(&turn.planned);
        let procedure = self.procedures.find(&planned.call.procedure).ok();
        while let Some(place) = self.next_piece(number, turn) {
            match &procedure {
                Some(procedure) => self.run_piece(procedure.as_ref(), turn, place),
                None => turn.fail(
                    place,
                    &format!("unknown procedure {}", planned.call.procedure),
                ),
            }
            if self.release == Release::Piece || self.is_freeing_early() {
                let hold = self.hold_of(number, place);
                self.let_go(hold, freed);
            }
        }
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn is_freeing_early(&self) -> bool {
        #[cfg(feature = "mutants")]
        return self.frees_early;
        #[cfg(not(feature = "mutants"))]
        false
    }

    /// The first piece left that has its inputs and its rows.
    fn next_piece(&self, number: u64, turn: &Turn) -> Option<usize> {
        let has_rows = |place: &usize| {
            let hold = self.hold_of(number, *place);
            !self.blockers.contains_key(&hold)
        };
        let mut ready = turn.ready().filter(has_rows);
        if self.release == Release::Piece {
            return ready.next();
        }
        // Pieces of one transaction keep their order where they meet; holds of pieces see to it.
        let first = turn.left().next();
        ready.find(|place| Some(*place) == first || !self.meets_earlier(turn, *place))
    }

    fn meets_earlier(&self, turn: &Turn, place: usize) -> bool {
        let own = touches_of_piece(&self.procedures, &turn.planned, place);
        let mut earlier = turn.left().take_while(|other| *other < place);
        earlier.any(|other| {
            let theirs = touches_of_piece(&self.procedures, &turn.planned, other);
            own.iter()
                .any(|touch| theirs.iter().any(|other| touch.clashes(other)))
        })
    }

    fn run_piece(&mut self, procedure: &dyn Procedure, turn: &mut Turn, place: usize) {
        let planned = Arc::clone(&turn.planned);
        let Some(piece) = planned.pieces.get(place) else {
            return turn.fail(place, "no such piece");
        };
        let inputs: Values = match turn.inputs(place) {
            Ok(inputs) => inputs,
            Err(failure) => return turn.fail(place, &failure),
        };
        self.work.pieces = self.work.pieces.saturating_add(piece.steps());
        let (args, piece) = (&planned.call.args, piece.to_piece());
        let placement = self.placement.as_ref();
        let given = run_piece(procedure, placement, args, &piece, &inputs, &mut self.rows);
        match given {
            Ok(given) => turn.ran(place, given),
            Err(failure) => turn.fail(place, &failure.to_string()),
        }
    }

    fn digest_of(id: CallId) -> u64 {
        let mut digest = Digest::default();
        digest.number(id.client.0.into()).number(id.number);
        digest.value()
    }

    /// Whether a transaction's turn has come.
    #[must_use]
    pub fn had_turn(&self, id: CallId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Transactions whose turn has come and that have pieces left, each with what it waits for.
    pub fn obstacles(&self) -> impl Iterator<Item = (CallId, Obstacle)> + '_ {
        self.running.iter().map(|(number, turn)| {
            let place = turn.left().next().unwrap_or(0);
            let blockers = self.blockers.get(&self.hold_of(*number, place));
            let first = blockers.and_then(|blockers| blockers.first());
            let holder = first.and_then(|(number, _)| self.running.get(number));
            let obstacle = match holder {
                Some(holder) if turn.ready().next().is_some() => Obstacle::Row(holder.planned.id()),
                _ => Obstacle::Input,
            };
            (turn.planned.id(), obstacle)
        })
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The transactions whose turns came, in order, if that is kept.
    #[must_use]
    pub fn order(&self) -> &[CallId] {
        self.order.as_deref().unwrap_or_default()
    }

    /// Work done since it was last taken.
    pub fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.work)
    }

    /// Equal for replicas that had the same transactions and have the same rows.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.turns).number(self.turns_digest);
        digest.number(self.rows.digest());
        digest.value()
    }

    /// Checks what holds between any two steps.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        let turns = usize::try_from(self.turns).unwrap_or(usize::MAX);
        ensure(self.by_id.len() == turns, || {
            format!("P2: {} transactions had {turns} turns", self.by_id.len())
        })?;
        for (number, turn) in &self.running {
            let id = turn.planned.id();
            ensure(!turn.is_over(), || {
                format!("P4: {id:?} has run and is left")
            })?;
            ensure(self.by_id.get(&id) == Some(number), || {
                format!("P5: {id:?} runs at a turn that is not its own")
            })?;
            ensure(!self.early.contains_key(&id), || {
                format!("P6: {id:?} has values that it was not given")
            })?;
            for place in turn.left() {
                let hold = self.hold_of(*number, place);
                ensure(
                    self.held.touches(hold).is_some() || self.is_freeing_early(),
                    || format!("P7: {id:?} does not hold what its piece {place} touches"),
                )?;
            }
        }
        for (hold, blockers) in &self.blockers {
            let held = |other: &Hold| self.held.touches(*other).is_some();
            ensure(blockers.iter().all(held), || {
                format!("P8: {hold:?} waits for what nobody holds: {blockers:?}")
            })?;
            ensure(blockers.iter().all(|other| other < hold), || {
                format!("P3: {hold:?} waits for a later one: {blockers:?}")
            })?;
        }
        Ok(())
    }
}

/// What the piece at a place of a transaction's plan touches; everything, if its procedure is not
/// known.
#[must_use]
pub fn touches_of_piece(procedures: &Registry, planned: &Planned, place: usize) -> Vec<Touch> {
    let Ok(procedure) = procedures.find(&planned.call.procedure) else {
        return vec![Touch::everything()];
    };
    let piece = planned.pieces.get(place);
    piece.map_or_else(Vec::new, |piece| {
        procedure.touches(&piece.to_piece(), &planned.call.args)
    })
}

#[cfg(test)]
mod tests;
