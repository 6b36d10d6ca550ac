//! Leaving and coming back (view change and state transfer; see the crate's page on failures).
//!
//! A node that is out is not listened to. What it had stamped is collected from all that are
//! left, and told to all, before any cut passes its last report. A node that comes back has
//! forgotten everything: it is first sent all that is new, then given a peer's state, and counts
//! only after that.

use std::sync::Arc;

use manxdb_core::{LocalTime, NodeId};

use super::Replica;
use crate::message::{DastMessage, Held, State};
use crate::timestamp::Timestamp;
use crate::topology::Role;
use crate::wanted::Out;

/// How a replica stands with its region.
#[derive(Debug)]
pub(super) enum Standing {
    /// It takes part.
    Live,
    /// It has its state and waits to be counted.
    Ready,
    /// It has no state.
    Out {
        /// What came in the meantime and belongs behind the state, in order.
        kept: Vec<(NodeId, DastMessage)>,
    },
}

impl Standing {
    pub(super) fn at_start(life: u64) -> Self {
        if life <= 1 {
            return Self::Live;
        }
        Self::Out { kept: Vec::new() }
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self, Self::Live)
    }

    pub(super) fn has_state(&self) -> bool {
        !matches!(self, Self::Out { .. })
    }
}

/// A state that this replica is to give to a new one.
#[derive(Debug)]
pub(super) struct Gift {
    epoch: u64,
    node: NodeId,
    before: Vec<(NodeId, u64)>,
}

impl Replica {
    /// What a replica without state has to keep until it has one. `None`: kept, or of no use.
    pub(super) fn keep_for_later(
        &mut self,
        from: NodeId,
        message: DastMessage,
    ) -> Option<DastMessage> {
        let Standing::Out { kept } = &mut self.standing else {
            return Some(message);
        };
        match message {
            DastMessage::Lead { .. } => {
                // It is being let in: of what this manager said before, part was not said here.
                kept.retain(|(other, _)| *other != from);
                Some(message)
            }
            DastMessage::State(_) => Some(message),
            DastMessage::PrepareIrt { .. }
            | DastMessage::AckIrt { .. }
            | DastMessage::Inputs { .. }
            | DastMessage::Output(_)
            | DastMessage::Cut(_)
            | DastMessage::PrepareCrt { .. }
            | DastMessage::Place { .. }
            | DastMessage::Bound { .. }
            | DastMessage::Fences { .. }
            | DastMessage::Floor { .. }
            | DastMessage::Settle { .. }
            | DastMessage::Close { .. }
            | DastMessage::Live { .. } => {
                kept.push((from, message));
                None
            }
            _ => None,
        }
    }

    pub(super) fn ask_to_join(&mut self, out: &mut Out) {
        let attempt = self.attempts_to_join;
        let topology = self.shared.topology;
        for node in topology
            .nodes(self.region)
            .chain(topology.managers(self.region))
        {
            if node != self.me {
                out.send(node, DastMessage::Join { attempt });
            }
        }
    }

    /// A replica with state that is not counted reminds its leader, who may have changed.
    pub(super) fn ask_to_be_counted(&mut self, out: &mut Out) {
        if matches!(self.standing, Standing::Ready) {
            let epoch = self.epoch;
            for manager in self.shared.topology.managers(self.region) {
                out.send(manager, DastMessage::Joined { epoch });
            }
        }
    }

    /// A peer starts from nothing.
    fn on_join(&mut self, from: NodeId, attempt: u64, out: &mut Out) {
        let heard = self.heard_to_join.entry(from).or_default();
        *heard = attempt.max(*heard);
        self.forget_holder(from);
        if let Some((leader, epoch, node, attempt)) = self.admission
            && node == from
        {
            self.on_admit(leader, epoch, node, attempt, out);
        }
    }

    pub(super) fn on_lead(
        &mut self,
        now: LocalTime,
        from: NodeId,
        (view, epoch): (u64, u64),
        live: &[NodeId],
        out: &mut Out,
    ) {
        if view < self.leader_view {
            return;
        }
        self.leader_view = view;
        self.leader = from;
        self.epoch = self.epoch.max(epoch);
        if !self.standing.has_state() {
            return;
        }
        // Who has left is told again; of those who have come the former leader was to tell. This
        // node itself takes part when it hears behind which clock.
        for node in live.iter().filter(|node| **node != self.me) {
            self.live.insert(*node);
            if self.joining == Some(*node) {
                self.joining = None;
            }
        }
        let stamped: Vec<(u32, u64)> = self
            .stamped
            .iter()
            .map(|(shard, number)| (*shard, *number))
            .collect();
        self.reported = stamped.iter().copied().collect();
        let report = self.make_report(now, stamped);
        out.send(
            from,
            DastMessage::Hello {
                view,
                report: Box::new(report),
                heard: Box::new(self.heard()),
            },
        );
    }

    pub(super) fn take_membership(
        &mut self,
        now: LocalTime,
        from: NodeId,
        message: DastMessage,
        out: &mut Out,
    ) {
        match message {
            DastMessage::Freeze { epoch, gone } => self.on_freeze(from, epoch, &gone, out),
            DastMessage::Close { epoch, gone, held } => {
                self.on_close(from, epoch, &gone, held, out);
            }
            DastMessage::Out { epoch } => self.on_out(from, epoch, out),
            DastMessage::Join { attempt } => self.on_join(from, attempt, out),
            DastMessage::Admit {
                epoch,
                node,
                attempt,
            } => self.on_admit(from, epoch, node, attempt, out),
            DastMessage::Fetch {
                epoch,
                node,
                before,
            } => {
                self.gift = Some(Gift {
                    epoch,
                    node,
                    before,
                });
            }
            DastMessage::State(state) => self.on_state(now, from, *state, out),
            DastMessage::Live { epoch, node, past } => self.on_live(now, epoch, node, past, out),
            _ => {}
        }
    }

    fn on_freeze(&mut self, from: NodeId, epoch: u64, gone: &[NodeId], out: &mut Out) {
        if epoch < self.epoch {
            return;
        }
        self.epoch = epoch;
        for node in gone {
            self.live.remove(node);
            self.closing.insert(*node);
            self.forget_holder(*node);
        }
        self.joining = None;
        let of_gone = self
            .locals
            .iter()
            .filter(|(_, local)| gone.contains(&local.coordinator));
        let held = of_gone
            .map(|(at, local)| Held {
                at: *at,
                planned: Arc::clone(&local.planned),
            })
            .collect();
        out.send(from, DastMessage::Frozen { epoch, held });
    }

    fn on_close(
        &mut self,
        from: NodeId,
        epoch: u64,
        gone: &[NodeId],
        held: Vec<Held>,
        out: &mut Out,
    ) {
        if epoch < self.epoch {
            return;
        }
        self.epoch = epoch;
        for node in gone {
            self.live.remove(node);
            self.closing.remove(node);
            self.cuts.forget(*node);
            self.forget_holder(*node);
        }
        for Held { at, planned } in held {
            if !planned.touches(self.shard) {
                continue;
            }
            // Of those who had it before, some have told nobody but the coordinator.
            self.tell_peers_held(planned.id(), at, out);
            if !self.locals.contains_key(&at) {
                self.hold(at, NodeId(at.site), planned);
            }
        }
        out.send(from, DastMessage::Closed { epoch });
    }

    /// This node is out: what it knows may be wrong, so it begins again from nothing.
    fn on_out(&mut self, from: NodeId, epoch: u64, out: &mut Out) {
        let is_manager = self.shared.topology.role(from) == Role::Manager(self.region);
        if epoch < self.epoch || !is_manager || !self.standing.has_state() {
            return;
        }
        self.epoch = epoch;
        self.standing = Standing::Out { kept: Vec::new() };
        self.execution.clear();
        self.cuts.clear();
        for (id, floor) in std::mem::take(&mut self.floors) {
            let _ = id;
            self.clock.remove_floor(floor);
        }
        self.clock.clear_ceiling();
        self.placed.clear();
        self.locals.clear();
        self.local_places.clear();
        self.early_holders.clear();
        self.coordinating.clear();
        self.early_calls.clear();
        self.fences.clear();
        self.stamped.clear();
        self.reported.clear();
        self.gift = None;
        self.admission = None;
        self.joining = None;
        self.attempts_to_join += 1;
        self.ask_to_join(out);
    }

    fn on_admit(&mut self, from: NodeId, epoch: u64, node: NodeId, attempt: u64, out: &mut Out) {
        if epoch < self.epoch || node == self.me {
            return;
        }
        self.epoch = epoch;
        if self
            .heard_to_join
            .get(&node)
            .is_none_or(|heard| *heard < attempt)
        {
            // Nothing sent now would reach the node's new life.
            self.admission = Some((from, epoch, node, attempt));
            return;
        }
        self.admission = None;
        self.live.remove(&node);
        self.closing.remove(&node);
        self.cuts.forget(node);
        self.joining = Some(node);
        let Role::Replica(shard) = self.shared.topology.role(node) else {
            return;
        };
        let before = self.stamped.get(&shard.0).copied().unwrap_or(0);
        let admitted = DastMessage::Admitted {
            epoch,
            node,
            before,
        };
        out.send(from, admitted);
    }

    /// Gives the state away once it contains everything the new replica will not be sent.
    pub(super) fn give_state(&mut self, out: &mut Out) {
        let Some(gift) = &self.gift else {
            return;
        };
        let is_here = |(node, before): &(NodeId, u64)| {
            !self.live.contains(node) || self.cuts.received(*node) >= *before
        };
        if !gift.before.iter().all(is_here) {
            return;
        }
        let held = self.locals.iter().map(|(at, local)| Held {
            at: *at,
            planned: Arc::clone(&local.planned),
        });
        let state = State {
            epoch: gift.epoch,
            copy: self.execution.copy(),
            safe: self.cuts.safe(),
            received: self.cuts.all_received(),
            held: held.collect(),
            live: self.live.iter().copied().collect(),
            floors: self.floors.iter().map(|(id, at)| (*at, *id)).collect(),
            placed: self.placed.iter().copied().collect(),
        };
        out.send(gift.node, DastMessage::State(Box::new(state)));
        self.gift = None;
    }

    fn on_state(&mut self, now: LocalTime, donor: NodeId, state: State, out: &mut Out) {
        let epoch = state.epoch;
        if epoch < self.epoch {
            return;
        }
        if let Err(broken) = state.copy.check() {
            // It goes on asking, and gets the next state of somebody else.
            self.violated(format!(
                "T1: {donor:?} gave a state that cannot be: {broken}"
            ));
            return;
        }
        let Standing::Out { kept } = &mut self.standing else {
            return;
        };
        let kept = std::mem::take(kept);
        self.epoch = epoch;
        self.standing = Standing::Ready;
        self.live = state.live.into_iter().collect();
        self.execution.install(state.copy);
        self.cuts.install(state.safe, state.received);
        for Held { at, planned } in state.held {
            if self.execution.is_known(at) {
                self.tell_peers_held(planned.id(), at, out);
            }
            self.hold(at, NodeId(at.site), planned);
            self.note_holder(at, donor);
        }
        self.placed.extend(state.placed);
        for (at, id) in state.floors {
            self.on_floor(id, at);
        }
        out.send(self.leader, DastMessage::Joined { epoch });
        for (from, message) in kept {
            self.take(now, from, message, out);
        }
    }

    fn on_live(
        &mut self,
        now: LocalTime,
        epoch: u64,
        node: NodeId,
        past: Timestamp,
        out: &mut Out,
    ) {
        if epoch < self.epoch {
            return;
        }
        self.epoch = epoch;
        self.live.insert(node);
        if self.joining == Some(node) {
            self.joining = None;
        }
        if node == self.me && !self.standing.is_live() {
            self.clock.pass(past);
            self.standing = Standing::Live;
            self.report(now, out);
        }
    }
}
