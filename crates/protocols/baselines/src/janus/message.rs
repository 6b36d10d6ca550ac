//! What nodes of Janus send each other.

use std::sync::Arc;

use manxdb_common::pieces::Passed;
use manxdb_common::{CallId, Given, Planned};
use manxdb_core::{Message, Weight};

/// A transaction that another one comes behind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parent {
    /// Which.
    pub id: CallId,
    /// The shards it touches, ascending: who can be asked for it.
    pub shards: Arc<[u32]>,
}

/// The parents of a transaction, ascending, each once.
pub type Parents = Arc<[Parent]>;

/// A committed transaction in the graph, as one replica tells another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vertex {
    /// Which.
    pub id: CallId,
    /// The shards it touches, ascending.
    pub shards: Arc<[u32]>,
    /// Whom it comes behind.
    pub parents: Parents,
    /// If it has had its turn there: the cycle that it is part of, itself included. Its other
    /// ancestors have had theirs.
    pub cycle: Option<Arc<[CallId]>>,
}

/// A message.
#[derive(Debug, Clone)]
pub enum JanusMessage {
    /// A client asks a replica to note a transaction.
    PreAccept {
        /// The transaction; its coordinator is the client.
        planned: Arc<Planned>,
    },
    /// Whom it meets there.
    PreAcceptOk {
        /// The transaction.
        id: CallId,
        /// The replica's shard.
        shard: u32,
        /// Whom it comes behind.
        parents: Parents,
    },
    /// The client asks a replica to keep the union of what all have said.
    Accept {
        /// The transaction.
        id: CallId,
        /// Whom it comes behind.
        parents: Parents,
    },
    /// The replica does.
    AcceptOk {
        /// The transaction.
        id: CallId,
        /// The replica's shard.
        shard: u32,
    },
    /// The parents of a transaction are decided.
    Commit {
        /// The transaction.
        id: CallId,
        /// Whom it comes behind.
        parents: Parents,
    },
    /// A replica asks another one for a transaction that it does not store.
    Inquire {
        /// The transaction.
        id: CallId,
    },
    /// It and what is known of its ancestors.
    Graph {
        /// Committed transactions.
        vertices: Vec<Vertex>,
    },
    /// Values for another shard.
    Pass {
        /// The transaction.
        id: CallId,
        /// The values.
        passed: Passed,
    },
    /// What a shard's pieces gave, for the client.
    Output {
        /// The transaction.
        id: CallId,
        /// The replica's shard.
        shard: u32,
        /// The values.
        given: Given,
    },
}

impl Message for JanusMessage {
    fn weight(&self) -> Weight {
        let pieces = match self {
            Self::PreAccept { planned } => planned.steps(),
            _ => 0,
        };
        Weight::Call { pieces }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::PreAccept { .. } => "PreAccept",
            Self::PreAcceptOk { .. } => "PreAcceptOk",
            Self::Accept { .. } => "Accept",
            Self::AcceptOk { .. } => "AcceptOk",
            Self::Commit { .. } => "Commit",
            Self::Inquire { .. } => "Inquire",
            Self::Graph { .. } => "Graph",
            Self::Pass { .. } => "Pass",
            Self::Output { .. } => "Output",
        }
    }

    fn txn(&self) -> Option<u64> {
        let id = match self {
            Self::PreAccept { planned } => planned.id(),
            Self::PreAcceptOk { id, .. }
            | Self::Accept { id, .. }
            | Self::AcceptOk { id, .. }
            | Self::Commit { id, .. }
            | Self::Inquire { id }
            | Self::Pass { id, .. }
            | Self::Output { id, .. } => *id,
            Self::Graph { vertices } => vertices.first()?.id,
        };
        Some(id.for_traces())
    }
}
