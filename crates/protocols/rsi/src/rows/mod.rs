//! Rows under keys, in transactions: what SQL and the workloads of the laboratory ask of a store, made
//! of records and a tree of their keys.
//!
//! | asked | done |
//! |---|---|
//! | get | the leaf of the key, where it was last, then the record: two round trips |
//! | scan | leaf after leaf, then all records of a leaf at once |
//! | write | kept until the commit |
//! | commit | everything at once, as [`crate::commit`] does it, with the leaves that get new keys; where others write these, the keys are entered before |
//!
//! Unlike the rest of this crate these are futures, not [`crate::machine::Machine`]: whoever carries the
//! work out also polls them, and nothing here waits for anything else.

mod client;
pub mod collect;
mod enter;
mod extent;
mod free_extents;
mod transaction;

use crate::abort::Abort;
use crate::block::Layout;
use crate::directory::RecordAddress;
use crate::drain::Replayed;
use crate::tree::Tree;
use crate::tree::node::Node;

pub use self::client::Client;
pub use self::extent::Extent;
pub use self::free_extents::{FreeExtentRecord, Opened};
pub use self::transaction::Transaction;

/// Where rows are: the tree of their keys, and how the records lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Keyspace {
    /// Of all keys.
    pub tree: Tree,
    /// Of the records: without keys, for the tree has them.
    pub records: Layout,
}

impl Keyspace {
    /// Where a record leads that came back from disk, if it is a node: to records, which may never
    /// have been written, or to nodes, and how these lie there.
    #[must_use]
    pub fn leads_to(&self, record: &Replayed) -> Option<(Layout, Vec<RecordAddress>)> {
        let nodes = self.tree.layout();
        let value = record.redo.value.as_ref();
        let node = Node::parse(value.filter(|_| record.layout() == nodes)?)?;
        let layout = if node.level() == 0 {
            self.records
        } else {
            nodes
        };
        let places = node.entries().iter().map(|(_, place)| *place);
        Some((layout, places.collect()))
    }
}

/// Why a transaction on rows does not go on.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E> {
    /// As of any transaction.
    #[error(transparent)]
    Abort(#[from] Abort),
    /// The client has used up its memory.
    #[error("there is no more room for {0}")]
    NoRoom(&'static str),
    /// It was not carried out.
    #[error("{0}")]
    Carrier(E),
}

impl<E> Failure<E> {
    /// Whether the log archiver has not written to disk for long what is in the thread's log.
    #[must_use]
    pub fn is_unwritten(&self) -> bool {
        matches!(self, Self::Abort(Abort::Unwritten(_)))
    }

    /// Whether nothing is wrong but that somebody else was there: to be tried again.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Abort(abort) if abort.is_conflict())
    }
}
