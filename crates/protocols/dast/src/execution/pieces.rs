//! Which pieces of the transactions whose turn has come run now, and which are deferred: those
//! that wait for a value of another shard, and those that clash with an earlier deferred one.

use std::sync::Arc;

use manxdb_txn::procedure::{Procedure, Slot, Touch, Values};
use manxdb_txn::rows::run_piece;

use super::{Done, Ended, Execution, Progress, Running};
use crate::call::{PieceOfCall, Planned};
use crate::timestamp::Timestamp;

impl Execution {
    /// Touches of all deferred pieces of transactions before `at`.
    pub(super) fn blockers(&self, at: Timestamp) -> Vec<Touch> {
        let mut blockers = Vec::new();
        for running in self.running.range(..at).map(|(_, running)| running) {
            self.touches_left(running, &mut blockers);
        }
        blockers
    }

    pub(super) fn touches_left(&self, running: &Running, into: &mut Vec<Touch>) {
        for place in &running.left {
            into.extend(self.touches(&running.planned, *place));
        }
    }

    fn touches(&self, planned: &Planned, place: usize) -> Vec<Touch> {
        let Ok(procedure) = self.procedures.find(&planned.call.procedure) else {
            return vec![Touch::everything()];
        };
        let piece = planned.pieces.get(place).map(PieceOfCall::to_piece);
        piece.map_or_else(Vec::new, |piece| {
            procedure.touches(&piece, &planned.call.args)
        })
    }

    /// Tries all deferred pieces again, in the order of their transactions.
    pub(super) fn run_deferred(&mut self, progress: &mut Progress) {
        let mut blockers = Vec::new();
        for at in self.running.keys().copied().collect::<Vec<_>>() {
            if let Some(mut running) = self.running.remove(&at) {
                self.run_pieces(&mut running, &mut blockers);
                self.put_aside_or_end(at, running, progress);
            }
        }
    }

    pub(super) fn put_aside_or_end(
        &mut self,
        at: Timestamp,
        mut running: Running,
        progress: &mut Progress,
    ) {
        let ended = Ended {
            id: running.planned.id(),
            coordinator: running.planned.coordinator,
        };
        if !running.left.is_empty() {
            let wanted = running.planned.wanted_from(self.shard);
            let given = wanted
                .filter(|(_, slot)| running.values.contains_key(&slot.0))
                .count();
            if given > running.shared {
                running.shared = given;
                progress.gave.push(ended);
            }
            if !running.answered && self.is_answerable(&running) {
                running.answered = true;
                progress.answerable.push(ended);
            }
            let other = self.running.insert(at, running);
            assert!(other.is_none(), "one transaction runs at a timestamp");
            return;
        }
        progress.ended.push(ended);
        let given = match running.failed {
            None => Ok(self.given_here(&running.planned, running.values)),
            Some(failure) => Err(failure),
        };
        assert!(
            given.is_ok() || !running.answered,
            "A1: {:?} was answered and then failed: {given:?}",
            ended.id
        );
        let done = Done {
            at,
            planned: running.planned,
            given,
        };
        assert!(at <= self.turn, "what is done has had its turn");
        let before = self.done.insert(ended.id, done);
        assert!(before.is_none(), "a transaction runs once");
    }

    /// Whether a planted defect lets a piece run before an earlier one on its row.
    #[allow(clippy::unused_self)] // a planted defect asks
    fn may_overtake(&self, planned: &Planned, place: usize) -> bool {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(crate::mutants::Mutant::BlindUpdateOvertakes) {
            return self.predetermined(planned, place).is_some();
        }
        let _ = (planned, place);
        false
    }

    /// Whether nothing can change any more what a transaction gives here.
    fn is_answerable(&self, running: &Running) -> bool {
        let mut left = running.left.iter();
        running.failed.is_none()
            && left.all(|place| self.predetermined(&running.planned, *place).is_some())
    }

    /// Runs the pieces of one transaction that can run now. What stays is added to `blockers`.
    pub(super) fn run_pieces(&mut self, running: &mut Running, blockers: &mut Vec<Touch>) {
        let planned = Arc::clone(&running.planned);
        let Ok(procedure) = self.procedures.find(&planned.call.procedure) else {
            running.failed = Some(format!("unknown procedure {}", planned.call.procedure));
            running.left.clear();
            return;
        };
        loop {
            let before = running.left.len();
            let mut kept: Vec<Touch> = Vec::new();
            let mut still_left = Vec::new();
            for place in std::mem::take(&mut running.left) {
                if running.failed.is_some() {
                    continue;
                }
                let Some(piece) = planned.pieces.get(place) else {
                    continue;
                };
                let is_clear = || {
                    let touches = self.touches(&planned, place);
                    let clashes = |other: &Touch| touches.iter().any(|own| own.clashes(other));
                    !blockers.iter().chain(&kept).any(clashes)
                };
                let has_inputs = piece
                    .needs()
                    .all(|slot| running.values.contains_key(&slot.0));
                let nothing_in_the_way =
                    (blockers.is_empty() && kept.is_empty()) || self.may_overtake(&planned, place);
                if has_inputs && (nothing_in_the_way || is_clear()) {
                    self.run_piece(procedure.as_ref(), &planned, piece, running);
                } else {
                    kept.extend(self.touches(&planned, place));
                    still_left.push(place);
                }
            }
            running.left = still_left;
            if running.left.len() == before || running.left.is_empty() {
                blockers.extend(kept);
                return;
            }
        }
    }

    fn run_piece(
        &mut self,
        procedure: &dyn Procedure,
        planned: &Planned,
        piece: &PieceOfCall,
        running: &mut Running,
    ) {
        self.steps_run = self.steps_run.saturating_add(piece.steps());
        let mut inputs = Values::new();
        for slot in piece.needs() {
            if let Some(value) = running.values.get(&slot.0) {
                inputs.insert(slot, value.clone());
            }
        }
        let placement = self.placement.as_ref();
        let (args, piece) = (&planned.call.args, piece.to_piece());
        let given = run_piece(procedure, placement, args, &piece, &inputs, &mut self.rows);
        if running.answered {
            let promised = procedure.predetermined(&piece, args);
            assert!(
                promised.is_some() && given.as_ref().ok() == promised.as_ref(),
                "A1: {:?} was answered with {promised:?} and gave {given:?}",
                planned.id()
            );
        }
        match given {
            Ok(given) => {
                let given = given.into_iter().map(|(Slot(slot), value)| (slot, value));
                running.values.extend(given);
            }
            Err(failure) => {
                running.failed = Some(failure.to_string());
            }
        }
    }
}
