//! Which replicas of this shard hold a local transaction.
//!
//! What only one replica holds goes with it when it fails, so nothing may have seen it by then:
//! a cross-region transaction, or one of several shards, is answered on the word of the one
//! replica that speaks for the shard. So a local transaction does not run before the replica knows
//! that a majority of the shard's replicas holds it (invariant H). Its coordinator, and whoever
//! had it from a coordinator of the same shard, know so by the messages that are sent anyway; all
//! others are told by the shard's other replicas. Both come before the cut that lets it run.

use std::collections::BTreeMap;

use manxdb_core::NodeId;
use manxdb_core::check::ensure;

use super::{Local, Replica};
use crate::call::CallId;
use crate::message::DastMessage;
use crate::timestamp::Timestamp;
use crate::topology::{COPIES, MAJORITY, Role};
use crate::wanted::Out;

/// Replicas of one shard, by their places in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Holders(u8);

const _: () = assert!(
    COPIES <= u8::BITS && MAJORITY * 2 > COPIES as usize,
    "each replica of a shard has a bit, and two majorities have one in common"
);

impl Holders {
    fn bit(node: NodeId) -> u8 {
        1 << (node.0 % COPIES)
    }

    fn add(&mut self, node: NodeId) {
        self.0 |= Self::bit(node);
    }

    fn remove(&mut self, node: NodeId) {
        self.0 &= !Self::bit(node);
    }

    fn count(self) -> usize {
        self.0.count_ones() as usize
    }
}

/// Of transactions that are not here yet.
pub(super) type EarlyHolders = BTreeMap<Timestamp, Holders>;

impl Replica {
    /// Notes that a replica of this shard holds the local transaction at `at`, which may come later
    /// itself.
    pub(super) fn note_holder(&mut self, at: Timestamp, node: NodeId) {
        if !self.is_of_this_shard(node) {
            return;
        }
        let needed = self.holders_needed();
        if let Some(local) = self.locals.get_mut(&at) {
            local.holders.add(node);
            if local.holders.count() >= needed {
                self.execution.secure(at);
            }
        } else if at > self.execution.turn() {
            self.early_holders.entry(at).or_default().add(node);
        }
    }

    pub(super) fn is_of_this_shard(&self, node: NodeId) -> bool {
        self.shared.topology.role(node) == Role::Replica(self.shard)
    }

    #[allow(clippy::unused_self)] // a planted defect asks
    fn holders_needed(&self) -> usize {
        #[cfg(feature = "mutants")]
        if self.is_mutant(crate::mutants::Mutant::RunsWhatOneHolds)
            || self.is_mutant(crate::mutants::Mutant::TooFewAcknowledgements)
        {
            return MAJORITY - 1;
        }
        MAJORITY
    }

    /// A replica has forgotten what it held, or will.
    pub(super) fn forget_holder(&mut self, node: NodeId) {
        if !self.is_of_this_shard(node) {
            return;
        }
        for local in self.locals.values_mut() {
            local.holders.remove(node);
        }
        for holders in self.early_holders.values_mut() {
            holders.remove(node);
        }
    }

    /// Tells the other replicas of the shard that this one holds a local transaction.
    pub(super) fn tell_peers_held(&self, id: CallId, at: Timestamp, out: &mut Out) {
        for node in self.receivers(self.shard) {
            if node != self.me {
                out.send(node, DastMessage::AckIrt { id, at });
            }
        }
    }

    /// What has come to be known of the holders of a transaction before it was here.
    pub(super) fn take_early_holders(&mut self, at: Timestamp) -> Holders {
        self.early_holders.remove(&at).unwrap_or_default()
    }

    /// Invariant H, from its other side: what a majority holds need not wait for more.
    pub(super) fn check_holders(&self) -> Result<(), String> {
        let needed = self.holders_needed();
        for (at, local) in &self.locals {
            let is_held = local.holders.count() >= needed;
            let waits = self.execution.is_settled(*at) == Some(false);
            ensure(!is_held || !waits, || {
                format!(
                    "H: a majority holds {:?} at {at:?}, which waits for one",
                    local.planned.id()
                )
            })?;
        }
        Ok(())
    }

    /// Local transactions that wait for their turn and that too few replicas are known to hold.
    pub(super) fn unheld(&self) -> impl Iterator<Item = &Local> {
        let needed = self.holders_needed();
        let waiting = self
            .locals
            .iter()
            .filter(|(at, _)| self.execution.is_known(**at));
        let locals = waiting.map(|(_, local)| local);
        locals.filter(move |local| local.holders.count() < needed)
    }
}
