//! Who asks the nodes, and what they can see and do of the world.

use manxdb_core::{Core, Nanos, NodeId, Random, RequestId};

use crate::explain::{Step, Steps};
use crate::node::Node;
use crate::pending::Pending;
use crate::queue::Queue;
use crate::streams::{self, Purpose};
use crate::system::{ReplyOf, RequestOf, System};
use crate::time::SimTime;

/// The workload: stands outside of the protocol, asks nodes and sees their answers.
pub trait Driver<S: System> {
    /// The run begins.
    fn begin(&mut self, _outside: &mut Outside<'_, S>) {}

    /// A node answers a request.
    fn reply(
        &mut self,
        outside: &mut Outside<'_, S>,
        node: NodeId,
        id: RequestId,
        body: ReplyOf<S>,
    );

    /// A time that was asked for with [`Outside::wake_at`] has come.
    fn wake(&mut self, _outside: &mut Outside<'_, S>, _key: u64) {}

    /// A node crashed. Requests it did not answer will never be answered.
    fn crashed(&mut self, _outside: &mut Outside<'_, S>, _node: NodeId) {}

    /// A node started again.
    fn restarted(&mut self, _outside: &mut Outside<'_, S>, _node: NodeId) {}

    /// Whether the run may end before its time.
    fn done(&self) -> bool {
        false
    }
}

/// Nobody asks anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDriver;

impl<S: System> Driver<S> for NoDriver {
    fn reply(&mut self, _: &mut Outside<'_, S>, _: NodeId, _: RequestId, _: ReplyOf<S>) {}
}

/// What the loop and the workload share.
pub(crate) struct Shared<C: Core> {
    pub now: SimTime,
    pub queue: Queue<Pending<C>>,
    pub steps: Steps,
    pub client_delay: Nanos,
    requests: u64,
    random: Random,
}

impl<C: Core> Shared<C> {
    pub fn new(seed: u64, client_delay: Nanos, steps: Steps) -> Self {
        Self {
            now: SimTime::ZERO,
            queue: Queue::default(),
            steps,
            client_delay,
            requests: 0,
            random: streams::of_run(seed, Purpose::Workload),
        }
    }
}

/// The world as the workload has it.
pub struct Outside<'a, S: System> {
    pub(crate) nodes: &'a [Node<S::Core>],
    pub(crate) shared: &'a mut Shared<S::Core>,
}

impl<S: System> Outside<'_, S> {
    /// Virtual time.
    pub fn now(&self) -> SimTime {
        self.shared.now
    }

    /// Asks a node, now. A node that is down when the request arrives never answers.
    pub fn request(&mut self, node: NodeId, body: RequestOf<S>) -> RequestId {
        self.request_at(self.shared.now, node, body)
    }

    /// Asks a node at a later time.
    pub fn request_at(&mut self, at: SimTime, node: NodeId, body: RequestOf<S>) -> RequestId {
        let id = RequestId(self.shared.requests);
        self.shared.requests += 1;
        let arrives = at.max(self.shared.now) + self.shared.client_delay;
        let pending = Pending::Request { node, id, body };
        self.shared.queue.push(arrives, pending);
        id
    }

    /// Asks to be woken, with a word of its own.
    pub fn wake_at(&mut self, at: SimTime, key: u64) {
        let at = at.max(self.shared.now);
        self.shared.queue.push(at, Pending::Wake { key });
    }

    /// Random numbers for the workload alone.
    pub fn random(&mut self) -> &mut Random {
        &mut self.shared.random
    }

    /// The steps about a transaction so far, given up: later ones are not kept.
    pub fn take_steps(&mut self, txn: u64) -> Vec<Step> {
        self.shared.steps.take(txn)
    }

    /// Whether a node is up.
    pub fn is_up(&self, node: NodeId) -> bool {
        self.core(node).is_some()
    }

    /// A node's core, unless it is down. For checkers: a client could not see it.
    pub fn core(&self, node: NodeId) -> Option<&S::Core> {
        self.nodes.get(node.0 as usize)?.core.as_ref()
    }
}
