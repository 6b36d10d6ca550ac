//! What a coordinator waits for before it answers a client (DAST §4.2, §4.3).
//!
//! A local transaction is answered when two replicas of each shard hold it and each shard has
//! said what its pieces gave; a cross-region one when each shard has: the managers hold it.
//! A client that asks again through another coordinator finds the same transaction, wherever it
//! is by then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::check::ensure;
use manxdb_core::{LocalTime, NodeId, Wait};
use manxdb_txn::procedure::ShardId;

use super::Replica;
use crate::call::{Call, CallId, Level, Planned};
use crate::execution::{Ended, Given};
use crate::message::{DastMessage, Output, Seen};
use crate::timestamp::Timestamp;
use crate::topology::{MAJORITY, RegionId};
use crate::waits::{CLOSING, wait};
use crate::wanted::Out;

/// A client's call, as its coordinator sees it.
#[derive(Debug)]
pub(super) struct Coordination {
    pub(super) planned: Arc<Planned>,
    /// Its place in the order; of a cross-region one known only when it ran.
    at: Option<Timestamp>,
    /// A local transaction: it needs acknowledgements.
    is_local: bool,
    /// Another node stamped it.
    taken_over: bool,
    acknowledged: BTreeMap<u32, BTreeSet<NodeId>>,
    given: BTreeMap<u32, Given>,
    /// The newest cross-region transaction it may depend on.
    cross_region_high: Timestamp,
    pub(super) after: Timestamp,
    since: LocalTime,
    /// How often managers were asked for its place.
    pub(super) attempts: usize,
}

impl Coordination {
    /// Whom it is about.
    pub(super) fn id(&self) -> CallId {
        self.planned.id()
    }

    /// What is true of a call that node `me` coordinates.
    pub(super) fn check(&self, me: NodeId) -> Result<(), String> {
        let planned = &self.planned;
        ensure(self.taken_over || planned.coordinator == me, || {
            format!("is coordinated by {:?}", planned.coordinator)
        })?;
        ensure(self.at.is_some() || !self.is_local, || {
            "is local and has no stamp".to_owned()
        })?;
        let mut acknowledged = self.acknowledged.keys();
        ensure(
            acknowledged.all(|shard| planned.shards.contains(shard)),
            || "is held where it has no piece".to_owned(),
        )
    }

    fn is_replicated(&self, needed: usize) -> bool {
        let held = |shard: &u32| self.acknowledged.get(shard).map_or(0, BTreeSet::len);
        !self.is_local
            || self
                .planned
                .shards
                .iter()
                .all(|shard| held(shard) >= needed)
    }

    fn has_run(&self) -> bool {
        self.planned
            .shards
            .iter()
            .all(|shard| self.given.contains_key(shard))
    }

    /// Up to where regions must be closed before the answer.
    fn needs_closed(&self) -> Timestamp {
        if self.planned.call.level != Level::Strict {
            return Timestamp::ZERO;
        }
        let at = self.at.filter(|_| !self.is_local);
        self.cross_region_high.max(at.unwrap_or_default())
    }

    /// What all pieces gave, or the first failure.
    fn outcome(self) -> (CallId, Timestamp, Given) {
        let mut values = Vec::new();
        let id = self.planned.id();
        let at = self.at.unwrap_or_default();
        for given in self.given.into_values() {
            match given {
                Ok(given) => values.extend(given),
                Err(failure) => return (id, at, Err(failure)),
            }
        }
        (id, at, Ok(values))
    }
}

impl Replica {
    pub(super) fn on_submit(&mut self, now: LocalTime, call: Call, seen: &Seen, out: &mut Out) {
        let after = seen.newest();
        let id = call.id;
        let is_known = self.coordinating.contains_key(&id) || self.execution.has_ended(id);
        if !self.is_live() || is_known {
            return;
        }
        out.mark(id.for_traces(), "received");
        if self.take_over(now, id, after, out) {
            return;
        }
        let planned = match self.plan(&call) {
            Ok(planned) => planned,
            Err(failure) => {
                let (at, given) = (Timestamp::ZERO, Err(failure));
                out.send(id.client, DastMessage::Outcome { id, at, given });
                return;
            }
        };
        let is_local = self.is_local(&planned);
        if let Some(region) = self.region_of_all(&planned) {
            self.pass_on(region, &planned, seen, out);
        } else if !self.comes_behind(now, is_local, seen) {
            self.keep_early(call, is_local, seen);
        } else if is_local {
            let at = self.stamp(now, &planned, out);
            self.coordinate(now, planned, Some(at), after);
            self.acknowledge(id, self.shard, self.me);
        } else {
            self.coordinate(now, planned, None, after);
            self.ask_managers(id, out);
        }
    }

    fn plan(&self, call: &Call) -> Result<Arc<Planned>, String> {
        let procedure = self.shared.procedures.find(&call.procedure);
        let procedure = procedure.map_err(|unknown| unknown.to_string())?;
        let pieces = procedure.plan(&call.args, self.shared.placement.as_ref());
        let pieces = pieces.map_err(|failure| failure.to_string())?;
        let topology = self.shared.topology;
        if pieces.is_empty()
            || pieces
                .iter()
                .any(|piece| piece.shard.0 >= topology.shards())
        {
            return Err(format!(
                "{} has no piece, or one on no shard",
                call.procedure
            ));
        }
        let planned = Planned::new(call.clone(), self.me, pieces, topology);
        planned.map_err(|failure| failure.to_string())
    }

    /// Whether all of it happens in this region.
    pub(super) fn is_local(&self, planned: &Planned) -> bool {
        let topology = self.shared.topology;
        let mut shards = planned.shards();
        shards.all(|shard| topology.region_of(shard) == self.region)
    }

    fn coordinate(
        &mut self,
        now: LocalTime,
        planned: Arc<Planned>,
        at: Option<Timestamp>,
        after: Timestamp,
    ) -> &mut Coordination {
        let id = planned.id();
        let coordination = Coordination {
            is_local: self.is_local(&planned),
            planned,
            at,
            taken_over: false,
            acknowledged: BTreeMap::new(),
            given: BTreeMap::new(),
            cross_region_high: Timestamp::ZERO,
            after,
            since: now,
            attempts: 0,
        };
        self.coordinating.entry(id).or_insert(coordination)
    }

    /// A call that another coordinator has brought this far: waits for it instead of making it
    /// again. Whether there is one.
    fn take_over(&mut self, now: LocalTime, id: CallId, after: Timestamp, out: &mut Out) -> bool {
        let found = if let Some(answer) = self.execution.answer(id) {
            Some((answer.planned, answer.at, Some(answer.given)))
        } else if let Some(at) = self.local_places.get(&id) {
            let local = self.locals.get(at);
            local.map(|local| (Arc::clone(&local.planned), *at, None))
        } else {
            None
        };
        let Some((planned, at, given)) = found else {
            return false;
        };
        let shard = self.shard;
        let cross_region_high = self.execution.cross_region_high();
        let coordination = self.coordinate(now, planned, Some(at), after);
        coordination.taken_over = true;
        coordination.cross_region_high = cross_region_high;
        if let Some(given) = given {
            coordination.given.insert(shard.0, given);
        }
        self.acknowledge(id, shard, self.me);
        self.ask_again(id, out);
        self.try_answer(id, out);
        true
    }

    fn acknowledge(&mut self, id: CallId, shard: ShardId, node: NodeId) {
        if let Some(coordination) = self.coordinating.get_mut(&id)
            && coordination.planned.touches(shard)
        {
            coordination
                .acknowledged
                .entry(shard.0)
                .or_default()
                .insert(node);
        }
    }

    pub(super) fn on_ack_irt(&mut self, from: NodeId, id: CallId, at: Timestamp, out: &mut Out) {
        self.note_holder(at, from);
        if !self.live.contains(&from) {
            return;
        }
        if let crate::topology::Role::Replica(shard) = self.shared.topology.role(from) {
            self.acknowledge(id, shard, from);
            self.try_answer(id, out);
        }
    }

    /// Who speaks for this shard about a transaction: its coordinator, if it is one of the
    /// shard's replicas, else the first that is live.
    fn speaks_for(&self, coordinator: NodeId) -> bool {
        let replicas = self.shared.topology.replicas(self.shard);
        let live: Vec<NodeId> = replicas.filter(|node| self.live.contains(node)).collect();
        if live.contains(&coordinator) {
            return coordinator == self.me;
        }
        live.first() == Some(&self.me)
    }

    pub(super) fn after_execution(&mut self, ended: Ended, out: &mut Out) {
        out.mark(ended.id.for_traces(), "executed");
        self.tell_outcome(ended, out);
        self.share_inputs(ended, out);
    }

    /// Tells the coordinator what the pieces here give, once that is certain.
    pub(super) fn tell_outcome(&mut self, ended: Ended, out: &mut Out) {
        let id = ended.id;
        let high = self.execution.cross_region_high();
        let Some(answer) = self.execution.answer(id) else {
            return;
        };
        if let Some(coordination) = self.coordinating.get_mut(&id) {
            coordination.at = coordination.at.max(Some(answer.at));
            coordination.cross_region_high = coordination.cross_region_high.max(high);
            coordination.given.insert(self.shard.0, answer.given);
            self.try_answer(id, out);
        }
        if self.speaks_for(ended.coordinator) && ended.coordinator != self.me {
            self.send_output(ended.coordinator, id, out);
        }
    }

    /// Gives the shards that want them the values that pieces here have given so far.
    pub(super) fn share_inputs(&self, gave: Ended, out: &mut Out) {
        if !self.speaks_for(gave.coordinator) {
            return;
        }
        let id = gave.id;
        let Some((planned, given)) = self.execution.given_so_far(id) else {
            return;
        };
        let wanting: BTreeSet<ShardId> = planned
            .wanted_from(self.shard)
            .map(|(shard, _)| shard)
            .collect();
        for node in wanting.into_iter().flat_map(|shard| self.receivers(shard)) {
            let given = given.clone();
            out.send(node, DastMessage::Inputs { id, given });
        }
    }

    fn send_output(&self, to: NodeId, id: CallId, out: &mut Out) {
        if let Some(answer) = self.execution.answer(id) {
            let output = Output {
                id,
                shard: self.shard.0,
                at: answer.at,
                given: answer.given,
                cross_region_high: self.execution.cross_region_high(),
            };
            out.send(to, DastMessage::Output(Box::new(output)));
        }
    }

    pub(super) fn on_ask_output(&mut self, from: NodeId, id: CallId, out: &mut Out) {
        if self.execution.answer(id).is_some() {
            self.send_output(from, id, out);
        } else if let Some((_, given)) = self.execution.given_so_far(id) {
            out.send(from, DastMessage::Inputs { id, given });
        }
    }

    pub(super) fn on_output(&mut self, output: Output, out: &mut Out) {
        let id = output.id;
        if let Some(coordination) = self.coordinating.get_mut(&id) {
            let high = coordination.cross_region_high.max(output.cross_region_high);
            coordination.cross_region_high = high;
            // One that was moved runs elsewhere at a later place.
            coordination.at = coordination.at.max(Some(output.at));
            let given = output.given.clone();
            coordination.given.insert(output.shard, given);
        }
        let from = ShardId(output.shard);
        self.execution.give(id, from, output.given);
        self.try_answer(id, out);
    }

    /// Answers once nothing is missing any more.
    pub(super) fn try_answer(&mut self, id: CallId, out: &mut Out) {
        let needed = self.acknowledgements_needed();
        let Some(coordination) = self.coordinating.get(&id) else {
            return;
        };
        if !coordination.has_run() || !coordination.is_replicated(needed) {
            return;
        }
        if coordination.needs_closed() > self.cuts.closed() {
            return;
        }
        if let Some(coordination) = self.coordinating.remove(&id) {
            let (id, at, given) = coordination.outcome();
            out.mark(id.for_traces(), "answered");
            out.send(id.client, DastMessage::Outcome { id, at, given });
        }
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn acknowledgements_needed(&self) -> usize {
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::TooFewAcknowledgements) {
            return MAJORITY - 1;
        }
        MAJORITY
    }

    /// Strict answers wait for regions to close what they depend on.
    pub(super) fn answer_what_is_closed(&mut self, out: &mut Out) {
        let strict = |(id, coordination): (&CallId, &Coordination)| {
            let is_strict = coordination.planned.call.level == Level::Strict;
            (is_strict && coordination.has_run()).then_some(*id)
        };
        let waiting: Vec<CallId> = self.coordinating.iter().filter_map(strict).collect();
        for id in waiting {
            self.try_answer(id, out);
        }
    }

    /// Calls that have run and whose answers wait for that.
    pub(super) fn waiting_to_close(&self) -> impl Iterator<Item = (CallId, Wait)> + '_ {
        let needed = self.acknowledgements_needed();
        let closed = self.cuts.closed();
        let waits = move |coordination: &Coordination| {
            coordination.has_run()
                && coordination.is_replicated(needed)
                && coordination.needs_closed() > closed
        };
        let waiting = self.coordinating.iter().filter(move |(_, it)| waits(it));
        waiting.map(|(id, _)| (*id, wait(CLOSING)))
    }

    /// A cross-region call was given up: its client may ask again.
    pub(super) fn coordination_aborted(&mut self, id: CallId, out: &mut Out) {
        if self.coordinating.remove(&id).is_some() {
            let given = Err("given up: a region did not answer in time".into());
            let at = Timestamp::ZERO;
            out.send(id.client, DastMessage::Outcome { id, at, given });
        }
    }

    /// A cross-region call touches a region that is fenced.
    pub(super) fn coordination_refused(&mut self, id: CallId, region: RegionId, out: &mut Out) {
        if self.coordinating.remove(&id).is_some() {
            let given = Err(format!(
                "region {} is cut off: what touches it is refused until it is back",
                region.0
            ));
            let at = Timestamp::ZERO;
            out.send(id.client, DastMessage::Outcome { id, at, given });
        }
    }

    pub(super) fn ask_for_what_coordination_misses(&mut self, now: LocalTime, out: &mut Out) {
        let patience = self.shared.options.retry_every * 2;
        let late = |(id, coordination): (&CallId, &Coordination)| {
            (now.since(coordination.since) >= patience).then_some(*id)
        };
        let late: Vec<CallId> = self.coordinating.iter().filter_map(late).collect();
        for id in late {
            if let Some(coordination) = self.coordinating.get_mut(&id) {
                coordination.since = now;
            }
            self.ask_again(id, out);
        }
    }

    fn ask_again(&mut self, id: CallId, out: &mut Out) {
        let Some(coordination) = self.coordinating.get(&id) else {
            return;
        };
        let planned = Arc::clone(&coordination.planned);
        let (is_local, taken_over) = (coordination.is_local, coordination.taken_over);
        let shards = planned.shards();
        let without: Vec<ShardId> = shards
            .filter(|shard| !coordination.given.contains_key(&shard.0))
            .collect();
        if !is_local && !taken_over {
            self.ask_managers(id, out);
        }
        for shard in planned.shards() {
            for node in self.receivers(shard) {
                if node == self.me {
                    continue;
                }
                if is_local {
                    out.send(node, DastMessage::Confirm { id });
                }
                if without.contains(&shard) {
                    out.send(node, DastMessage::AskOutput { id });
                }
            }
        }
    }
}
