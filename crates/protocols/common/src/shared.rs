//! What every node of a cluster is given.

use std::sync::Arc;

use manxdb_txn::procedure::{Placement, Registry};

use crate::topology::Topology;

/// What all nodes of a cluster have in common; `O` are the options of its protocol.
#[derive(Clone)]
pub struct Shared<O> {
    /// The cluster's shape.
    pub topology: Topology,
    /// How it behaves.
    pub options: O,
    /// The procedures it knows.
    pub procedures: Arc<Registry>,
    /// Where keys live.
    pub placement: Arc<dyn Placement>,
}
