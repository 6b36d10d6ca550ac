//! What a program does to the rack: it asks servers, has names, keeps its place and leaves it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use manxdb_core::{Nanos, Random};
use manxdb_fabric::{Operation, OperationOutcome};
use manxdb_rsi::mutants::Mutant;
use manxdb_rsi::{Lease, Machine, Map, Once, Owner, ReplicatedOp, Session, Step};
use manxdb_sim::SimTime;

use super::plan::Plan;

/// Between a program and the rack.
#[derive(Default)]
pub struct Mailbox {
    pub asked: Option<Request>,
    pub answered: Option<Vec<OperationOutcome>>,
    pub now: SimTime,
}

/// What a program wants.
pub enum Request {
    Ask(Vec<Operation>, u32),
    Sleep(Nanos),
    /// It looks around under a name that nobody knows.
    BeAGuest(u64),
    /// It is an owner from now on, and keeps its lease.
    Own(Owner, Arc<Map>),
    /// It leaves its place.
    Leave(Vec<Operation>),
}

/// A program's handle on the rack.
pub struct ClientHandle {
    pub random: Random,
    pub plan: Plan,
    pub mutant: Option<Mutant>,
    pub mailbox: Rc<RefCell<Mailbox>>,
}

impl ClientHandle {
    async fn request(&self, request: Request) -> Vec<OperationOutcome> {
        self.mailbox.borrow_mut().asked = Some(request);
        poll_fn(|_| match self.mailbox.borrow_mut().answered.take() {
            Some(outcomes) => Poll::Ready(outcomes),
            None => Poll::Pending,
        })
        .await
    }

    /// Carries out what is asked of servers.
    pub async fn run<W: Machine>(&self, mut work: W) -> W::Output {
        let mut step = work.step(Vec::new());
        loop {
            let request = match step {
                Step::Done(output) => return output,
                Step::Post(operations) => Request::Ask(operations, 0),
                Step::Backoff(operations, times) => Request::Ask(operations, times),
            };
            step = work.step(self.request(request).await);
        }
    }

    /// Carries out what is asked of regions.
    pub async fn run_by<W: Machine>(&self, map: &Arc<Map>, work: W) -> W::Output {
        let spread = ReplicatedOp::new(Arc::clone(map), work);
        self.run(spread.with(self.mutant)).await
    }

    /// The same; none: it is given up when it asks for the same once more so many times running.
    pub async fn try_by<W: Machine>(
        &self,
        map: &Arc<Map>,
        work: W,
        tries: u32,
    ) -> Option<W::Output> {
        let mut spread = ReplicatedOp::new(Arc::clone(map), work).with(self.mutant);
        let mut step = spread.step(Vec::new());
        loop {
            let request = match step {
                Step::Done(output) => return Some(output),
                Step::Post(operations) => Request::Ask(operations, 0),
                Step::Backoff(_, times) if times > tries => return None,
                Step::Backoff(operations, times) => Request::Ask(operations, times),
            };
            step = spread.step(self.request(request).await);
        }
    }

    /// The session of an owner.
    pub fn session(&self, owner: Owner, map: &Map) -> Session {
        let mut session = self.plan.session(owner, map);
        session.mutant = self.mutant;
        session
    }

    pub async fn sleep(&self, span: Nanos) {
        self.request(Request::Sleep(span)).await;
    }

    pub async fn be_a_guest(&mut self) {
        let number = self.random.next_bits() >> 16;
        self.request(Request::BeAGuest(number)).await;
    }

    pub async fn own(&self, owner: Owner, map: &Arc<Map>) {
        self.request(Request::Own(owner, Arc::clone(map))).await;
    }

    /// Leaves the place, if the servers that have the table are all there.
    pub async fn leave(&self, owner: Owner, map: &Arc<Map>) {
        let leave = Once::new(vec![Lease::leave(self.plan.client_slots, owner)]);
        let mut work = ReplicatedOp::new(Arc::clone(map), leave);
        let mut step = work.step(Vec::new());
        while let Step::Post(operations) | Step::Backoff(operations, _) = step {
            step = work.step(self.request(Request::Leave(operations)).await);
        }
    }

    pub fn now(&self) -> SimTime {
        self.mailbox.borrow().now
    }
}
