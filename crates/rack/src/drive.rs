//! Carries the steps of a protocol over a fabric.

use std::future::Future;
use std::hint;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use manxdb_fabric::{BatchId, Fabric, Misuse, Operation, Outcome, turn};
use manxdb_rsi::{Carrier, Step, Work};

/// Turns of waiting for one that was just met at work.
const SPINS: u32 = 64;
/// Doublings of the pause of one that meets somebody at work.
const DOUBLINGS_MAX: u32 = 6;

/// A thread's way to the memory of servers: one piece of work at a time.
#[derive(Debug)]
pub struct Driver<F> {
    fabric: F,
    batches: u64,
}

impl<F: Fabric> Driver<F> {
    /// Over a fabric that this thread has for itself.
    pub fn new(fabric: F) -> Self {
        Self { fabric, batches: 0 }
    }

    /// Carries a piece of work out.
    ///
    /// # Errors
    /// [`Misuse`]: it asks for what makes no sense, such as memory that no server has. What it was
    /// about is then as if its client had died there.
    pub fn run<W: Work>(&mut self, mut work: W) -> Result<W::Output, Misuse> {
        let mut outcomes = Vec::new();
        loop {
            let operations = match work.step(outcomes) {
                Step::Done(output) => return Ok(output),
                Step::Ask(operations) => operations,
                Step::Again(operations, times) => {
                    pause(times);
                    operations
                }
            };
            outcomes = self.ask(operations)?;
        }
    }

    /// Does operations, and waits for all of them.
    ///
    /// # Errors
    /// [`Misuse`].
    pub fn ask(&mut self, operations: Vec<Operation>) -> Result<Vec<Outcome>, Misuse> {
        self.batches += 1;
        let batch = BatchId(self.batches);
        self.fabric.post(batch, operations)?;
        let mut turns = 0;
        loop {
            if let Some(completion) = self.fabric.poll()
                && completion.batch == batch
            {
                return Ok(completion.outcomes);
            }
            turn(&mut turns);
        }
    }
}

/// Everything is done by the time it is asked whether it is.
impl<F: Fabric> Carrier for Driver<F> {
    type Error = Misuse;

    async fn run<W: Work>(&mut self, work: W) -> Result<W::Output, Misuse> {
        Self::run(self, work)
    }
}

/// Carries a future out whose carrier never waits.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::yield_now(),
        }
    }
}

/// Waits a little, and longer each time.
fn pause(times: u32) {
    for _ in 0..SPINS << times.min(DOUBLINGS_MAX) {
        hint::spin_loop();
    }
    if times > 1 {
        thread::yield_now(); // whoever writes may wait for this processor
    }
}
