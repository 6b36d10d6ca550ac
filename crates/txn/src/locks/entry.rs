//! The holders and the queue of one key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Strength, Ticket};
use crate::path::TxnId;

#[derive(Default)]
pub(super) struct Entry {
    holders: Vec<(TxnId, Strength)>,
    queue: VecDeque<Arc<Ticket>>,
}

impl Entry {
    pub(super) fn held_by(owner: TxnId, strength: Strength) -> Self {
        Self {
            holders: vec![(owner, strength)],
            queue: VecDeque::new(),
        }
    }

    pub(super) fn is_unused(&self) -> bool {
        self.holders.is_empty() && self.queue.is_empty()
    }

    /// Grants at once if the owner has it already, or no holder forbids it and nobody queues.
    /// A holder that wants more does not queue behind those that wait for it.
    pub(super) fn try_grant(&mut self, owner: TxnId, strength: Strength) -> bool {
        let held = self.held_strength(owner);
        if held.is_some_and(|held| held >= strength) {
            return true;
        }
        if !self.holders_allow(owner, strength) || (held.is_none() && !self.queue.is_empty()) {
            return false;
        }
        self.hold(owner, strength);
        true
    }

    /// Queues a request that [`Entry::try_grant`] refused.
    pub(super) fn enqueue(&mut self, ticket: Arc<Ticket>) {
        if self.held_strength(ticket.owner).is_some() {
            self.queue.push_front(ticket);
        } else {
            self.queue.push_back(ticket);
        }
    }

    pub(super) fn dequeue(&mut self, ticket: &Arc<Ticket>) {
        self.queue.retain(|queued| !Arc::ptr_eq(queued, ticket));
    }

    pub(super) fn remove_holder(&mut self, owner: TxnId) {
        self.holders.retain(|(holder, _)| *holder != owner);
    }

    /// Grants from the head of the queue as far as holders allow; the caller wakes the owners.
    pub(super) fn grant_next(&mut self) -> Vec<Arc<Ticket>> {
        let mut granted = Vec::new();
        while let Some(next) = self.queue.front() {
            if !self.holders_allow(next.owner, next.strength) {
                break;
            }
            let Some(ticket) = self.queue.pop_front() else {
                break;
            };
            self.hold(ticket.owner, ticket.strength);
            ticket.granted.store(true, Ordering::Release);
            granted.push(ticket);
        }
        granted
    }

    /// Whom a queued request waits for: holders and earlier requests it cannot share with.
    pub(super) fn blockers(&self, ticket: &Arc<Ticket>) -> Vec<TxnId> {
        let is_ticket = |queued: &Arc<Ticket>| Arc::ptr_eq(queued, ticket);
        let Some(place) = self.queue.iter().position(is_ticket) else {
            return Vec::new();
        };
        let holders = self.holders.iter().copied();
        let ahead = self.queue.iter().take(place);
        holders
            .chain(ahead.map(|queued| (queued.owner, queued.strength)))
            .filter(|(owner, strength)| {
                *owner != ticket.owner && !compatible(*strength, ticket.strength)
            })
            .map(|(owner, _)| owner)
            .collect()
    }

    fn held_strength(&self, owner: TxnId) -> Option<Strength> {
        let mut holders = self.holders.iter();
        holders.find_map(|(holder, strength)| (*holder == owner).then_some(*strength))
    }

    fn holders_allow(&self, owner: TxnId, strength: Strength) -> bool {
        let mut others = self.holders.iter().filter(|(holder, _)| *holder != owner);
        others.all(|(_, held)| compatible(*held, strength))
    }

    fn hold(&mut self, owner: TxnId, strength: Strength) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            Some(held) => held.1 = held.1.max(strength),
            None => self.holders.push((owner, strength)),
        }
    }
}

fn compatible(one: Strength, other: Strength) -> bool {
    one == Strength::Shared && other == Strength::Shared
}
