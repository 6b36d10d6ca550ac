//! Carries the steps of a protocol over a fabric.

use std::collections::BTreeMap;
use std::future::Future;
use std::hint;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_core::{LocalTime, Nanos};
use manxdb_fabric::{
    BatchId, Fabric, Fault, Misuse, Operation, OperationOutcome, ServerId, Waiting,
};
use manxdb_rsi::{Carrier, Lease, Machine, Map, Once, ReplicatedOp, Step};

use crate::availability::Availability;
use crate::silence::Silence;

/// Turns of waiting for one that was just met at work.
const SPINS: u32 = 64;
/// Doublings of the pause of one that meets somebody at work.
const DOUBLINGS_MAX: u32 = 6;
/// Who has been in the way so often is not just at work: it is waited for without work.
const PATIENCE: u32 = 256;
const REST: Duration = Duration::from_millis(1);
/// A server that answers nothing for so long is given up by one who does not know the lease yet.
const SILENCE: Duration = Duration::from_secs(5);
/// Turns of waiting between two looks at who is silent.
const LOOK: u32 = 64;
const _: () = assert!(
    SPINS.checked_shl(DOUBLINGS_MAX).is_some() && PATIENCE > DOUBLINGS_MAX,
    "a pause grows before it becomes a rest"
);

/// A thread's way to the memory of servers: one piece of work at a time.
#[derive(Debug)]
pub struct Driver<F> {
    fabric: F,
    batches: u64,
    place: Option<DurablePositions>,
    fault: Option<Fault>,
    /// Of the epoch in which it acts; none: no memory is replicated.
    map: Option<Arc<Map>>,
    /// Servers that it does not reach, and what becomes of what is asked of them.
    missing: BTreeMap<ServerId, Fault>,
    /// A server that answers nothing for so long is given up.
    silence: Duration,
    waiting: Waiting,
    /// Whether anything is to be asked of servers.
    availability: Option<Arc<Availability>>,
}

/// The place of the thread whose operations are carried, which is to be kept.
#[derive(Debug)]
struct DurablePositions {
    lease: Lease,
    every: Duration,
    began: Instant,
    /// Its last beat.
    last: Option<Instant>,
}

impl DurablePositions {
    fn is_due(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= self.every)
    }

    /// The beat that is due.
    fn beat(&mut self) -> Option<Vec<Operation>> {
        if !self.is_due() {
            return None;
        }
        let now = Instant::now();
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
            map: None,
            missing: BTreeMap::new(),
            silence: SILENCE,
            waiting: Waiting::default(),
            availability: None,
        }
    }

    /// The same where some servers are not reached.
    #[must_use]
    pub fn without(mut self, missing: BTreeMap<ServerId, Fault>) -> Self {
        assert!(
            self.missing.is_empty(),
            "a server that was given up stays so: {:?}",
            self.missing
        );
        self.missing = missing;
        self
    }

    /// The same where clients that stand still for half a lease are met with harm: so are servers. Who
    /// waits longer for one would not keep its own place meanwhile.
    #[must_use]
    pub fn of_lease(mut self, lease: Nanos) -> Self {
        assert!(
            self.place.is_none(),
            "how long a server may be silent is known before a place is kept meanwhile"
        );
        self.silence = Duration::from_nanos(lease.0 / 2);
        self
    }

    /// The same over a map of the epoch in which it acts: pieces of work are about regions.
    #[must_use]
    pub fn over(mut self, map: Arc<Map>) -> Self {
        assert!(
            self.place.is_none(),
            "an owner keeps its place by the map over which it acts, in one epoch"
        );
        self.map = Some(map);
        self
    }

    /// The same where nothing is asked of servers while too many of them are lost: whatever is comes to a
    /// fault at once. So nothing is waited for that nobody will do.
    #[must_use]
    pub(crate) fn heeding(mut self, availability: Arc<Availability>) -> Self {
        assert!(
            self.availability.is_none(),
            "a way to a memory heeds what its process knows of that memory"
        );
        self.availability = Some(availability);
        self
    }

    /// Whatever is asked of a server from now on comes to a fault.
    pub fn give_up(&mut self, server: ServerId) {
        self.missing.insert(server, Fault::Gone(server));
    }

    /// The map over which it acts.
    #[must_use]
    pub fn map(&self) -> Option<&Arc<Map>> {
        self.map.as_ref()
    }

    /// The same for the owner of a place, whose lease lapses after so long: it is kept with whatever
    /// is asked for, and whenever [`Driver::keep`] is called.
    #[must_use]
    pub fn keeping(mut self, place: Lease, lease: Nanos) -> Self {
        assert!(
            self.place.is_none(),
            "a way keeps one place: another one would lapse unseen"
        );
        let every = Duration::from_nanos(Lease::every(lease).0);
        assert!(
            every < self.silence,
            "a place is kept while a server is waited for that says nothing"
        );
        self.place = Some(DurablePositions {
            lease: place,
            every,
            began: Instant::now(),
            last: None,
        });
        self
    }

    /// Keeps its place, if it is time to.
    ///
    /// # Errors
    /// [`Misuse`], of a table that lies nowhere.
    pub fn keep(&mut self) -> Result<(), Misuse> {
        if self.place.as_ref().is_some_and(DurablePositions::is_due) {
            self.ask(Vec::new())?; // with a beat
        }
        Ok(())
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
    pub fn run<W: Machine>(&mut self, work: W) -> Result<W::Output, Misuse> {
        match &self.map {
            None => self.carry(work),
            Some(map) => self.carry(ReplicatedOp::new(Arc::clone(map), work)),
        }
    }

    fn carry<W: Machine>(&mut self, mut work: W) -> Result<W::Output, Misuse> {
        let mut outcomes = Vec::new();
        loop {
            let operations = match work.step(outcomes) {
                Step::Done(output) => return Ok(output),
                Step::Post(operations) => operations,
                Step::Backoff(operations, times) => {
                    pause(times);
                    operations
                }
            };
            outcomes = self.ask(operations)?;
        }
    }

    /// Carries a piece of work out that may wait for others for long; none: it was given up where it
    /// waited, because it may not any more.
    ///
    /// # Errors
    /// [`Misuse`].
    pub fn run_while<W: Machine>(
        &mut self,
        work: W,
        may_wait: impl Fn() -> bool,
    ) -> Result<Option<W::Output>, Misuse> {
        match &self.map {
            None => self.carry_while(work, may_wait),
            Some(map) => self.carry_while(ReplicatedOp::new(Arc::clone(map), work), may_wait),
        }
    }

    fn carry_while<W: Machine>(
        &mut self,
        mut work: W,
        may_wait: impl Fn() -> bool,
    ) -> Result<Option<W::Output>, Misuse> {
        let mut outcomes = Vec::new();
        loop {
            let operations = match work.step(outcomes) {
                Step::Done(output) => return Ok(Some(output)),
                Step::Post(operations) => operations,
                Step::Backoff(..) if !may_wait() => return Ok(None),
                Step::Backoff(operations, _) => {
                    thread::sleep(REST);
                    operations
                }
            };
            outcomes = self.ask(operations)?;
        }
    }

    /// Does operations on regions, all at once.
    ///
    /// # Errors
    /// [`Misuse`].
    pub fn ask_regions(
        &mut self,
        operations: Vec<Operation>,
    ) -> Result<Vec<OperationOutcome>, Misuse> {
        self.run(Once::new(operations))
    }

    /// Does operations on servers, and waits for all of them.
    ///
    /// # Errors
    /// [`Misuse`].
    pub fn ask(&mut self, mut operations: Vec<Operation>) -> Result<Vec<OperationOutcome>, Misuse> {
        let count = operations.len();
        if self
            .availability
            .as_ref()
            .is_some_and(|one| one.is_refused())
        {
            return Ok(self.refuse(&operations));
        }
        if let Some(beat) = self.place.as_mut().and_then(DurablePositions::beat) {
            operations.extend(beat);
        }
        let missing = self.missing(&operations);
        let asked = operations.len();
        let mut outcomes = if missing.is_empty() {
            self.post(operations)?
        } else {
            operations.retain(|operation| !self.missing.contains_key(&operation.server()));
            self.post(operations)?
        };
        for (place, fault) in missing {
            assert!(
                place <= outcomes.len(),
                "outcomes are in the order of operations"
            );
            outcomes.insert(place, OperationOutcome::Failed(fault));
        }
        assert_eq!(
            outcomes.len(),
            asked,
            "every operation has an outcome, also those for servers that are not reached"
        );
        let fault = outcomes.iter().find_map(|outcome| match outcome {
            OperationOutcome::Failed(fault) => Some(*fault),
            _ => None,
        });
        self.fault = self.fault.or(fault);
        outcomes.truncate(count);
        Ok(outcomes)
    }

    /// Nothing of this is done.
    fn refuse(&mut self, operations: &[Operation]) -> Vec<OperationOutcome> {
        let gone =
            |operation: &Operation| OperationOutcome::Failed(Fault::Gone(operation.server()));
        let outcomes: Vec<_> = operations.iter().map(gone).collect();
        // Who only keeps its place hears of it, too.
        self.fault.get_or_insert(Fault::Gone(ServerId(0)));
        assert_eq!(
            outcomes.len(),
            operations.len(),
            "every operation has an outcome, also where none is carried out"
        );
        outcomes
    }

    /// Which of these are for servers that it does not reach, in order.
    fn missing(&self, operations: &[Operation]) -> Vec<(usize, Fault)> {
        if self.missing.is_empty() {
            return Vec::new();
        }
        let operations = operations.iter().enumerate();
        let missing = operations.filter_map(|(place, operation)| {
            let fault = self.missing.get(&operation.server())?;
            Some((place, *fault))
        });
        missing.collect()
    }

    fn post(&mut self, operations: Vec<Operation>) -> Result<Vec<OperationOutcome>, Misuse> {
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        assert!(
            operations
                .iter()
                .all(|one| !self.missing.contains_key(&one.server())),
            "nothing is asked of a server that is not reached"
        );
        self.batches += 1;
        let batch = BatchId(self.batches);
        let posted = operations.len();
        self.fabric.post(batch, operations)?;
        let mut waited = 0_u32;
        let mut silence = Silence::of(self.silence);
        loop {
            if let Some(completion) = self.fabric.poll() {
                // It asks for one batch at a time, and waits for it to its end.
                assert_eq!(
                    completion.batch, batch,
                    "what completes is what was asked for last"
                );
                // All machines pair outcomes with operations by their places.
                assert_eq!(
                    completion.outcomes.len(),
                    posted,
                    "a batch completes with one outcome for each operation"
                );
                return Ok(completion.outcomes);
            }
            waited = waited.wrapping_add(1);
            if waited < SPINS {
                hint::spin_loop();
            } else {
                self.waiting.give_way();
            }
            if waited.is_multiple_of(LOOK) {
                for server in silence.look(&self.fabric.awaited(), Instant::now()) {
                    self.fabric.give_up(server);
                }
            }
        }
    }
}

/// Everything is done by the time it is asked whether it is.
impl<F: Fabric> Carrier for Driver<F> {
    type Error = Misuse;

    async fn run<W: Machine>(&mut self, work: W) -> Result<W::Output, Misuse> {
        Self::run(self, work)
    }
}

/// Carries a future out whose carrier never waits.
pub fn now<T>(future: impl Future<Output = T>) -> T {
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
    if times > PATIENCE {
        return thread::sleep(REST);
    }
    for _ in 0..SPINS << times.min(DOUBLINGS_MAX) {
        hint::spin_loop();
    }
    if times > 1 {
        thread::yield_now(); // whoever writes may wait for this processor
    }
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::Address;
    use manxdb_fabric::shm::SharedMemory;

    use super::*;
    use crate::availability::LossDetector;

    #[test]
    fn who_heeds_that_too_many_servers_are_lost_asks_nothing_and_comes_to_a_fault() {
        let availability = Arc::<Availability>::default();
        let fabric = SharedMemory::default(); // of no server: whatever is asked of it is a misuse
        let mut driver = Driver::new(fabric).heeding(Arc::clone(&availability));
        let at = Address {
            server: ServerId(3),
            offset: 0,
        };
        let read = vec![Operation::Read { at, bytes: 8 }];
        assert!(driver.ask(read.clone()).is_err());
        assert_eq!(driver.fault(), None);
        let lost = LossDetector::new(4, Duration::ZERO).look(&[0, 1], 0..4, Instant::now());
        assert!(lost.is_some());
        availability.set(lost);
        let gone = OperationOutcome::Failed(Fault::Gone(ServerId(3)));
        assert_eq!(driver.ask(read.clone()), Ok(vec![gone]));
        assert!(driver.fault().is_some());
        availability.set(None);
        assert!(driver.ask(read).is_err());
    }
}
