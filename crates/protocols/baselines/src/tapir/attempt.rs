//! One try of a transaction: pieces run level by level, and then all shards are asked whether it may
//! commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_common::Planned;
use manxdb_common::call::{Numbered, PieceOfCall};
use manxdb_common::pieces::touches_of_piece;
use manxdb_core::NodeId;
use manxdb_core::check::ensure;
use manxdb_txn::procedure::{Registry, ShardId, Touch};

use super::message::{Executed, ReadWriteSet, Timestamp, Vote, Writes};
use super::votes::Ballot;

/// Values by slot.
type Slots = BTreeMap<u32, Vec<u8>>;

/// A try whose pieces run.
#[derive(Debug)]
pub(super) struct Executing {
    /// Places of pieces that nobody was asked to run.
    left: BTreeSet<usize>,
    /// Shards that run pieces, one batch at a time: later pieces see what earlier ones wrote.
    running: BTreeSet<u32>,
    /// What pieces gave.
    given: Slots,
    sets: BTreeMap<u32, ReadWriteSet>,
}

impl Executing {
    pub fn new(planned: &Planned) -> Self {
        Self {
            left: (0..planned.pieces.len()).collect(),
            running: BTreeSet::new(),
            given: Slots::new(),
            sets: planned
                .shards
                .iter()
                .map(|shard| (*shard, ReadWriteSet::default()))
                .collect(),
        }
    }

    /// The pieces that can run now, by shard. They count as begun.
    pub fn begin_ready(
        &mut self,
        planned: &Planned,
        procedures: &Registry,
    ) -> Vec<(ShardId, Vec<usize>)> {
        let mut batches = Vec::new();
        for shard in planned.shards() {
            if self.running.contains(&shard.0) {
                continue;
            }
            let places = self.ready_on(shard, planned, procedures);
            if !places.is_empty() {
                self.running.insert(shard.0);
                self.left.retain(|place| !places.contains(place));
                batches.push((shard, places));
            }
        }
        assert!(
            !self.running.is_empty(),
            "T13: a try that is not over has pieces that run"
        );
        batches
    }

    /// Pieces that have their inputs, or get them from earlier ones of the same batch, and that do not
    /// meet an earlier piece which has to wait.
    fn ready_on(&self, shard: ShardId, planned: &Planned, procedures: &Registry) -> Vec<usize> {
        let (mut places, mut given) = (Vec::new(), BTreeSet::new());
        let mut waiting: Vec<Touch> = Vec::new();
        let left = planned.places_on(shard);
        for place in left.filter(|place| self.left.contains(place)) {
            let Some(piece) = planned.pieces.get(place) else {
                continue;
            };
            let mut needs = piece.needs();
            let has_inputs =
                needs.all(|slot| self.given.contains_key(&slot.0) || given.contains(&slot));
            let touches = || touches_of_piece(procedures, planned, place);
            let meets = |touches: &[Touch]| {
                let mut all = waiting.iter();
                all.any(|touch| touches.iter().any(|other| touch.clashes(other)))
            };
            if has_inputs && (waiting.is_empty() || !meets(&touches())) {
                given.extend(piece.gives());
                places.push(place);
            } else {
                waiting.extend(touches());
            }
        }
        places
    }

    /// What a batch needs to know: values, and what earlier pieces wrote on its shard.
    pub fn known_to(&self, planned: &Planned, shard: ShardId, places: &[usize]) -> (Slots, Writes) {
        let pieces = places.iter().filter_map(|place| planned.pieces.get(*place));
        let needed = pieces.flat_map(PieceOfCall::needs);
        let value = |slot: u32| Some((slot, self.given.get(&slot)?.clone()));
        let inputs = needed.filter_map(|slot| value(slot.0)).collect();
        let own = self.sets.get(&shard.0).map(|sets| sets.writes.clone());
        (inputs, own.unwrap_or_default())
    }

    /// A shard has run its batch.
    pub fn ran(&mut self, shard: u32, executed: Executed) {
        if !self.running.remove(&shard) {
            return;
        }
        self.given.extend(executed.given);
        let sets = self.sets.entry(shard).or_default();
        sets.reads.extend(executed.sets.reads);
        sets.writes = executed.sets.writes;
        sets.steps = sets.steps.saturating_add(executed.sets.steps);
    }

    pub fn is_over(&self) -> bool {
        self.left.is_empty() && self.running.is_empty()
    }

    /// The newest version that any piece read.
    pub fn newest_seen(&self) -> Timestamp {
        let newest = self.sets.values().map(ReadWriteSet::newest_seen).max();
        newest.unwrap_or_default()
    }

    /// Goes on to ask whether all of it may commit.
    pub fn prepare(&mut self, timestamp: Timestamp) -> Preparing {
        assert!(self.is_over(), "T14: only what has run is prepared");
        let sets = std::mem::take(&mut self.sets);
        Preparing {
            timestamp,
            ballots: sets.keys().map(|shard| (*shard, Ballot::new())).collect(),
            sets: sets
                .into_iter()
                .map(|(shard, sets)| (shard, Arc::new(sets)))
                .collect(),
            given: std::mem::take(&mut self.given),
        }
    }

    pub fn check(&self, planned: &Planned) -> Result<(), String> {
        let id = planned.id();
        ensure(!self.is_over(), || {
            format!("T14: {id:?} has run and is not prepared")
        })?;
        ensure(!self.running.is_empty(), || {
            format!("T13: {id:?} waits for nobody")
        })?;
        ensure(
            self.running
                .iter()
                .all(|shard| planned.touches(ShardId(*shard))),
            || format!("T15: {id:?} runs where it has no pieces"),
        )
    }
}

/// A try that asks whether it may commit.
#[derive(Debug)]
pub(super) struct Preparing {
    /// Its place in the order.
    pub timestamp: Timestamp,
    sets: BTreeMap<u32, Arc<ReadWriteSet>>,
    ballots: BTreeMap<u32, Ballot>,
    given: Slots,
}

impl Preparing {
    /// What it read and writes, by shard.
    pub fn sets(&self) -> impl Iterator<Item = (u32, &Arc<ReadWriteSet>)> {
        self.sets.iter().map(|(shard, sets)| (*shard, sets))
    }

    /// What its pieces gave.
    pub fn given(&self) -> Numbered {
        self.given.clone().into_iter().collect()
    }

    /// Takes a replica's answer; the vote that its shard's replicas are to be told, if they differ.
    pub fn voted(&mut self, from: NodeId, shard: u32, vote: Vote) -> Option<Vote> {
        self.ballots.get_mut(&shard)?.add(from, vote)
    }

    /// Takes a replica's word that it keeps its shard's vote.
    pub fn finalized(&mut self, from: NodeId, shard: u32) {
        if let Some(ballot) = self.ballots.get_mut(&shard) {
            ballot.keep(from);
        }
    }

    /// What all shards come to. One that aborts is enough; for all else, all are needed.
    pub fn outcome(&self) -> Option<Vote> {
        let votes = || self.ballots.values().map(Ballot::decided);
        if votes().any(|vote| vote == Some(Vote::Abort)) {
            return Some(Vote::Abort);
        }
        let votes: Vec<Vote> = votes().collect::<Option<_>>()?;
        let timestamp = |vote: &Vote| match vote {
            Vote::Retry(timestamp) => Some(*timestamp),
            _ => None,
        };
        let latest = votes.iter().filter_map(timestamp).max();
        Some(latest.map_or(Vote::Ok, Vote::Retry))
    }

    /// Asks again, at another timestamp.
    pub fn again_at(&mut self, timestamp: Timestamp) {
        assert!(timestamp > self.timestamp, "T16: a try moves back only");
        self.timestamp = timestamp;
        for ballot in self.ballots.values_mut() {
            *ballot = Ballot::new();
        }
    }

    pub fn check(&self, planned: &Planned) -> Result<(), String> {
        let id = planned.id();
        ensure(self.outcome().is_none(), || {
            format!("T17: {id:?} is decided and not ended")
        })?;
        ensure(self.ballots.keys().eq(planned.shards.iter()), || {
            format!("T18: {id:?} asks others than its shards")
        })?;
        let mut decided = self.ballots.values().filter_map(Ballot::decided);
        ensure(decided.all(|vote| vote != Vote::Abstain), || {
            format!("T19: a shard of {id:?} has decided nothing")
        })
    }
}
