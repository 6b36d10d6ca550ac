//! Values between shards, and what a transaction gives: known when its pieces have run, or before,
//! when they give what its arguments say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_txn::procedure::{ShardId, Slot, Values};

use super::{Done, Execution, Given, Numbered, Running};
use crate::call::{CallId, PieceOfCall, Planned};

impl Execution {
    /// Takes values that the pieces of shard `from` gave, or why one of them failed. A failure
    /// matters only to pieces that wait for a value of that shard: only those hear of it on every
    /// replica.
    pub fn give(&mut self, id: CallId, from: ShardId, given: Given) {
        if self.done.contains_key(&id) {
            return;
        }
        let here = self.shard;
        let mut running = self.running.values_mut();
        match (running.find(|running| running.planned.id() == id), given) {
            (Some(running), Ok(given)) => running.values.extend(given),
            (Some(running), Err(failure)) => {
                if waits_for(&running.planned, here, from) {
                    running.failed.get_or_insert(failure);
                }
            }
            (None, Ok(given)) => self.early.entry(id).or_default().values.extend(given),
            (None, Err(failure)) => {
                let early = self.early.entry(id).or_default();
                early.failed.insert(from.0, failure);
            }
        }
    }

    /// What a transaction gives here, if that is certain: it has run, or what is left of it gives
    /// predetermined values.
    #[must_use]
    pub fn answer(&self, id: CallId) -> Option<Done> {
        if let Some(done) = self.done.get(&id) {
            return Some(done.clone());
        }
        let mut running = self.running.iter();
        let (at, running) = running.find(|(_, running)| running.planned.id() == id)?;
        running.answered.then(|| Done {
            at: *at,
            planned: Arc::clone(&running.planned),
            given: Ok(self.given_here(&running.planned, running.values.clone())),
        })
    }

    /// The values that other shards want of a transaction and that its pieces here have given, with
    /// the transaction.
    #[must_use]
    pub fn given_so_far(&self, id: CallId) -> Option<(Arc<Planned>, Numbered)> {
        let mut running = self.running.values();
        let running = running.find(|running| running.planned.id() == id);
        let (planned, values): (_, BTreeMap<u32, Vec<u8>>) = match (running, self.done.get(&id)) {
            (Some(running), _) => (&running.planned, running.values.clone()),
            (None, Some(done)) => (
                &done.planned,
                done.given.clone().ok()?.into_iter().collect(),
            ),
            (None, None) => return None,
        };
        let wanted = planned.wanted_from(self.shard).map(|(_, slot)| slot.0);
        let given = wanted.filter_map(|slot| Some((slot, values.get(&slot)?.clone())));
        let given: BTreeMap<u32, Vec<u8>> = given.collect();
        Some((Arc::clone(planned), given.into_iter().collect()))
    }

    /// Those of `values` that pieces here give.
    pub(super) fn given_here(&self, planned: &Planned, values: BTreeMap<u32, Vec<u8>>) -> Numbered {
        let here = planned.pieces.iter();
        let here = here.filter(|piece| piece.shard() == self.shard);
        let slots: BTreeSet<u32> = here
            .flat_map(PieceOfCall::gives)
            .map(|slot| slot.0)
            .collect();
        let values = values.into_iter();
        values.filter(|(slot, _)| slots.contains(slot)).collect()
    }

    /// Adds what pieces here give whatever they find, for those that wait for it.
    pub(super) fn predetermine(&self, running: &mut Running) {
        for place in &running.left {
            let given = self.predetermined(&running.planned, *place);
            let given = given.into_iter().flatten();
            let given = given.map(|(Slot(slot), value)| (slot, value));
            running.values.extend(given);
        }
    }

    pub(super) fn predetermined(&self, planned: &Planned, place: usize) -> Option<Values> {
        let procedure = self.procedures.find(&planned.call.procedure).ok()?;
        let piece = planned.pieces.get(place)?.to_piece();
        let given = procedure.predetermined(&piece, &planned.call.args)?;
        let is_there = |slot| given.contains_key(slot);
        assert!(
            given.len() == piece.gives.len() && piece.gives.iter().all(is_there),
            "A2: {} predetermines other values than it planned",
            planned.call.procedure
        );
        Some(given)
    }
}

/// Whether a piece of `shard` needs a value of `from`.
pub(super) fn waits_for(planned: &Planned, shard: ShardId, from: ShardId) -> bool {
    let mut wanted = planned.wanted_from(from);
    wanted.any(|(wanting, _)| wanting == shard)
}
