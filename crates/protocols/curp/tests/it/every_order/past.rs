//! What is kept of a node after each of its histories.

use manxdb_curp::Completion;
use manxdb_curp::ids::View;

use crate::common::Node;

pub const COORDINATOR: usize = 0;
/// The first view's master.
pub const FIRST: usize = 1;
/// Its backup, and the master that replaces it.
pub const SECOND: usize = 2;
/// The second master's backup.
pub const THIRD: usize = 3;
pub const WITNESS: usize = 4;
pub const CLIENTS: [usize; 2] = [5, 6];
pub const NODES: usize = 7;

pub type PastId = u32;
pub type MessageId = u32;

/// What happens to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Happening {
    /// A message of a channel that keeps order; with it, `taken` of them have been taken.
    Letter {
        from: u8,
        message: MessageId,
        taken: u8,
    },
    /// A datagram, or a message that a node sends again and again, such as a heartbeat.
    Datagram { from: u8, message: MessageId },
    /// One of its timers.
    Timer(u32),
    /// A client is asked for its next operation: the number of a command.
    Asked(u32),
    /// It is gone, and starts with nothing.
    Restarted,
}

/// A node after some history.
#[derive(Default)]
pub struct Past {
    pub node: usize,
    pub parent: PastId,
    pub happening: Option<Happening>,
    /// What it sent to each node: messages in order, and different datagrams.
    pub letters: [Vec<MessageId>; NODES],
    pub datagrams: [Vec<MessageId>; NODES],
    /// How many messages of each node it took.
    pub taken: [u8; NODES],
    /// The datagrams that it got.
    pub got: Vec<MessageId>,
    /// What happened once more: datagrams that came again, operations that a client asked for again.
    pub repeats: u8,
    pub timers: Vec<u32>,
    /// A client's operations: how many were asked, and what was answered.
    pub asked: u8,
    pub answers: Vec<(u32, Completion)>,
    /// The view that a client knows, or a server serves.
    pub view: View,
    /// What a serving master has executed: the number of an answer with all values.
    pub served: Option<u32>,
    pub replayed: u64,
    pub wrong: Option<String>,
    /// Its core, unless that has gone on.
    pub core: Option<Node>,
}

impl Past {
    pub fn was_just_asked(&self) -> bool {
        matches!(self.happening, Some(Happening::Asked(_)))
    }
}
