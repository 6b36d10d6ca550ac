//! Answers that wait until all backups have what they are about.

use std::collections::BTreeMap;

use manxdb_core::NodeId;

use crate::ids::Position;
use crate::message::CurpMessage;

/// Messages, each held back until the log is synced up to a place.
#[derive(Debug, Default)]
pub(crate) struct HeldReplies {
    by_place: BTreeMap<Position, Vec<(NodeId, CurpMessage)>>,
}

impl HeldReplies {
    /// Holds a message back.
    pub(crate) fn hold(&mut self, until: Position, to: NodeId, message: CurpMessage) {
        assert!(until > 0, "places begin at 1");
        let held = self.by_place.entry(until).or_default();
        if !held.contains(&(to, message.clone())) {
            held.push((to, message));
        }
    }

    /// What need not wait any longer.
    pub(crate) fn release(&mut self, synced: Position) -> Vec<(NodeId, CurpMessage)> {
        let rest = self.by_place.split_off(&(synced + 1));
        let free = std::mem::replace(&mut self.by_place, rest);
        assert!(
            free.keys().all(|at| *at <= synced),
            "nothing is said before it is true"
        );
        free.into_values().flatten().collect()
    }

    /// The first place that something waits for.
    pub(crate) fn first(&self) -> Option<Position> {
        self.by_place.keys().next().copied()
    }
}
