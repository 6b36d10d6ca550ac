//! Waiters for tests and simulations.

use parking_lot::{Condvar, Mutex};

use crate::error::TxnError;
use crate::waiter::Waiter;

/// Blocks its thread until woken; ends early only when told to.
#[derive(Debug, Default)]
pub struct BlockingWaiter {
    interrupted: Mutex<bool>,
    woken: Condvar,
}

impl BlockingWaiter {
    /// Ends the current and every later wait with [`TxnError::Interrupted`].
    pub fn interrupt(&self) {
        *self.interrupted.lock() = true;
        self.woken.notify_all();
    }
}

impl Waiter for BlockingWaiter {
    fn wait(&self, ready: &dyn Fn() -> bool) -> Result<(), TxnError> {
        let mut interrupted = self.interrupted.lock();
        loop {
            if ready() {
                return Ok(());
            }
            if *interrupted {
                return Err(TxnError::Interrupted);
            }
            self.woken.wait(&mut interrupted);
        }
    }

    fn wake(&self) {
        // Taking the lock orders this wake after a `ready` that was just found false.
        drop(self.interrupted.lock());
        self.woken.notify_all();
    }

    fn check(&self) -> Result<(), TxnError> {
        if *self.interrupted.lock() {
            return Err(TxnError::Interrupted);
        }
        Ok(())
    }
}

/// Never blocks: a wait that is not over answers [`TxnError::WouldWait`], and the caller repeats
/// its call later. Lets one thread drive many transactions.
#[derive(Debug, Default, Clone, Copy)]
pub struct PolledWaiter;

impl Waiter for PolledWaiter {
    fn wait(&self, ready: &dyn Fn() -> bool) -> Result<(), TxnError> {
        if ready() {
            return Ok(());
        }
        Err(TxnError::WouldWait)
    }

    fn wake(&self) {}

    fn check(&self) -> Result<(), TxnError> {
        Ok(())
    }
}
