//! The holders and the queue of one key.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Strength, Ticket};
use crate::model::TxnId;

/// Small, because a large transaction has one for each of its rows: nearly all have one holder
/// and no queue.
#[derive(Default)]
pub(super) struct Entry {
    first: Option<(TxnId, Strength)>,
    more: Option<Box<More>>,
}

#[derive(Default)]
struct More {
    holders: Vec<(TxnId, Strength)>,
    queue: VecDeque<Arc<Ticket>>,
}

impl Entry {
    pub(super) fn held_by(owner: TxnId, strength: Strength) -> Self {
        Self {
            first: Some((owner, strength)),
            more: None,
        }
    }

    /// How strongly `owner` holds the key, if nobody else does and nobody waits.
    pub(super) fn held_alone(&self, owner: TxnId) -> Option<Strength> {
        let mut holders = self.holders();
        let (holder, strength) = holders.next()?;
        let is_alone = holders.next().is_none() && self.queue().next().is_none();
        (holder == owner && is_alone).then_some(strength)
    }

    fn holders(&self) -> impl Iterator<Item = (TxnId, Strength)> {
        let more = self.more.iter().flat_map(|more| &more.holders);
        self.first.iter().chain(more).copied()
    }

    fn queue(&self) -> impl Iterator<Item = &Arc<Ticket>> {
        self.more.iter().flat_map(|more| &more.queue)
    }

    /// What is true of every lock: at the level of `deep` checks.
    pub(super) fn check(&self) {
        let holders: Vec<(TxnId, Strength)> = self.holders().collect();
        let is_exclusive = |(_, held): &(TxnId, Strength)| *held == Strength::Exclusive;
        assert!(
            holders.len() <= 1 || !holders.iter().any(is_exclusive),
            "an exclusive lock has one holder: {holders:?}"
        );
        let mut owners: Vec<TxnId> = holders.iter().map(|(owner, _)| *owner).collect();
        owners.sort_unstable();
        owners.dedup();
        assert_eq!(owners.len(), holders.len(), "a holder holds a lock once");
        assert!(
            self.queue().all(|ticket| !ticket.is_granted()),
            "who is granted a lock waits no more"
        );
        let has = |ticket: &Arc<Ticket>| self.held_strength(ticket.owner) >= Some(ticket.strength);
        assert!(
            !self.queue().any(has),
            "who has a lock waits for a stronger one only"
        );
        let waiting: BTreeSet<TxnId> = self.queue().map(|ticket| ticket.owner).collect();
        assert_eq!(
            waiting.len(),
            self.queue().count(),
            "an owner waits for a lock once"
        );
        let next = self.queue().next();
        let is_stuck = next.is_some_and(|next| self.holders_allow(next.owner, next.strength));
        assert!(
            !is_stuck,
            "the first in line is granted what nobody keeps from it"
        );
    }

    pub(super) fn is_unused(&self) -> bool {
        self.holders().next().is_none() && self.queue().next().is_none()
    }

    /// Grants at once if the owner has it already, or no holder forbids it and nobody queues.
    /// A holder that wants more does not queue behind those that wait for it.
    pub(super) fn try_grant(&mut self, owner: TxnId, strength: Strength) -> bool {
        let held = self.held_strength(owner);
        if held.is_some_and(|held| held >= strength) {
            return true;
        }
        if !self.holders_allow(owner, strength) || (held.is_none() && self.queue().next().is_some())
        {
            return false;
        }
        self.hold(owner, strength);
        true
    }

    /// Queues a request that [`Entry::try_grant`] refused.
    pub(super) fn enqueue(&mut self, ticket: Arc<Ticket>) {
        let held = self.held_strength(ticket.owner);
        assert!(
            held.is_none_or(|held| held < ticket.strength),
            "who holds it does not queue"
        );
        let is_holder = held.is_some();
        let queue = &mut self.more.get_or_insert_default().queue;
        if is_holder {
            queue.push_front(ticket);
        } else {
            queue.push_back(ticket);
        }
    }

    pub(super) fn dequeue(&mut self, ticket: &Arc<Ticket>) {
        if let Some(more) = &mut self.more {
            more.queue.retain(|queued| !Arc::ptr_eq(queued, ticket));
        }
    }

    pub(super) fn remove_holder(&mut self, owner: TxnId) {
        self.first.take_if(|(holder, _)| *holder == owner);
        if let Some(more) = &mut self.more {
            more.holders.retain(|(holder, _)| *holder != owner);
        }
    }

    /// Grants from the head of the queue as far as holders allow; the caller wakes the owners.
    pub(super) fn grant_next(&mut self) -> Vec<Arc<Ticket>> {
        let mut granted = Vec::new();
        loop {
            let next = self.queue().next().map(Arc::clone);
            let Some(ticket) = next else {
                break;
            };
            if !self.holders_allow(ticket.owner, ticket.strength) {
                break;
            }
            if let Some(more) = &mut self.more {
                more.queue.pop_front();
            }
            self.hold(ticket.owner, ticket.strength);
            let was_granted = ticket.granted.swap(true, Ordering::AcqRel);
            assert!(!was_granted, "a ticket is granted once");
            granted.push(ticket);
        }
        granted
    }

    /// Whom a queued request waits for: holders and earlier requests it cannot share with.
    pub(super) fn blockers(&self, ticket: &Arc<Ticket>) -> Vec<TxnId> {
        let is_ticket = |queued: &Arc<Ticket>| Arc::ptr_eq(queued, ticket);
        let Some(place) = self.queue().position(is_ticket) else {
            return Vec::new();
        };
        let ahead = self.queue().take(place);
        self.holders()
            .chain(ahead.map(|queued| (queued.owner, queued.strength)))
            .filter(|(owner, strength)| {
                *owner != ticket.owner && !compatible(*strength, ticket.strength)
            })
            .map(|(owner, _)| owner)
            .collect()
    }

    /// How strongly `owner` holds the key.
    pub(super) fn held_strength(&self, owner: TxnId) -> Option<Strength> {
        let mut holders = self.holders();
        holders.find_map(|(holder, strength)| (holder == owner).then_some(strength))
    }

    fn holders_allow(&self, owner: TxnId, strength: Strength) -> bool {
        let mut others = self.holders().filter(|(holder, _)| *holder != owner);
        others.all(|(_, held)| compatible(held, strength))
    }

    fn hold(&mut self, owner: TxnId, strength: Strength) {
        assert!(
            self.holders_allow(owner, strength),
            "an exclusive lock has one holder"
        );
        let more = self.more.iter_mut().flat_map(|more| &mut more.holders);
        let mut holders = self.first.iter_mut().chain(more);
        if let Some(held) = holders.find(|(holder, _)| *holder == owner) {
            held.1 = held.1.max(strength);
        } else if self.first.is_none() {
            self.first = Some((owner, strength));
        } else {
            let more = self.more.get_or_insert_default();
            more.holders.push((owner, strength));
        }
    }
}

fn compatible(one: Strength, other: Strength) -> bool {
    one == Strength::Shared && other == Strength::Shared
}
