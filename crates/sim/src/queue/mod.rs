//! What will happen, in the order of time, and of asking where times are equal.

mod calendar;
mod slab;

use calendar::{Calendar, Entry};
use slab::Slab;

use crate::time::SimTime;

/// Events by `(time, order of pushing)`.
#[derive(Debug)]
pub struct Queue<T> {
    calendar: Calendar,
    payloads: Slab<T>,
    pushed: u64,
    waiting: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            calendar: Calendar::default(),
            payloads: Slab::default(),
            pushed: 0,
            waiting: 0,
        }
    }
}

impl<T> Queue<T> {
    /// Lets something happen at a time.
    pub fn push(&mut self, at: SimTime, payload: T) {
        let slot = self.payloads.insert(payload);
        let seq = self.pushed;
        self.pushed += 1;
        self.waiting += 1;
        self.calendar.push(Entry { at, seq, slot });
    }

    /// What happens next, if it does by `limit`.
    pub fn pop_until(&mut self, limit: SimTime) -> Option<(SimTime, T)> {
        let entry = self.calendar.peek().filter(|entry| entry.at <= limit)?;
        self.calendar.pop();
        self.waiting -= 1;
        let payload = self.payloads.take(entry.slot);
        debug_assert!(payload.is_some(), "an entry without its payload");
        payload.map(|payload| (entry.at, payload))
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Everything that waits, in no order of time but always the same.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.payloads.values_mut()
    }
}

#[cfg(test)]
mod tests;
