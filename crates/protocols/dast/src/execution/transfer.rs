//! All that a replica knows of its shard, for a new replica of it.

use std::collections::BTreeSet;

use manxdb_core::NodeId;
use manxdb_core::check::ensure;
use serde::{Deserialize, Serialize};

use super::{Crossings, Done, Execution, Inputs, Known, Running};
use crate::call::CallId;
use crate::timestamp::Timestamp;

/// Rows that differ from those at the start; `None` says that the row is gone.
type Changes = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Everything a replica knows that a new replica of the shard needs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Copy {
    changes: Changes,
    known: Vec<(Timestamp, Known)>,
    running: Vec<(Timestamp, Running)>,
    early: Vec<(CallId, Inputs)>,
    done: Vec<Done>,
    given_up: Vec<CallId>,
    ended_below: Vec<(NodeId, u64)>,
    turn: Timestamp,
    crossings: Crossings,
    /// Empty unless it is kept.
    order: Vec<(Timestamp, CallId)>,
}

impl Copy {
    /// Checks what comes from a peer before anything relies on it.
    ///
    /// # Errors
    /// What does not fit together, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let waits = self.known.iter().all(|(at, _)| *at > self.turn);
        let has_had_turn = self.running.iter().all(|(at, _)| *at <= self.turn);
        let is_done = self.done.iter().all(|done| done.at <= self.turn);
        ensure(waits && has_had_turn && is_done, || {
            format!("a copy is on both sides of its turn at {:?}", self.turn)
        })?;
        let ends: BTreeSet<CallId> = self.done.iter().map(|done| done.planned.id()).collect();
        let mut running = self.running.iter();
        ensure(
            running.all(|(_, one)| !ends.contains(&one.planned.id())),
            || "a copy has what runs among what is done".to_owned(),
        )?;
        let mut running = self.running.iter();
        ensure(running.all(|(_, one)| !one.left.is_empty()), || {
            "a copy has what has ended among what runs".to_owned()
        })?;
        self.check_names()
    }

    /// What has a name, or a place, of its own has it once; what is kept for later is of no use to
    /// what is done.
    fn check_names(&self) -> Result<(), String> {
        let waits: BTreeSet<Timestamp> = self.known.iter().map(|(at, _)| *at).collect();
        ensure(waits.len() == self.known.len(), || {
            "a copy has two transactions that wait at one place".to_owned()
        })?;
        let runs: BTreeSet<Timestamp> = self.running.iter().map(|(at, _)| *at).collect();
        ensure(runs.len() == self.running.len(), || {
            "a copy has two transactions that run at one place".to_owned()
        })?;
        let running = self.running.iter().map(|(_, one)| one.planned.id());
        let running: BTreeSet<CallId> = running.collect();
        ensure(running.len() == self.running.len(), || {
            "a copy has a transaction that runs twice".to_owned()
        })?;
        let ends: BTreeSet<CallId> = self.done.iter().map(|done| done.planned.id()).collect();
        ensure(ends.len() == self.done.len(), || {
            "a copy has a transaction that is done twice".to_owned()
        })?;
        ensure(self.early.iter().all(|(id, _)| !ends.contains(id)), || {
            "a copy has values that wait for what is done".to_owned()
        })?;
        ensure(
            self.order.is_sorted_by(|(one, _), (next, _)| one < next),
            || "a copy has turns that are out of order".to_owned(),
        )?;
        ensure(self.crossings.high() <= self.turn, || {
            format!(
                "a copy depends on what comes behind its turn at {:?}",
                self.turn
            )
        })?;
        self.crossings.check()
    }
}

impl Execution {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.install(Copy::default());
    }

    /// For a new replica of the shard.
    #[must_use]
    pub fn copy(&self) -> Copy {
        Copy {
            changes: self.changes(),
            known: self
                .known
                .iter()
                .map(|(at, known)| (*at, known.clone()))
                .collect(),
            running: self
                .running
                .iter()
                .map(|(at, running)| (*at, running.clone()))
                .collect(),
            early: self
                .early
                .iter()
                .map(|(id, inputs)| (*id, inputs.clone()))
                .collect(),
            done: self.done.values().cloned().collect(),
            given_up: self.given_up.iter().copied().collect(),
            ended_below: self
                .ended_below
                .iter()
                .map(|(client, below)| (*client, *below))
                .collect(),
            turn: self.turn,
            crossings: self.crossings.clone(),
            order: self.order.clone(),
        }
    }

    fn changes(&self) -> Changes {
        let changes = self.rows.changes();
        let owned = changes.map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)));
        owned.collect()
    }

    /// Becomes what a peer was.
    pub fn install(&mut self, copy: Copy) {
        self.rows.clear();
        for (key, value) in copy.changes {
            self.rows.write(key, value);
        }
        self.known = copy.known.into_iter().collect();
        self.running = copy.running.into_iter().collect();
        self.early = copy.early.into_iter().collect();
        self.done = copy
            .done
            .into_iter()
            .map(|done| (done.planned.id(), done))
            .collect();
        self.given_up = copy.given_up.into_iter().collect();
        self.ended_below = copy.ended_below.into_iter().collect();
        self.turn = copy.turn;
        self.crossings = copy.crossings;
        self.order = copy.order;
    }
}
