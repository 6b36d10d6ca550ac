//! What waits in the queue.

use manxdb_core::{Core, Message, NodeId, RequestId};

use crate::time::SimTime;

/// A message that a partition holds back.
#[derive(Debug)]
pub(crate) struct Held<M> {
    pub departs: SimTime,
    pub sent_in: u64,
    pub body: M,
}

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum Pending<C: Core> {
    /// A message arrives.
    Message {
        to: NodeId,
        from: NodeId,
        /// When the sender was done with it: a crash before that takes it back.
        departs: SimTime,
        /// The number of the step that sent it.
        sent_in: u64,
        body: C::Message,
    },
    /// A timer is over.
    Timer { node: NodeId, timer: C::Timer },
    /// A request arrives.
    Request {
        node: NodeId,
        id: RequestId,
        body: C::Request,
    },
    /// A reply reaches the workload.
    Reply {
        node: NodeId,
        id: RequestId,
        departs: SimTime,
        body: C::Reply,
    },
    /// A sync ends.
    Synced { node: NodeId },
    /// A node starts.
    Start { node: NodeId },
    /// A node that stood still goes on with what has arrived meanwhile.
    Resume { node: NodeId },
    /// The workload asked for this time.
    Wake { key: u64 },
    /// A fault begins.
    FaultBegins { index: usize },
    /// A fault is over.
    FaultEnds { index: usize },
    /// It was, but a crash took it back.
    Nothing,
}

impl<C: Core> Pending<C> {
    /// Whether a crash of `node` at `now` takes it back.
    pub fn dies_with(&self, node: NodeId, now: SimTime, fifo: bool) -> bool {
        match self {
            Self::Message {
                to,
                from,
                departs,
                body,
                ..
            } => {
                let fifo = fifo && !body.is_datagram();
                let own = *to == node && *from == node;
                let unsent = *from == node && *departs > now;
                own || unsent || (fifo && (*to == node || *from == node))
            }
            Self::Reply {
                node: of, departs, ..
            } => *of == node && *departs > now,
            Self::Timer { node: of, .. }
            | Self::Synced { node: of }
            | Self::Start { node: of }
            | Self::Resume { node: of } => *of == node,
            Self::Request { .. }
            | Self::Wake { .. }
            | Self::FaultBegins { .. }
            | Self::FaultEnds { .. }
            | Self::Nothing => false,
        }
    }
}
