//! How what a replica keeps of transactions relates to its clock, its cuts, and where it stands.

use std::collections::BTreeSet;

use manxdb_core::check::ensure;

use super::super::Replica;
use crate::call::CallId;
use crate::timestamp::Timestamp;
use crate::topology::Role;

impl Replica {
    /// What a replica without state has forgotten, or never had.
    pub(super) fn check_forgotten(&self) -> Result<(), String> {
        if self.standing.has_state() {
            return Ok(());
        }
        let calls = self.coordinating.len() + self.early_calls.len();
        ensure(calls == 0, || {
            format!("S3: it has no state and coordinates {calls} calls")
        })?;
        ensure(
            self.placed.is_empty() && self.early_holders.is_empty(),
            || "S3: it has no state and knows of places".to_owned(),
        )?;
        ensure(self.stamped.is_empty() && self.reported.is_empty(), || {
            format!("S3: it has no state and has stamped {:?}", self.stamped)
        })?;
        let records = self.execution.records();
        ensure(
            records == 0 && self.execution.turn() == Timestamp::ZERO,
            || format!("S3: it has no state and runs {records} transactions"),
        )?;
        let ceiling = self.clock.ceiling();
        ensure(ceiling.is_none(), || {
            format!("S3: it has no state and a ceiling at {ceiling:?}")
        })
    }

    /// Who takes part, as this replica knows it.
    pub(super) fn check_members(&self) -> Result<(), String> {
        let leads = self.shared.topology.role(self.leader) == Role::Manager(self.region);
        ensure(leads, || {
            format!("S6: {:?} leads, which is no manager of it", self.leader)
        })?;
        ensure(!self.is_live() || self.live.contains(&self.me), || {
            format!("S6: it takes part, and these do: {:?}", self.live)
        })?;
        let joins = self.joining;
        ensure(joins.is_none_or(|node| !self.live.contains(&node)), || {
            format!("S6: {joins:?} is being let in, and takes part")
        })?;
        let admitted = self.admission.map(|(_, _, node, _)| node);
        ensure(admitted != Some(self.me), || {
            "S6: it is to let itself in".to_owned()
        })?;
        let open = self.fences.iter().filter(|span| span.back.is_none());
        ensure(open.count() <= 1, || {
            format!("F3: more than one region is fenced: {:?}", self.fences)
        })
    }

    /// What has run, and what this clock has given, beside what is known.
    pub(super) fn check_order(&self) -> Result<(), String> {
        let (turn, safe) = (self.execution.turn(), self.cuts.safe_to_run());
        ensure(turn <= safe, || {
            format!("I2: {turn:?} has had its turn, and all up to {safe:?} is known")
        })?;
        let (safe, last) = (self.cuts.safe(), self.clock.last());
        ensure(!self.is_live() || safe <= last, || {
            format!("K2: a cut at {safe:?} has passed this clock, at {last:?}")
        })?;
        let floors: BTreeSet<&Timestamp> = self.floors.values().collect();
        ensure(floors.len() == self.floors.len(), || {
            format!("E1: two transactions have one timestamp: {:?}", self.floors)
        })?;
        ensure(self.local_places.len() <= self.locals.len(), || {
            let (places, locals) = (self.local_places.len(), self.locals.len());
            format!("S4: {locals} local transactions are at {places} places")
        })?;
        for (at, local) in &self.locals {
            let planned = &local.planned;
            ensure(*at <= turn || self.execution.is_known(*at), || {
                format!(
                    "S8: {:?} at {at:?} neither waits nor has had its turn",
                    planned.id()
                )
            })?;
            ensure(
                planned.touches(self.shard) && !planned.crosses_regions,
                || format!("S7: {:?} at {at:?} is not local here", planned.id()),
            )?;
        }
        let mut placed = self.placed.iter();
        ensure(
            placed.all(|at| *at <= turn || self.execution.is_known(*at)),
            || {
                format!(
                    "S8: what is placed neither waits nor has had its turn: {:?}",
                    self.placed
                )
            },
        )?;
        let early: BTreeSet<CallId> = self.early_calls.iter().map(|it| it.call.id).collect();
        ensure(early.len() == self.early_calls.len(), || {
            format!("S9: a call waits twice for its session: {early:?}")
        })?;
        let (after, interval) = (self.report_after, self.shared.options.report_every);
        ensure(after <= interval, || {
            format!("K8: it reports after {after:?}, and an interval is {interval:?}")
        })?;
        for (id, coordination) in &self.coordinating {
            let checked = coordination.check(self.me);
            checked.map_err(|broken| format!("S2: {id:?} {broken}"))?;
        }
        self.check_holders()
    }
}
