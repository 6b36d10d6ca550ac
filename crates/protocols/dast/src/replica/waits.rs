//! What a replica says of transactions that it cannot run yet.

use std::collections::BTreeMap;

use manxdb_core::Wait;

use super::Replica;
use crate::call::CallId;
use crate::timestamp::Timestamp;
use crate::waits::{CROSS_REGION, GATE, SESSION, wait, wait_on};
use crate::wanted::Out;

impl Replica {
    /// Says what has changed since it was said last.
    pub(super) fn say_waits(&mut self, out: &mut Out) {
        if !self.shared.options.explains || !self.standing.has_state() {
            return;
        }
        let waits = self.waits();
        for id in self.said_waits.keys() {
            if !waits.contains_key(id) {
                out.wait(id.for_traces(), None);
            }
        }
        for (id, wait) in &waits {
            if self.said_waits.get(id) != Some(wait) {
                out.wait(id.for_traces(), Some(*wait));
            }
        }
        self.said_waits = waits;
    }

    pub(super) fn waits(&self) -> BTreeMap<CallId, Wait> {
        let mut waits = BTreeMap::new();
        for early in &self.early_calls {
            waits.insert(early.call.id, wait(SESSION));
        }
        waits.extend(self.waiting_for_order());
        waits.extend(self.execution.deferred_waits());
        waits.extend(self.waiting_to_close());
        waits
    }

    /// Transactions that are settled and whose turn has not come.
    fn waiting_for_order(&self) -> impl Iterator<Item = (CallId, Wait)> + '_ {
        let floors = self.floors.iter().map(|(id, at)| (*at, *id));
        let mut floors: Vec<(Timestamp, CallId)> = floors.collect();
        floors.sort_unstable();
        let unheld = self.unheld().map(|local| (local.planned.id(), wait(GATE)));
        let settled = self.execution.settled();
        let settled = settled.map(move |(at, id)| {
            let ahead = floors.iter().find(|(_, other)| *other != id);
            match ahead.filter(|(floor, _)| *floor < at) {
                Some((_, other)) => (id, wait_on(CROSS_REGION, *other)),
                None => (id, wait(GATE)),
            }
        });
        unheld.chain(settled)
    }
}
