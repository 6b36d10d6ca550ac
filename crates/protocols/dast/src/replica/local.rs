//! Local transactions: stamped by their coordinator, known to all replicas they touch after one
//! message, run when the region's clocks have passed (DAST §4.2).

use std::sync::Arc;

use manxdb_core::{LocalTime, NodeId};

use super::{Local, Replica};
use crate::call::{CallId, Planned};
use crate::message::DastMessage;
use crate::timestamp::Timestamp;
use crate::wanted::Out;

impl Replica {
    /// Stamps a local transaction and tells all replicas it touches.
    pub(super) fn stamp(
        &mut self,
        now: LocalTime,
        planned: &Arc<Planned>,
        out: &mut Out,
    ) -> Timestamp {
        let at = self.clock.tick(now);
        out.mark(planned.id().for_traces(), "stamped");
        for shard in planned.shards() {
            let number = self.stamped.entry(shard.0).or_default();
            *number += 1;
            let number = *number;
            for node in self.receivers(shard) {
                if node == self.me {
                    self.cuts.receive(self.me, number);
                    self.hold(at, self.me, Arc::clone(planned));
                    continue;
                }
                let planned = Arc::clone(planned);
                let prepare = DastMessage::PrepareIrt {
                    at,
                    number,
                    planned,
                };
                out.send(node, prepare);
            }
        }
        at
    }

    pub(super) fn hold(&mut self, at: Timestamp, coordinator: NodeId, planned: Arc<Planned>) {
        self.execution.insert(at, Arc::clone(&planned), false);
        self.local_places.insert(planned.id(), at);
        let local = Local {
            planned,
            coordinator,
            holders: self.take_early_holders(at),
        };
        self.locals.insert(at, local);
        self.note_holder(at, self.me);
    }

    pub(super) fn on_prepare_irt(
        &mut self,
        from: NodeId,
        at: Timestamp,
        number: u64,
        planned: Arc<Planned>,
        out: &mut Out,
    ) {
        // One that joins stamps only when it counts: it may have heard so first.
        let counts = self.live.contains(&from) || self.joining == Some(from);
        if !counts || !planned.touches(self.shard) {
            return;
        }
        let id = planned.id();
        if self.cuts.receive(from, number) {
            if at <= self.cuts.safe() {
                self.violated(format!(
                    "I2: {id:?} at {at:?} comes behind {:?}",
                    self.cuts.safe()
                ));
            }
            self.hold(at, from, planned);
            self.note_holder(at, from);
            if !self.is_of_this_shard(from) {
                self.tell_peers_held(id, at, out);
            }
        } else if number > self.cuts.received(from) {
            return;
        }
        out.send(from, DastMessage::AckIrt { id, at });
    }

    pub(super) fn on_confirm(&mut self, from: NodeId, id: CallId, out: &mut Out) {
        let place = self.local_places.get(&id).copied();
        let place = place.or_else(|| self.execution.done(id).map(|done| done.at));
        if let Some(at) = place.filter(|_| self.live.contains(&from)) {
            out.send(from, DastMessage::AckIrt { id, at });
        }
    }
}
