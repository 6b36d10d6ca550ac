//! What holds of pieces, of values that came early, and of the order that is kept.

use manxdb_core::check::ensure;

use super::Execution;
use crate::timestamp::Timestamp;

impl Execution {
    /// Whether a transaction that waits here for its turn is settled; none: none waits.
    pub(crate) fn is_settled(&self, at: Timestamp) -> Option<bool> {
        self.known.get(&at).map(|known| known.settled)
    }

    /// Transactions that wait for their turn, or have pieces left.
    pub(super) fn check_waiting(&self) -> Result<(), String> {
        for (at, known) in &self.known {
            let id = known.planned.id();
            ensure(known.planned.touches(self.shard), || {
                format!("X5: {id:?} at {at:?} waits for its turn on a shard that it does not touch")
            })?;
            ensure(!self.given_up.contains(&id), || {
                format!("X6: {id:?} at {at:?} waits for its turn and was given up")
            })?;
        }
        for (at, running) in &self.running {
            let (id, planned) = (running.planned.id(), &running.planned);
            let is_here = |place: &usize| {
                let piece = planned.pieces.get(*place);
                piece.is_some_and(|piece| piece.shard() == self.shard)
            };
            ensure(running.left.iter().all(is_here), || {
                format!("X7: {id:?} at {at:?} has left what is no piece here")
            })?;
            ensure(running.failed.is_none(), || {
                format!("X8: {id:?} at {at:?} has failed, and runs on")
            })?;
            let wanted = planned.wanted_from(self.shard).count();
            ensure(running.shared <= wanted, || {
                format!("X9: {id:?} has given {} values of {wanted}", running.shared)
            })?;
        }
        for id in self.early.keys() {
            ensure(!self.done.contains_key(id), || {
                format!("X10: values wait for {id:?}, which is done")
            })?;
        }
        Ok(())
    }

    /// The order, as it is kept, and what it says of other regions.
    pub(super) fn check_order(&self) -> Result<(), String> {
        ensure(self.keeps_order || self.order.is_empty(), || {
            format!(
                "X11: {} turns are kept, which nobody asks for",
                self.order.len()
            )
        })?;
        let last = self.order.last().map(|(at, _)| *at);
        ensure(last.is_none_or(|last| last <= self.turn), || {
            format!("X11: {last:?} is the last in order, {:?} of all", self.turn)
        })?;
        let before = self.order.iter().rev().nth(1).map(|(at, _)| *at);
        ensure(before.is_none_or(|before| Some(before) < last), || {
            format!("X11: {last:?} comes behind {before:?} in order")
        })?;
        let high = self.crossings.high();
        ensure(high <= self.turn, || {
            format!(
                "X12: what has run may depend on {high:?}, behind {:?}",
                self.turn
            )
        })?;
        self.crossings.check()
    }
}
