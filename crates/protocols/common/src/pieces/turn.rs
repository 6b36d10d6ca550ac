//! One transaction on one shard from its turn on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_txn::procedure::{ShardId, Slot, Values};

use super::{ForOthers, Passed};
use crate::call::{Given, PieceOfCall, Planned};

/// What is kept of a transaction whose turn has come and that has pieces left.
#[derive(Debug)]
pub(super) struct Turn {
    pub planned: Arc<Planned>,
    /// Places of its pieces here that have not run, ascending.
    left: Vec<usize>,
    /// Values from other shards, and of its own pieces.
    values: BTreeMap<u32, Result<Vec<u8>, String>>,
    /// Why the first of its pieces here that failed did.
    failed: Option<(usize, String)>,
    /// Slots that other shards have been given.
    shared: BTreeSet<(u32, u32)>,
}

impl Turn {
    pub fn new(planned: Arc<Planned>, left: Vec<usize>) -> Self {
        assert!(left.is_sorted(), "pieces are in the order of their plan");
        Self {
            planned,
            left,
            values: BTreeMap::new(),
            failed: None,
            shared: BTreeSet::new(),
        }
    }

    /// Takes values of another shard. The first one counts: replicas of a shard give the same.
    pub fn take_in(&mut self, passed: Passed) {
        for (slot, value) in passed {
            self.values.entry(slot).or_insert(value);
        }
    }

    pub fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    /// Places of pieces that have not run, ascending.
    pub fn left(&self) -> impl Iterator<Item = usize> + '_ {
        self.left.iter().copied()
    }

    /// Those of them that have their inputs, or why they fail.
    pub fn ready(&self) -> impl Iterator<Item = usize> + '_ {
        self.left().filter(|place| {
            let piece = self.planned.pieces.get(*place);
            let has = |slot: Slot| self.values.contains_key(&slot.0);
            piece.is_none_or(|piece| piece.needs().all(has))
        })
    }

    /// What a piece needs.
    ///
    /// # Errors
    /// Why the piece that was to give it failed.
    pub fn inputs(&self, place: usize) -> Result<Values, String> {
        let mut inputs = Values::new();
        let piece = self.planned.pieces.get(place);
        for slot in piece.into_iter().flat_map(PieceOfCall::needs) {
            match self.values.get(&slot.0) {
                Some(Ok(value)) => drop(inputs.insert(slot, value.clone())),
                Some(Err(failure)) => return Err(failure.clone()),
                None => return Err("a piece ran without its inputs".into()),
            }
        }
        Ok(inputs)
    }

    /// A piece has run.
    pub fn ran(&mut self, place: usize, given: Values) {
        self.end(place);
        let given = given.into_iter();
        self.values
            .extend(given.map(|(slot, value)| (slot.0, Ok(value))));
    }

    /// A piece has failed: what it was to give fails with it.
    pub fn fail(&mut self, place: usize, why: &str) {
        self.end(place);
        let piece = self.planned.pieces.get(place);
        let slots: Vec<Slot> = piece.into_iter().flat_map(PieceOfCall::gives).collect();
        for slot in slots {
            self.values.insert(slot.0, Err(why.to_owned()));
        }
        // The first by place, not by time: time differs between replicas.
        if self.failed.as_ref().is_none_or(|(other, _)| place < *other) {
            self.failed = Some((place, why.to_owned()));
        }
    }

    fn end(&mut self, place: usize) {
        let before = self.left.len();
        self.left.retain(|other| *other != place);
        assert!(self.left.len() + 1 == before, "P9: a piece runs once");
    }

    /// Values of this shard that others wait for and have not been given.
    pub fn for_others(&mut self, here: ShardId) -> Vec<ForOthers> {
        let planned = Arc::clone(&self.planned);
        let mut by_shard: BTreeMap<ShardId, Passed> = BTreeMap::new();
        for (to, slot) in planned.wanted_from(here) {
            if let Some(value) = self.values.get(&slot.0)
                && self.shared.insert((to.0, slot.0))
            {
                by_shard
                    .entry(to)
                    .or_default()
                    .push((slot.0, value.clone()));
            }
        }
        let all = by_shard.into_iter().map(|(to, passed)| ForOthers {
            planned: Arc::clone(&planned),
            to,
            passed,
        });
        all.collect()
    }

    /// What the pieces here gave, once all of them have run.
    pub fn given(&self, here: ShardId) -> Given {
        assert!(self.is_over(), "P10: what has not run gives nothing");
        if let Some((_, failure)) = &self.failed {
            return Err(failure.clone());
        }
        let here = self
            .planned
            .pieces
            .iter()
            .filter(|piece| piece.shard() == here);
        let slots: BTreeSet<u32> = here
            .flat_map(PieceOfCall::gives)
            .map(|slot| slot.0)
            .collect();
        let of_slot = |slot: u32| Some((slot, self.values.get(&slot)?.clone().ok()?));
        Ok(slots.into_iter().filter_map(of_slot).collect())
    }
}
