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

use manxdb_common::Shared;
use manxdb_common::node::{Node, Protocol};
use manxdb_core::Actions;

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

/// [`manxdb_common::node::Protocol`].
#[derive(Debug, Clone, Copy)]
pub struct Janus;

impl Protocol for Janus {
    type Message = JanusMessage;
    /// Nobody sets any.
    type Timer = ();
    type Options = JanusOptions;
    type Replica = Replica;
    type Client = Client;
}

/// A node of a Janus cluster.
pub type JanusNode = Node<Janus>;

type JanusShared = Shared<JanusOptions>;
type Out = Actions<JanusNode>;
