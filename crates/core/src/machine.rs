//! What a core is, and how a driver talks to it.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use crate::time::{LocalTime, Nanos};
use crate::work::{Weight, Work};

/// A node of a cluster: a replica, a manager or a client, as the protocol's topology numbers them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct NodeId(pub u32);

/// A request to a core from outside the protocol, answered by at most one reply. Chosen by the
/// driver, unique while the node lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names a record on its way to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// What nodes of a protocol send each other.
pub trait Message: Clone + Debug {
    /// What it costs to send and to receive.
    fn weight(&self) -> Weight;

    /// One word for traces.
    fn label(&self) -> &'static str;

    /// The transaction it is about, for traces, if it is about one.
    fn txn(&self) -> Option<u64> {
        None
    }

    /// Whether it travels as a datagram of its own: lost, repeated and reordered at will, beside
    /// whatever carries the protocol's other messages.
    fn is_datagram(&self) -> bool {
        false
    }

    /// Its bytes, in a format of the protocol's own that a data plane can read too. Nothing when it is
    /// no datagram, or does not fit into one packet.
    #[must_use]
    fn encode_datagram(&self) -> Option<Vec<u8>> {
        None
    }

    /// Reads a datagram that came over the network; nothing when `bytes`, which may be anything, are
    /// none of this protocol's.
    #[must_use]
    fn decode_datagram(_bytes: &[u8]) -> Option<Self> {
        None
    }

    /// What a receiver makes of its datagram with one bit flipped on the way: nothing, when the
    /// datagram's checks find that out. `bit` is any number.
    #[must_use]
    fn with_bit_flipped(&self, _bit: u64) -> Option<Self> {
        None
    }
}

/// Something that happened to a node.
#[derive(Debug, Clone)]
pub enum Event<M, T, Q> {
    /// The node starts, or starts again after a crash. Comes first and once.
    Start,
    /// A message of another node, or of its own, arrived.
    Message {
        /// Who sent it.
        from: NodeId,
        /// What it says.
        body: M,
    },
    /// A timer set earlier is over. Timers cannot be taken back: one that no longer matters is
    /// told by what it carries.
    Timer(T),
    /// Somebody outside the protocol asks this node.
    Request {
        /// To be named in the reply.
        id: RequestId,
        /// What is asked.
        body: Q,
    },
    /// A record, and every record before it, is on disk.
    Persisted(Token),
}

/// Something a core wants done.
#[derive(Debug, Clone)]
pub enum Action<M, T, P, R> {
    /// Send a message; `to` may be the node itself.
    Send {
        /// To whom.
        to: NodeId,
        /// What.
        body: M,
    },
    /// Give the event [`Event::Timer`] when this much time has passed.
    SetTimer {
        /// From now.
        after: Nanos,
        /// What it is for.
        timer: T,
    },
    /// Append a record to the node's log, and say [`Event::Persisted`] when it is safe.
    Persist {
        /// The record.
        record: P,
        /// Its name.
        token: Token,
    },
    /// Answer a request.
    Reply {
        /// Which.
        id: RequestId,
        /// The answer.
        body: R,
    },
    /// A note for traces; has no effect.
    Mark {
        /// The transaction.
        txn: u64,
        /// What it has just reached.
        phase: &'static str,
    },
    /// A note for the split of a transaction's latency: from now on it waits on this node, or does
    /// not any more; has no effect.
    Wait {
        /// The transaction.
        txn: u64,
        /// Why, until the next such note.
        wait: Option<Wait>,
    },
}

/// Why a transaction does not go on at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// A constant of the protocol.
    pub reason: &'static str,
    /// The transaction that it waits for, if it is one.
    pub on: Option<u64>,
}

/// The events of a core.
pub type EventOf<C> = Event<<C as Core>::Message, <C as Core>::Timer, <C as Core>::Request>;

/// The actions of a core.
pub type ActionOf<C> =
    Action<<C as Core>::Message, <C as Core>::Timer, <C as Core>::Record, <C as Core>::Reply>;

/// What a step wants done, in this order, and what it cost.
pub struct Actions<C: Core + ?Sized> {
    list: Vec<ActionOf<C>>,
    work: Work,
}

impl<C: Core + ?Sized> Debug for Actions<C> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(&self.list).finish()
    }
}

impl<C: Core + ?Sized> Default for Actions<C> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            work: Work::default(),
        }
    }
}

impl<C: Core + ?Sized> Actions<C> {
    /// See [`Action::Send`].
    pub fn send(&mut self, to: NodeId, body: C::Message) {
        self.list.push(Action::Send { to, body });
    }

    /// See [`Action::SetTimer`].
    pub fn set_timer(&mut self, after: Nanos, timer: C::Timer) {
        self.list.push(Action::SetTimer { after, timer });
    }

    /// See [`Action::Persist`].
    pub fn persist(&mut self, record: C::Record, token: Token) {
        self.list.push(Action::Persist { record, token });
    }

    /// See [`Action::Reply`].
    pub fn reply(&mut self, id: RequestId, body: C::Reply) {
        self.list.push(Action::Reply { id, body });
    }

    /// See [`Action::Mark`].
    pub fn mark(&mut self, txn: u64, phase: &'static str) {
        self.list.push(Action::Mark { txn, phase });
    }

    /// See [`Action::Wait`].
    pub fn wait(&mut self, txn: u64, wait: Option<Wait>) {
        self.list.push(Action::Wait { txn, wait });
    }

    /// Notes work of this step.
    pub fn work(&mut self, work: Work) {
        self.work += work;
    }

    /// The actions, in order, taken out; the buffer keeps its room for the next step.
    pub fn drain(&mut self) -> std::vec::Drain<'_, ActionOf<C>> {
        self.list.drain(..)
    }

    /// The work noted since it was last taken.
    pub fn take_work(&mut self) -> Work {
        std::mem::take(&mut self.work)
    }

    /// What is asked so far.
    pub fn as_slice(&self) -> &[ActionOf<C>] {
        &self.list
    }
}

/// A protocol core: the whole of one node of one protocol, as a deterministic state machine.
///
/// Equal events at equal times give equal actions. A core never panics on what another node
/// sends.
pub trait Core {
    /// What its nodes send each other.
    type Message: Message;
    /// What its timers are for.
    type Timer: Clone + Debug;
    /// What is asked of it from outside.
    type Request: Clone + Debug;
    /// What it answers.
    type Reply: Clone + Debug;
    /// What it writes to disk.
    type Record: Clone + Debug;

    /// Takes one event. `now` is the node's own wall clock.
    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>);

    /// Checks every invariant that can be seen from this node alone. Tests and simulations call
    /// it after every step. Without a default: a core whose state nothing checks says so itself.
    ///
    /// # Errors
    /// What is broken, in words.
    fn check(&self) -> Result<(), String>;

    /// A number that is equal for nodes with equal histories.
    fn digest(&self) -> u64;
}
