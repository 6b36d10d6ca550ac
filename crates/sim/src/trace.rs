//! What arrived where and when, recorded when asked for.

use manxdb_core::{Nanos, NodeId};

use crate::time::SimTime;

/// What arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message of this node.
    Message(NodeId),
    /// A request from outside.
    Request,
    /// An answer to one, on its way out.
    Reply,
    /// A core marked a phase.
    Mark,
    /// A fault began or ended.
    Fault,
}

/// One thing that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// When it arrived.
    pub at: SimTime,
    /// Where.
    pub node: NodeId,
    /// What.
    pub kind: Kind,
    /// Its name.
    pub label: &'static str,
    /// The transaction that it is about.
    pub txn: Option<u64>,
    /// How long it waited for the CPU.
    pub wait: Nanos,
}

/// Which rows are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Record {
    /// None: costs one comparison per event.
    #[default]
    Nothing,
    /// Those of one transaction.
    Txn(u64),
    /// All.
    All,
}

/// The rows of a run, in the order of arrival.
#[derive(Debug, Default)]
pub struct Trace {
    record: Record,
    rows: Vec<Row>,
}

impl Trace {
    pub(crate) fn new(record: Record) -> Self {
        Self {
            record,
            rows: Vec::new(),
        }
    }

    /// Whether rows about `txn` are kept; asks for its id only when that matters.
    pub(crate) fn wants(&self, txn: impl FnOnce() -> Option<u64>) -> bool {
        match self.record {
            Record::Nothing => false,
            Record::All => true,
            Record::Txn(one) => txn() == Some(one),
        }
    }

    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// What was recorded.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }
}
