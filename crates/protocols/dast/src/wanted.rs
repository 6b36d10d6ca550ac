//! What a step of a client, a replica or a manager wants done, whatever else is a node.

use manxdb_core::{Nanos, NodeId, RequestId, Wait, Work};

use crate::call::Answer;
use crate::message::DastMessage;
use crate::timestamp::Timestamp;

/// Timers of all kinds of nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DastTimer {
    /// A replica reports its clock.
    Report,
    /// A replica reports once its clock is past this.
    ReportPast(Timestamp),
    /// What should have happened is asked for again.
    Retry,
    /// A manager looks after its group and its nodes.
    Tick,
    /// A manager tells the other regions how far its own is.
    Progress,
    /// A manager tells the other regions how far ahead its order is given.
    Mark,
    /// A client asks another coordinator.
    Again {
        /// The call.
        number: u64,
        /// How often it has asked.
        attempt: u32,
    },
}

/// Takes what a step wants done, in order, as [`manxdb_core::Actions`] does.
pub(crate) trait Wanted {
    /// Sends a message.
    fn send(&mut self, to: NodeId, body: DastMessage);
    /// Sets a timer.
    fn set_timer(&mut self, after: Nanos, timer: DastTimer);
    /// Answers a request of a client's.
    fn reply(&mut self, id: RequestId, answer: Answer);
    /// Notes for traces that a transaction has come so far.
    fn mark(&mut self, txn: u64, phase: &'static str);
    /// Notes for traces what a transaction waits for; none: it goes on.
    fn wait(&mut self, txn: u64, wait: Option<Wait>);
    /// Counts work.
    fn work(&mut self, work: Work);
}

/// What a step of a node wants done.
pub(crate) type Out = dyn Wanted;
