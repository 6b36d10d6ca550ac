//! Why a query has no answer.

use std::io;

use manxdb_fabric::{Fault, Misuse};

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum OlapError {
    /// Rows that cannot be.
    #[error("rows of {bytes} bytes: a row has {least} to {most}, a multiple of 8")]
    Width {
        /// How many were asked for.
        bytes: usize,
        /// The fewest a row has.
        least: usize,
        /// The most.
        most: usize,
    },
    /// Bytes that are no rows.
    #[error("{bytes} bytes are not so many rows of {width}")]
    Cut {
        /// How many.
        bytes: usize,
        /// Of a row.
        width: usize,
    },
    /// Memory that cannot be laid out.
    #[error("{0}")]
    NodeRegion(String),
    /// More rows for a node than its memory holds.
    #[error("node {node} has room for {pieces} pieces of partitions, and more come")]
    Full {
        /// Which node.
        node: u16,
        /// What it has room for.
        pieces: u64,
    },
    /// More rows in one place than can be numbered.
    #[error("a partition of {0} rows is too large: partition more finely")]
    Partition(usize),
    /// Its memory or its socket is gone.
    #[error("node {0} is gone")]
    Gone(u16),
    /// It could not send all of its rows.
    #[error("node {0} has given up")]
    GivenUp(u16),
    /// It has shut us out.
    #[error("node {0} has shut this node out")]
    Fenced(u16),
    /// It is of another release, or broken.
    #[error("node {node} says what makes no sense: {what}")]
    Nonsense {
        /// Which node.
        node: u16,
        /// What.
        what: String,
    },
    /// A socket fails.
    #[error("node {0}: {1}")]
    Socket(u16, io::Error),
    /// The fabric promises less than exchanges need.
    #[error("the fabric cannot carry this: {0}")]
    Fabric(String),
    /// Memory that no node has.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

impl From<Fault> for OlapError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Gone(server) => Self::Gone(server.0),
            Fault::Fenced(server) => Self::Fenced(server.0),
        }
    }
}
