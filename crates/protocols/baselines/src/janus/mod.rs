//! Janus: transactions are ordered by whom they met, in two round trips of their client.
//!
//! "Consolidating Concurrency Control and Consensus for Commits under Conflicts" (Mu et al., OSDI
//! 2016), as the DAST paper configures it: three replicas of a shard in one region, so that the
//! fast quorum is all three of them (n = 3, f = 1).
//!
//! | step | who | what |
//! |---|---|---|
//! | PreAccept | client → all replicas of the shards | each answers with the transaction's *parents*: those it knows that meet it on a row and have not had their turn |
//! | fast path | client | the three answers of every shard are equal: Commit |
//! | Accept | client → replicas | else: the union of all answers, and two acknowledgements of each shard |
//! | Commit | client → replicas | the parents, for good |
//! | turn | replica | once all ancestors are committed: cycles of them in the order of the graph, inside one by identity |
//!
//! An ancestor that a replica does not store is asked for at a replica that does (Inquire), which
//! answers once it is committed there, with what it knows of that one's ancestors.
//!
//! What a procedure touches is known before it runs, so one round of PreAccept finds every parent;
//! a piece that waits for a value of another shard holds its rows, and later ones that touch them
//! come behind it ([`manxdb_common::pieces`]).
//!
//! Not here: recovery. No node fails, as in the experiments that this is for; messages may come
//! late, twice and out of order beneath a channel.

mod client;
pub(crate) mod graph;
mod message;
mod replica;

use std::sync::Arc;

use manxdb_common::{Answer, Ask, Role, Shared};
use manxdb_core::{Actions, Core, Event, EventOf, LocalTime, NodeId};
use manxdb_txn::rows::Rows;

pub use self::client::Client;
pub use self::message::{JanusMessage, Parent, Parents, Vertex};
pub use self::replica::Replica;

/// How a Janus cluster behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct JanusOptions {
    /// Replicas say what transactions wait for; costs time, not order.
    pub explains: bool,
    /// Planted defects.
    #[cfg(feature = "mutants")]
    pub mutant: Option<JanusMutant>,
}

/// A planted defect, which the tests must find.
#[cfg(feature = "mutants")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JanusMutant {
    /// Two equal answers of three are taken for a fast quorum.
    MajorityIsFast,
    /// A committed transaction has its turn whether or not its ancestors are committed.
    AncestorsNotAwaited,
}

type JanusShared = Shared<JanusOptions>;
type Out = Actions<JanusNode>;

/// A node of a Janus cluster.
#[allow(clippy::large_enum_variant)] // one of them a node, for as long as it lives
pub enum JanusNode {
    /// It stores a shard.
    Replica(Replica),
    /// It asks, and coordinates what it asks.
    Client(Client),
    /// Regions have managers in other systems; here they do nothing.
    Idle,
}

impl JanusNode {
    /// The node of that number. `rows` are those that a replica begins with.
    pub fn new(me: NodeId, shared: &Arc<JanusShared>, rows: impl FnOnce() -> Rows) -> Self {
        match shared.topology.role(me) {
            Role::Replica(shard) => Self::Replica(Replica::new(shard, Arc::clone(shared), rows())),
            Role::Manager(_) => Self::Idle,
            Role::Client => Self::Client(Client::new(me, Arc::clone(shared))),
        }
    }

    /// The replica it is.
    #[must_use]
    pub fn replica(&self) -> Option<&Replica> {
        match self {
            Self::Replica(replica) => Some(replica),
            _ => None,
        }
    }
}

impl Core for JanusNode {
    type Message = JanusMessage;
    type Timer = ();
    type Request = Ask;
    type Reply = Answer;
    type Record = ();

    fn step(&mut self, _now: LocalTime, event: EventOf<Self>, out: &mut Actions<Self>) {
        match (self, event) {
            (Self::Replica(replica), Event::Message { from, body }) => {
                replica.on_message(from, body, out);
            }
            (Self::Client(client), Event::Message { from, body }) => {
                client.on_message(from, body, out);
            }
            (Self::Client(client), Event::Request { id, body }) => client.ask(id, body, out),
            // Nobody sets timers or writes records; what is misrouted is dropped.
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
            Self::Replica(replica) => replica.pieces().digest(),
            Self::Client(client) => client.digest(),
            Self::Idle => 0,
        }
    }
}
