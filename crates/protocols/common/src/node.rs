//! A node of a protocol in which clients coordinate what they ask.
//!
//! Such a protocol has no use for a region's managers: a node is a replica, a client, or does
//! nothing. What the two do is the protocol's ([`Protocol`]); which one a node is, and what reaches
//! it, is the same for all of them.

use std::fmt::Debug;
use std::sync::Arc;

use manxdb_core::{Actions, Core, Event, EventOf, LocalTime, Message, NodeId, RequestId};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::Rows;

use crate::call::{Answer, Ask};
use crate::shared::Shared;
use crate::topology::Role;

/// A protocol in which clients coordinate what they ask.
pub trait Protocol: Sized {
    /// What replicas and clients send each other.
    type Message: Message;
    /// What clients' timers are for.
    type Timer: Clone + Debug;
    /// How a cluster behaves.
    type Options;
    /// A replica of a shard.
    type Replica: ReplicaOf<Self>;
    /// A client.
    type Client: ClientOf<Self>;
}

/// What a step of a node of the protocol `P` wants done.
pub type Out<P> = Actions<Node<P>>;

/// A replica of one shard, as its protocol has it.
pub trait ReplicaOf<P: Protocol> {
    /// A replica of `shard` that begins with these rows.
    fn new(shard: ShardId, shared: Arc<Shared<P::Options>>, rows: Rows) -> Self;

    /// A message arrives.
    fn on_message(&mut self, from: NodeId, message: P::Message, out: &mut Out<P>);

    /// What must hold between any two steps.
    ///
    /// # Errors
    /// What does not hold.
    fn check(&self) -> Result<(), String>;

    /// Equal for replicas that are in the same state.
    fn digest(&self) -> u64;
}

/// A client with any number of calls under way, as its protocol has it.
pub trait ClientOf<P: Protocol> {
    /// Client `me`.
    fn new(me: NodeId, shared: Arc<Shared<P::Options>>) -> Self;

    /// A call is asked of it.
    fn ask(&mut self, request: RequestId, ask: Ask, out: &mut Out<P>);

    /// A message arrives, at `now` by the client's clock.
    fn on_message(&mut self, now: LocalTime, from: NodeId, message: P::Message, out: &mut Out<P>);

    /// A timer that it set is over.
    fn on_timer(&mut self, timer: P::Timer, out: &mut Out<P>);

    /// What must hold between any two steps.
    ///
    /// # Errors
    /// What does not hold.
    fn check(&self) -> Result<(), String>;

    /// Equal for clients that are in the same state.
    fn digest(&self) -> u64;
}

/// A node of a cluster that runs the protocol `P`.
#[allow(clippy::large_enum_variant)] // one of them a node, for as long as it lives
pub enum Node<P: Protocol> {
    /// It stores a shard.
    Replica(P::Replica),
    /// It asks, and coordinates what it asks.
    Client(P::Client),
    /// Regions have managers in other systems; here they do nothing.
    Idle,
}

impl<P: Protocol> Node<P> {
    /// The node of that number. `rows` are those that a replica begins with.
    pub fn new(me: NodeId, shared: &Arc<Shared<P::Options>>, rows: impl FnOnce() -> Rows) -> Self {
        let given = Arc::clone(shared);
        match shared.topology.role(me) {
            Role::Replica(shard) => Self::Replica(P::Replica::new(shard, given, rows())),
            Role::Manager(_) => Self::Idle,
            Role::Client => Self::Client(P::Client::new(me, given)),
        }
    }

    /// The replica it is.
    #[must_use]
    pub fn replica(&self) -> Option<&P::Replica> {
        match self {
            Self::Replica(replica) => Some(replica),
            _ => None,
        }
    }
}

impl<P: Protocol> Core for Node<P> {
    type Message = P::Message;
    type Timer = P::Timer;
    type Request = Ask;
    type Reply = Answer;
    type Record = ();

    fn step(&mut self, now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match (self, event) {
            (Self::Replica(replica), Event::Message { from, body }) => {
                replica.on_message(from, body, out);
            }
            (Self::Client(client), Event::Message { from, body }) => {
                client.on_message(now, from, body, out);
            }
            (Self::Client(client), Event::Request { id, body }) => client.ask(id, body, out),
            (Self::Client(client), Event::Timer(timer)) => client.on_timer(timer, out),
            // Replicas set no timers and nobody writes records; what is misrouted is dropped.
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Replica(replica) => replica.check(),
            Self::Client(client) => client.check(),
            Self::Idle => Ok(()),
        }
    }

    fn digest(&self) -> u64 {
        match self {
            Self::Replica(replica) => replica.digest(),
            Self::Client(client) => client.digest(),
            Self::Idle => 0,
        }
    }
}
