//! Waiting, brought along by the session.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use crate::error::TxnError;
use crate::model::Reply;

/// How a session waits, so that no crate below the frontends owns a clock or a thread.
pub trait Waiter: Send + Sync {
    /// Blocks until `ready` answers true or the wait must end. `ready` turns true on another
    /// thread, which then calls [`Waiter::wake`]; it may be called any number of times.
    ///
    /// # Errors
    /// [`TxnError::LockTimeout`], [`TxnError::Interrupted`] or [`TxnError::StatementTimeout`].
    fn wait(&self, ready: &dyn Fn() -> bool) -> Result<(), TxnError>;

    /// Called from another thread when `ready` may have become true: ends the blocking, now or
    /// the next one (a wake before the wait must not be lost). Must return at once.
    fn wake(&self);

    /// Cheap check between rows: was the session killed, did the statement's time run out?
    ///
    /// # Errors
    /// [`TxnError::Interrupted`] or [`TxnError::StatementTimeout`].
    fn check(&self) -> Result<(), TxnError>;
}

/// Wakes a session when the future it waits for can go on.
struct FutureWake {
    ready: AtomicBool,
    waiter: Arc<dyn Waiter>,
}

impl Wake for FutureWake {
    fn wake(self: Arc<Self>) {
        self.ready.store(true, Ordering::Release);
        self.waiter.wake();
    }
}

/// The answer of a path: at once when it is ready, else by waiting as the session waits.
///
/// # Errors
/// The path's own, and those of [`Waiter::wait`].
pub fn resolve<T>(
    reply: Reply<Result<T, TxnError>>,
    waiter: &Arc<dyn Waiter>,
) -> Result<T, TxnError> {
    match reply {
        Reply::Ready(answer) => answer,
        Reply::Pending(future) => block_on(future, waiter),
    }
}

fn block_on<T>(
    mut future: Pin<Box<dyn Future<Output = Result<T, TxnError>> + Send>>,
    waiter: &Arc<dyn Waiter>,
) -> Result<T, TxnError> {
    let wake = Arc::new(FutureWake {
        ready: AtomicBool::new(false),
        waiter: Arc::clone(waiter),
    });
    let waker = Waker::from(Arc::clone(&wake));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => waiter.wait(&|| wake.ready.swap(false, Ordering::AcqRel))?,
        }
    }
}
