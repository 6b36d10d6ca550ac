//! Carries the steps of a protocol over a fabric.

use std::future::Future;
use std::hint;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_core::{LocalTime, Nanos};
use manxdb_fabric::{BatchId, Fabric, Fault, Misuse, Operation, Outcome, turn};
use manxdb_rsi::{Carrier, Lease, Step, Work};

/// Turns of waiting for one that was just met at work.
const SPINS: u32 = 64;
/// Doublings of the pause of one that meets somebody at work.
const DOUBLINGS_MAX: u32 = 6;

/// A thread's way to the memory of servers: one piece of work at a time.
#[derive(Debug)]
pub struct Driver<F> {
    fabric: F,
    batches: u64,
    place: Option<Kept>,
    fault: Option<Fault>,
}

/// The place of the thread whose operations are carried, which is to be kept.
#[derive(Debug)]
struct Kept {
    lease: Lease,
    every: Duration,
    began: Instant,
    /// Its last beat.
    last: Option<Instant>,
}

impl Kept {
    /// The beats that are due.
    fn beat(&mut self) -> Option<Vec<Operation>> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last < self.every) {
            return None;
        }
        self.last = Some(now);
        let span = u64::try_from((now - self.began).as_nanos()).unwrap_or(u64::MAX);
        Some(self.lease.beat(LocalTime(span)))
    }
}

impl<F: Fabric> Driver<F> {
    /// Over a fabric that this thread has for itself.
    pub fn new(fabric: F) -> Self {
        Self {
            fabric,
            batches: 0,
            place: None,
            fault: None,
        }
    }

    /// The same for the owner of a place, whose lease lapses after so long: it is kept with whatever
    /// is asked for, and whenever [`Driver::keep`] is called.
    pub fn keeping(fabric: F, place: Lease, lease: Nanos) -> Self {
        let place = Kept {
            lease: place,
            every: Duration::from_nanos(Lease::every(lease).0),
            began: Instant::now(),
            last: None,
        };
        Self {
            place: Some(place),
            ..Self::new(fabric)
        }
    }

    /// Keeps its place, if it is time to.
    ///
    /// # Errors
    /// [`Misuse`], of a table that lies nowhere.
    pub fn keep(&mut self) -> Result<(), Misuse> {
        match self.place.as_mut().and_then(Kept::beat) {
            Some(beats) => self.ask(beats).map(drop),
            None => Ok(()),
        }
    }

    /// The fabric itself.
    pub fn into_fabric(self) -> F {
        self.fabric
    }

    /// What went wrong first with a server, if anything has.
    #[must_use]
    pub fn fault(&self) -> Option<Fault> {
        self.fault
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
    pub fn ask(&mut self, mut operations: Vec<Operation>) -> Result<Vec<Outcome>, Misuse> {
        let count = operations.len();
        let beats = self.place.as_mut().and_then(Kept::beat);
        operations.extend(beats.unwrap_or_default());
        self.batches += 1;
        let batch = BatchId(self.batches);
        self.fabric.post(batch, operations)?;
        let mut turns = 0;
        let mut outcomes = loop {
            if let Some(completion) = self.fabric.poll()
                && completion.batch == batch
            {
                break completion.outcomes;
            }
            turn(&mut turns);
        };
        let fault = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Failed(fault) => Some(*fault),
            _ => None,
        });
        self.fault = self.fault.or(fault);
        outcomes.truncate(count);
        Ok(outcomes)
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
