//! What a running process says of itself.

use manxdb_core::NodeId;
use serde::{Deserialize, Serialize};

use crate::cluster_id::ClusterId;

/// One node of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The node.
    pub node: NodeId,
    /// Which life of it.
    pub life: u64,
    /// What its core says of itself, by name.
    pub notes: Vec<(String, String)>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The cluster that it belongs to.
    pub cluster: ClusterId,
    /// Its process id.
    pub process: u32,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
    /// Its nodes.
    pub nodes: Vec<NodeStatus>,
    /// What it has counted, by name.
    pub counters: Vec<(String, u64)>,
}
