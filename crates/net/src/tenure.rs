//! For how long a process may act: until a lease ends that a service elsewhere grants.
//!
//! One of several processes may act for a node: the one that leads. The loop looks at its tenure before
//! each step of a core, so that a process which stood still past the end steps nothing any more, whatever
//! waits at its sockets. A step that began before the end may send after it: its messages are then as
//! late as a slow network makes them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The end of a tenure, which renewals put off. Clones share it.
#[derive(Debug, Clone)]
pub struct Tenure {
    /// `None`: it is over for good.
    end: Arc<Mutex<Option<Instant>>>,
}

impl Tenure {
    /// A tenure that is over at `end`.
    #[must_use]
    pub fn until(end: Instant) -> Self {
        Self {
            end: Arc::new(Mutex::new(Some(end))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        // Whole at all times: it is read and replaced in one step.
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It lasts until `end` at least, unless it is over for good.
    pub fn extend(&self, end: Instant) {
        let mut present = self.lock();
        *present = present.map(|present| present.max(end));
    }

    /// It is over for good: no renewal brings it back.
    pub fn end(&self) {
        *self.lock() = None;
    }

    /// Whether it is over. From then on it is over for good: a loop that has stopped does not go on
    /// because a renewal was late.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let mut present = self.lock();
        *present = present.filter(|end| Instant::now() < *end);
        present.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn renewals_put_the_end_off_and_never_bring_back_what_is_over() {
        let now = Instant::now();
        let far = now + Duration::from_secs(600);
        let tenure = Tenure::until(far);
        let shared = tenure.clone();
        shared.extend(now);
        assert!(!tenure.is_over(), "an earlier end counts for nothing");
        shared.end();
        tenure.extend(far);
        assert!(tenure.is_over() && shared.is_over());
        let missed = Tenure::until(now);
        assert!(missed.is_over());
        missed.extend(far);
        assert!(missed.is_over(), "whoever saw its end goes by it");
    }
}
