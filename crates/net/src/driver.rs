//! Who stands outside of the protocol: asks nodes of this process and sees their answers.

use std::os::fd::BorrowedFd;

use manxdb_core::{Core, Nanos, NodeId, RequestId};

/// Asks the cores of a process.
pub trait Driver<C: Core> {
    /// The process runs.
    fn begin(&mut self, _outside: &mut Outside<C>) {}

    /// A node answers a request.
    fn reply(&mut self, outside: &mut Outside<C>, node: NodeId, id: RequestId, body: C::Reply);

    /// A time that was asked for with [`Outside::wake_after`] has come.
    fn wake(&mut self, _outside: &mut Outside<C>, _key: u64) {}

    /// A descriptor that is readable when sockets of the driver's own are ready: an epoll of its own,
    /// as a rule. Asked once, when the process begins to run.
    fn sockets(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// That descriptor is readable.
    fn ready(&mut self, _outside: &mut Outside<C>) {}

    /// A core notes that a transaction has reached a phase; `core` is as it is after that step.
    fn marked(&mut self, _outside: &mut Outside<C>, _core: &C, _txn: u64, _phase: &'static str) {}

    /// A round is over, and this is what a node of the process is now. Asked for each node before
    /// [`Driver::round_ends`].
    fn look(&mut self, _outside: &mut Outside<C>, _node: NodeId, _core: &C) {}

    /// A round is over: all answers that it had were given.
    fn round_ends(&mut self, _outside: &mut Outside<C>) {}

    /// What it says of itself, by name, for [`crate::status`].
    fn notes(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Whether the process may end.
    fn done(&self) -> bool {
        false
    }
}

/// What a driver can see and do.
#[derive(Debug)]
pub struct Outside<C: Core> {
    pub(crate) now: Nanos,
    pub(crate) next_request: u64,
    pub(crate) asked: Vec<(NodeId, RequestId, C::Request)>,
    pub(crate) wakes: Vec<(Nanos, u64)>,
}

impl<C: Core> Default for Outside<C> {
    fn default() -> Self {
        Self {
            now: Nanos::ZERO,
            next_request: 0,
            asked: Vec::new(),
            wakes: Vec::new(),
        }
    }
}

impl<C: Core> Outside<C> {
    /// Time since the process began to run; never goes back.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Asks a node of this process.
    pub fn request(&mut self, node: NodeId, body: C::Request) -> RequestId {
        self.next_request += 1;
        let id = RequestId(self.next_request);
        self.asked.push((node, id, body));
        id
    }

    /// Has [`Driver::wake`] called when this much time has passed.
    pub fn wake_after(&mut self, after: Nanos, key: u64) {
        self.wakes.push((after, key));
    }
}

/// Nobody asks anything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDriver;

impl<C: Core> Driver<C> for NoDriver {
    fn reply(&mut self, _: &mut Outside<C>, _: NodeId, _: RequestId, _: C::Reply) {}
}
