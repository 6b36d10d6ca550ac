//! Cross-region transactions at a replica: a floor for the clock, a place in line, and then the
//! decision (DAST §4.3).

use std::sync::Arc;

use manxdb_core::LocalTime;

use super::Replica;
use crate::call::{CallId, Planned};
use crate::message::{DastMessage, Decision, Heard};
use crate::timestamp::Timestamp;
use crate::wanted::Out;

impl Replica {
    /// A transaction of this shard: nothing behind its anticipated timestamp runs before it is
    /// decided.
    pub(super) fn on_prepare_crt(&mut self, planned: Arc<Planned>, at: Timestamp) {
        let id = planned.id();
        if self.execution.knows(id) {
            // A new leader tells again what the last one has told.
            return;
        }
        if at <= self.cuts.safe() {
            let safe = self.cuts.safe();
            self.violated(format!(
                "E3: {id:?} was promised behind {safe:?} and is at {at:?}"
            ));
        }
        self.execution.insert(at, planned, false);
        self.on_floor(id, at);
    }

    /// A transaction of this shard, ordered ahead: this is its place.
    pub(super) fn on_place(&mut self, planned: Arc<Planned>, at: Timestamp, out: &mut Out) {
        let id = planned.id();
        if self.execution.knows(id) {
            // A new leader tells again what the last one has told.
            return;
        }
        if at <= self.cuts.safe() {
            let safe = self.cuts.safe();
            self.violated(format!("A4: {id:?} comes behind {safe:?} and is at {at:?}"));
        }
        out.mark(id.for_traces(), "placed");
        self.placed.insert(at);
        self.execution.insert(at, planned, true);
    }

    /// The region's bound has passed a transaction that waits at `past`.
    pub(super) fn on_bound(
        &mut self,
        now: LocalTime,
        bound: Timestamp,
        past: Timestamp,
        out: &mut Out,
    ) {
        self.clock.set_ceiling(bound);
        self.report_once_past(now, past, out);
    }

    /// What a new leader must know of what is ordered ahead.
    pub(super) fn heard(&self) -> Heard {
        Heard {
            bound: self.clock.ceiling().unwrap_or_default(),
            placed: self.placed.iter().copied().collect(),
        }
    }

    /// A transaction of the region: no stamp of this node may lie behind it while it is open, for
    /// that stamp's transaction would have to wait for it.
    pub(super) fn on_floor(&mut self, id: CallId, at: Timestamp) {
        self.floors.insert(id, at);
        self.execution.open_crossing(at);
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::NoFloorsElsewhere) && !self.execution.is_known(at)
        {
            return;
        }
        self.clock.add_floor(at, id);
    }

    pub(super) fn on_settle(
        &mut self,
        now: LocalTime,
        id: CallId,
        anticipated: Timestamp,
        decision: Decision,
        out: &mut Out,
    ) {
        if let Some(floor) = self.floors.remove(&id) {
            self.clock.remove_floor(floor);
        }
        let place = match decision {
            Decision::Commit(at) => Some(at),
            Decision::Abort => None,
        };
        self.execution.decide_crossing(anticipated, place);
        match decision {
            Decision::Commit(at) => {
                out.mark(id.for_traces(), "settled");
                if !self.execution.settle(anticipated, at) {
                    self.violated(format!("I3: {id:?} is at {at:?}, before {anticipated:?}"));
                }
                self.report_once_past(now, at, out);
            }
            Decision::Abort => {
                self.execution.give_up(id, anticipated);
                self.coordination_aborted(id, out);
            }
        }
    }

    /// Values that pieces here wait for are asked for, at every replica of the shards that give
    /// them: whoever was to send them may be gone.
    pub(super) fn ask_for_missing_inputs(&mut self, out: &mut Out) {
        for (planned, slots) in self.execution.missing() {
            let id = planned.id();
            let mut shards: Vec<_> = slots
                .iter()
                .filter_map(|slot| planned.giver_of(*slot))
                .collect();
            shards.dedup();
            for shard in shards {
                for node in self.receivers(shard) {
                    out.send(node, DastMessage::AskOutput { id });
                }
            }
        }
    }
}
