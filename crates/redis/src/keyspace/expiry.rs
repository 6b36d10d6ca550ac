//! Which key's time is over next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Keyspace;

/// When, and which key of which database.
type Due = (u64, usize, Box<[u8]>);

/// Expiries, earliest first. One that was changed since is found stale when it comes up.
#[derive(Debug, Default)]
pub struct Expiring {
    heap: BinaryHeap<Reverse<Due>>,
}

impl Expiring {
    /// Notes an expiry.
    pub fn add(&mut self, at_millis: u64, db: usize, key: &[u8]) {
        self.heap.push(Reverse((at_millis, db, key.into())));
    }

    /// Notes an expiry unless it is 0, none.
    pub fn add_if_set(&mut self, at_millis: u64, db: usize, key: &[u8]) {
        if at_millis > 0 {
            self.add(at_millis, db, key);
        }
    }

    /// The earliest one, stale or not.
    pub fn first(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The earliest one that is at or before `now`.
    pub fn pop_due(&mut self, now: u64) -> Option<Due> {
        let Reverse((at, _, _)) = self.heap.peek()?;
        if *at > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due)
    }
}

impl Keyspace {
    /// Whether keys whose time is over are noted as they are removed.
    pub(crate) fn record_expired(&mut self, is_recorded: bool) {
        match &mut self.expired {
            Some(_) if is_recorded => {}
            expired => *expired = is_recorded.then(Vec::new),
        }
    }

    /// Keys that were removed since this was asked last, with their databases.
    pub(crate) fn take_expired(&mut self) -> Vec<(usize, Box<[u8]>)> {
        self.expired
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Removes a key whose time is over. To the command that finds it so it was gone before.
    pub(super) fn expire(&mut self, db: usize, key: &[u8]) {
        self.statistics.expired += 1;
        if let Some(expired) = &mut self.expired {
            expired.push((db, key.into()));
        }
        let has_changed = self.has_changed;
        self.remove(db, key);
        self.has_changed = has_changed;
    }
}
