//! Who takes part in a region (view change; reconfiguration as in Clock-RSM, Du et al. 2014).
//!
//! A silent node stops the region's cuts, so it is put out soon. Everybody left says which of its
//! transactions they hold; the union is told to everybody; only when all have it do cuts go on
//! without it, because a leader that fails may have told some, and its successor asks again.
//! A transaction of it that nobody holds was never answered. One node at a time comes back.
//!
//! A node that comes back has missed what was sent to its earlier life, and its peer's state may lack
//! values that reach the peer afterwards. It asks for those at the shards that gave them, which keep a
//! value until all replicas that count have run what may need it. So from its admission until it
//! counts the region says that it has run no more than then (M3): a state is taken later, and lacks
//! no value of a transaction before that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::check::ensure;
use manxdb_core::{LocalTime, NodeId};

use super::{Effect, Manager};
use crate::call::Planned;
use crate::ledger::Entry;
use crate::message::{DastMessage, Held};
use crate::timestamp::Timestamp;
use crate::topology::{MAJORITY, Role};
use crate::wanted::Out;

/// Changes under way, as this leader knows them.
#[derive(Debug, Default)]
pub(super) struct Changing {
    /// Who has said what it holds of those who are out, in this epoch.
    frozen: BTreeSet<NodeId>,
    held: BTreeMap<Timestamp, Arc<Planned>>,
    /// Who has got the union of that.
    closed: BTreeSet<NodeId>,
    /// An eviction is proposed.
    evicting: bool,
    /// Who sends to the joining node, and from which number on.
    admitted: BTreeMap<NodeId, u64>,
    fetched: bool,
    attempt: u64,
    /// What the region had run when a node began to be let in.
    position: Timestamp,
    /// By the manager's timer: nobody can set it.
    joining_since_tick: Option<u64>,
}

impl Changing {
    /// What the region had run when the node that is being let in was admitted.
    pub(super) fn position(&self) -> Timestamp {
        self.position
    }

    /// What is true of changes at this tick, when so many evictions wait for agreement.
    pub(super) fn check(&self, ticks: u64, evictions: usize) -> Result<(), String> {
        ensure(!self.evicting || evictions > 0, || {
            "M5: nodes are being put out, and nobody proposes so".to_owned()
        })?;
        ensure(self.held.is_empty() || !self.frozen.is_empty(), || {
            let count = self.held.len();
            format!("M5: nobody has said what it holds, and {count} are held")
        })?;
        ensure(!self.fetched || !self.admitted.is_empty(), || {
            "M6: a state is given to a node that nobody sends to".to_owned()
        })?;
        let since = self.joining_since_tick;
        ensure(since.is_none_or(|since| since <= ticks), || {
            format!("M6: a node is being let in since tick {since:?} of {ticks}")
        })
    }
}

impl Manager {
    pub(super) fn take_membership(
        &mut self,
        now: LocalTime,
        from: NodeId,
        message: DastMessage,
        out: &mut Out,
    ) {
        match message {
            DastMessage::Frozen { epoch, held } => self.on_frozen(from, epoch, held, out),
            DastMessage::Closed { epoch } => self.on_closed(from, epoch, out),
            DastMessage::Join { attempt } => self.on_join(from, attempt, out),
            DastMessage::Admitted {
                epoch,
                node,
                before,
            } => self.on_admitted(from, epoch, node, before, out),
            DastMessage::Joined { epoch } => self.on_joined(now, from, epoch, out),
            _ => {}
        }
    }

    /// Puts out what has been silent for too long, as long as a majority of each shard is left.
    pub(super) fn look_for_silent_nodes(&mut self, out: &mut Out) {
        let options = self.shared.options;
        let patience = options
            .suspect_after
            .0
            .div_ceil(options.manager_tick.0.max(1));
        let Some(lead) = &self.lead else {
            return;
        };
        if lead.changing.evicting {
            return;
        }
        let members = &self.ledger().members;
        // A whole tick more: it may have been heard right after one.
        let is_silent = |node: &&NodeId| lead.clocks.silent_ticks(**node) > patience;
        let silent: Vec<NodeId> = members.live.iter().filter(is_silent).copied().collect();
        let since = lead.changing.joining_since_tick;
        let joining_for = since.map(|since| lead.clocks.ticks() - since);
        let stuck = members
            .joining
            .filter(|_| joining_for.is_some_and(|ticks| ticks >= patience * 20));
        let mut gone: Vec<NodeId> = Vec::new();
        for node in silent {
            gone.push(node);
            if !self.is_majority_left(&gone) {
                gone.pop();
            }
        }
        gone.extend(stuck);
        self.evict(gone, out);
    }

    fn is_majority_left(&self, gone: &[NodeId]) -> bool {
        let topology = self.shared.topology;
        let live = &self.ledger().members.live;
        topology.shards_of(self.region).all(|shard| {
            let left = topology.replicas(shard);
            left.filter(|node| live.contains(node) && !gone.contains(node))
                .count()
                >= MAJORITY
        })
    }

    fn evict(&mut self, nodes: Vec<NodeId>, out: &mut Out) {
        if nodes.is_empty() {
            return;
        }
        if let Some(lead) = &mut self.lead {
            lead.changing.evicting = true;
        }
        self.propose(Entry::Evict { nodes }, Effect::Freeze, out);
    }

    /// Asks all that take part what they hold of those who are out.
    pub(super) fn freeze(&mut self, out: &mut Out) {
        let members = self.ledger().members.clone();
        let Some(lead) = &mut self.lead else {
            return;
        };
        lead.changing = Changing::default();
        if members.closing.is_empty() {
            return;
        }
        let gone: Vec<NodeId> = members.closing.iter().copied().collect();
        for node in &members.live {
            let freeze = DastMessage::Freeze {
                epoch: members.epoch,
                gone: gone.clone(),
            };
            out.send(*node, freeze);
        }
    }

    fn on_frozen(&mut self, from: NodeId, epoch: u64, held: Vec<Held>, out: &mut Out) {
        let members = self.ledger().members.clone();
        if epoch != members.epoch || members.closing.is_empty() {
            return;
        }
        let Some(lead) = &mut self.lead else {
            return;
        };
        lead.changing.frozen.insert(from);
        lead.changing
            .held
            .extend(held.into_iter().map(|held| (held.at, held.planned)));
        if !members.live.is_subset(&lead.changing.frozen) {
            return;
        }
        lead.changing.frozen.clear();
        let held = std::mem::take(&mut lead.changing.held);
        for node in &members.closing {
            lead.clocks.forget(*node);
        }
        self.close(epoch, &members.closing, &held, out);
    }

    fn on_closed(&mut self, from: NodeId, epoch: u64, out: &mut Out) {
        let members = self.ledger().members.clone();
        let Some(lead) = &mut self.lead else {
            return;
        };
        if epoch != members.epoch || members.closing.is_empty() {
            return;
        }
        let is_last =
            lead.changing.closed.insert(from) && members.live.is_subset(&lead.changing.closed);
        if is_last {
            self.propose(Entry::Closed { epoch }, Effect::Nothing, out);
        }
    }

    fn close(
        &self,
        epoch: u64,
        gone: &BTreeSet<NodeId>,
        held: &BTreeMap<Timestamp, Arc<Planned>>,
        out: &mut Out,
    ) {
        for node in self.listeners() {
            let Role::Replica(shard) = self.shared.topology.role(node) else {
                continue;
            };
            let of_shard = held.iter().filter(|(_, planned)| planned.touches(shard));
            let held = of_shard.map(|(at, planned)| Held {
                at: *at,
                planned: Arc::clone(planned),
            });
            let close = DastMessage::Close {
                epoch,
                gone: gone.iter().copied().collect(),
                held: held.collect(),
            };
            out.send(node, close);
        }
    }

    fn on_join(&mut self, from: NodeId, attempt: u64, out: &mut Out) {
        if self.shared.topology.region_of_node(from) != Some(self.region) {
            return; // none of this region's
        }
        let members = &self.ledger().members;
        if members.live.contains(&from) {
            // It has started again before anybody missed it.
            let evicting = self
                .lead
                .as_ref()
                .is_some_and(|lead| lead.changing.evicting);
            if !evicting && self.is_majority_left(&[from]) {
                self.evict(vec![from], out);
            }
            return;
        }
        let is_free = members.closing.is_empty() && members.joining.is_none();
        let Some(lead) = &mut self.lead else {
            return;
        };
        if !is_free || lead.changing.evicting || lead.changing.joining_since_tick.is_some() {
            return;
        }
        lead.changing.joining_since_tick = Some(lead.clocks.ticks());
        lead.changing.attempt = attempt;
        self.propose(Entry::Admit { node: from }, Effect::Admit(from), out);
    }

    /// From now on all send to the node what its shard is sent.
    pub(super) fn admit(&mut self, node: NodeId, out: &mut Out) {
        let members = self.ledger().members.clone();
        if members.joining != Some(node) {
            return;
        }
        assert!(
            !members.live.contains(&node),
            "M3: what a region has run does not depend on a node that is let in"
        );
        let position = self.run_by_all().unwrap_or_default();
        if let Some(lead) = &mut self.lead {
            lead.changing.position = position;
        }
        let epoch = members.epoch;
        let attempt = self.lead.as_ref().map_or(0, |lead| lead.changing.attempt);
        for other in &members.live {
            let admit = DastMessage::Admit {
                epoch,
                node,
                attempt,
            };
            out.send(*other, admit);
        }
        let view = self.group.view();
        out.send(node, self.lead_message(view));
        self.tell_fences_to(node, out);
    }

    fn on_admitted(&mut self, from: NodeId, epoch: u64, node: NodeId, before: u64, out: &mut Out) {
        let members = self.ledger().members.clone();
        if epoch != members.epoch || members.joining != Some(node) {
            return;
        }
        let Role::Replica(shard) = self.shared.topology.role(node) else {
            return;
        };
        let replicas = self.shared.topology.replicas(shard);
        let donor = replicas
            .into_iter()
            .find(|donor| members.live.contains(donor));
        let Some(lead) = &mut self.lead else {
            return;
        };
        let changing = &mut lead.changing;
        changing.admitted.insert(from, before);
        let all = members
            .live
            .iter()
            .all(|node| changing.admitted.contains_key(node));
        if !all || std::mem::replace(&mut changing.fetched, true) {
            return;
        }
        let before = changing
            .admitted
            .iter()
            .map(|(node, before)| (*node, *before))
            .collect();
        if let Some(donor) = donor {
            let fetch = DastMessage::Fetch {
                epoch,
                node,
                before,
            };
            out.send(donor, fetch);
        }
    }

    fn on_joined(&mut self, now: LocalTime, from: NodeId, epoch: u64, out: &mut Out) {
        let members = &self.ledger().members;
        if epoch == members.epoch && members.joining == Some(from) {
            if !self.bound_is_near(now) {
                // It says so again.
                return;
            }
            self.propose(Entry::Live { node: from }, Effect::Count(from), out);
        } else if members.live.contains(&from) {
            self.tell_live(from, out);
        } else {
            self.tell_if_out(from, out);
        }
    }

    /// A node that takes part has not heard so: whoever told it led no more, or is gone.
    fn tell_live(&self, node: NodeId, out: &mut Out) {
        let ledger = self.ledger();
        let Some(lead) = &self.lead else {
            return;
        };
        let (epoch, past) = (
            ledger.members.epoch,
            ledger.reserved.max(lead.clocks.told()),
        );
        out.send(node, DastMessage::Live { epoch, node, past });
    }

    /// A node that believes to take part and does not must begin again from nothing.
    pub(super) fn tell_if_out(&self, node: NodeId, out: &mut Out) {
        let members = &self.ledger().members;
        let is_in = members.live.contains(&node)
            || members.closing.contains(&node)
            || members.joining == Some(node);
        if !is_in {
            let epoch = members.epoch;
            out.send(node, DastMessage::Out { epoch });
        }
    }

    /// The node takes part, behind everything that has been told so far.
    pub(super) fn count(&mut self, now: LocalTime, node: NodeId, out: &mut Out) {
        let members = self.ledger().members.clone();
        let reserved = self.ledger().reserved;
        let Some(lead) = &mut self.lead else {
            return;
        };
        if !members.live.contains(&node) {
            // Somebody was put out first, and half a joining is worth nothing. What the others
            // have said of that one counts.
            return;
        }
        assert!(
            members.joining != Some(node),
            "M3: who counts is let in no more"
        );
        lead.changing = Changing::default();
        let past = reserved.max(lead.clocks.told());
        lead.clocks.expect(node, past, now);
        let run = self.run_by_all();
        assert!(
            run.is_none_or(|run| run == Timestamp::ZERO),
            "M3: before a node says what it has run, its region has run nothing"
        );
        let epoch = members.epoch;
        for other in &members.live {
            out.send(*other, DastMessage::Live { epoch, node, past });
        }
    }
}
