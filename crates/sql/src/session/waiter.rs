//! How a session's statements wait, stop and run out of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};

use manxdb_txn::{TxnError, Waiter};

use super::host::Host;

/// Longest single park: a lost wake costs this much, never a hang.
const PARK_MICROS_MAX: i64 = 200_000;

/// How often a running statement asks whether its client is still there, microseconds.
const CLIENT_LOOK_MICROS: i64 = 100_000;
/// Checks between two looks at the clock, which is what most of a check would cost.
const CHECKS_PER_LOOK: u32 = 4;

/// Lets the frontend and other sessions reach into a running session.
#[derive(Debug, Default)]
pub struct SessionControl {
    /// KILL QUERY: the running statement stops.
    pub kill_query: AtomicBool,
    /// KILL: the frontend must close the connection.
    pub kill_connection: AtomicBool,
}

/// The waiter of one session.
pub(crate) struct SessionWaiter {
    host: Arc<dyn Host>,
    session: u64,
    control: Arc<SessionControl>,
    /// Monotonic microseconds at which the statement's time is over; 0 for never.
    deadline: AtomicI64,
    /// Longest wait for one lock, microseconds.
    lock_wait: AtomicI64,
    /// Microseconds this statement has waited for locks.
    waited: AtomicI64,
    /// Monotonic microseconds of the last question whether the client is still there.
    looked_at: AtomicI64,
    checks: AtomicU32,
}

impl SessionWaiter {
    /// The waiter of session `session`.
    pub(crate) fn new(host: Arc<dyn Host>, session: u64, control: Arc<SessionControl>) -> Self {
        Self {
            host,
            session,
            control,
            deadline: AtomicI64::new(0),
            lock_wait: AtomicI64::new(50_000_000),
            waited: AtomicI64::new(0),
            looked_at: AtomicI64::new(0),
            checks: AtomicU32::new(0),
        }
    }

    /// A statement begins; `timeout` 0 is none.
    pub(crate) fn start_statement(&self, timeout_micros: i64, lock_wait_micros: i64) {
        let deadline = if timeout_micros > 0 {
            self.host.monotonic_micros().saturating_add(timeout_micros)
        } else {
            0
        };
        self.deadline.store(deadline, Ordering::Relaxed);
        self.lock_wait.store(lock_wait_micros, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
        self.control.kill_query.store(false, Ordering::Relaxed);
    }

    /// Whether KILL has ended the statement or its connection.
    pub(crate) fn is_killed(&self) -> bool {
        self.control.kill_query.load(Ordering::Relaxed)
            || self.control.kill_connection.load(Ordering::Relaxed)
    }

    /// Microseconds the statement has waited for locks.
    pub(crate) fn waited_micros(&self) -> i64 {
        self.waited.load(Ordering::Relaxed)
    }

    /// Blocks for `micros` (`None`: until `ready`), true when `ready` came first.
    ///
    /// # Errors
    /// Killed, or the statement's time ran out.
    pub(crate) fn pause(
        &self,
        micros: Option<i64>,
        ready: &dyn Fn() -> bool,
    ) -> Result<bool, TxnError> {
        let end = micros.map(|m| self.host.monotonic_micros().saturating_add(m));
        loop {
            if ready() {
                return Ok(true);
            }
            self.check()?;
            let now = self.host.monotonic_micros();
            self.look_at_client(now)?;
            let left = end.map_or(PARK_MICROS_MAX, |end| end - now);
            if left <= 0 {
                return Ok(false);
            }
            self.park(left, now);
        }
    }

    /// Ends the statement and the connection when its client has gone. Now and then: asking costs
    /// a system call.
    fn look_at_client(&self, now: i64) -> Result<(), TxnError> {
        if now - self.looked_at.load(Ordering::Relaxed) < CLIENT_LOOK_MICROS {
            return Ok(());
        }
        self.looked_at.store(now, Ordering::Relaxed);
        if !self.host.client_is_gone(self.session) {
            return Ok(());
        }
        self.control.kill_connection.store(true, Ordering::SeqCst);
        Err(TxnError::Interrupted)
    }

    fn park(&self, left: i64, now: i64) {
        let deadline = self.deadline.load(Ordering::Relaxed);
        let until_deadline = if deadline > 0 {
            deadline - now
        } else {
            i64::MAX
        };
        let micros = left.min(until_deadline).clamp(1, PARK_MICROS_MAX);
        self.host.park(self.session, micros.unsigned_abs());
    }
}

impl Waiter for SessionWaiter {
    fn wait(&self, ready: &dyn Fn() -> bool) -> Result<(), TxnError> {
        let begin = self.host.monotonic_micros();
        let limit = self.lock_wait.load(Ordering::Relaxed);
        let outcome = self.pause(Some(limit), ready);
        let spent = self.host.monotonic_micros().saturating_sub(begin);
        self.waited.fetch_add(spent, Ordering::Relaxed);
        if outcome? {
            Ok(())
        } else {
            Err(TxnError::LockTimeout)
        }
    }

    fn wake(&self) {
        self.host.wake(self.session);
    }

    fn check(&self) -> Result<(), TxnError> {
        if self.is_killed() {
            return Err(TxnError::Interrupted);
        }
        let deadline = self.deadline.load(Ordering::Relaxed);
        if deadline > 0 && self.host.monotonic_micros() >= deadline {
            return Err(TxnError::StatementTimeout);
        }
        // Only the session's own thread counts, so that no atomic addition is needed.
        let checks = self.checks.load(Ordering::Relaxed).wrapping_add(1);
        self.checks.store(checks, Ordering::Relaxed);
        if checks.is_multiple_of(CHECKS_PER_LOOK) {
            self.look_at_client(self.host.monotonic_micros())?;
        }
        Ok(())
    }
}
