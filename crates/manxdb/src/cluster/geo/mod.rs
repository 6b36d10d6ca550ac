//! A cluster that orders transactions over regions (DAST), for whoever watches it: what its nodes measure,
//! and the admin listener of each that shows it.
//!
//! Each node measures itself and tells that, as a note of its status, to whoever asks. The page of every
//! node shows the whole cluster: it asks all nodes for their notes. `/metrics` of a node has what that node
//! measured, and which nodes answer it; all nodes' together are what the page shows.
//!
//! | file | |
//! |---|---|
//! | [`meter`] | what a node measures of itself while it runs |
//! | [`latencies`] | how long calls took |
//! | [`minute`] | what was counted in the last minute |
//! | [`slowest`] | the slowest calls |
//! | [`measured`] | what a node tells of that |
//! | [`pulse`] | whether its loop turns |
//! | here | what all nodes say |
//! | [`page`] | that, for the page |
//! | [`metrics`] | what the node itself has measured, for Prometheus |
//! | [`admin`] | the listener that serves both |

pub mod admin;
pub mod latencies;
pub mod measured;
pub mod meter;
pub mod metrics;
mod minute;
mod page;
pub mod pulse;
mod slowest;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_dast::Role;
use manxdb_gateway::admin::HealthReport;
use manxdb_net::Status;

use self::measured::{MEASURED, Measured};
use super::answers::{PATIENCE, Recent, ask_all, note};
use super::dast;
use super::dast_status::{Said, judge};
use super::file::{ClusterFile, Node};
use super::node::STATE;

/// A cluster, as one of its nodes sees it.
pub struct GeoCluster {
    file: ClusterFile,
    own: u32,
    last: Recent<Seen>,
}

/// What all nodes said at one time.
#[derive(Debug)]
pub struct Seen {
    /// By number.
    nodes: Vec<NodeSeen>,
    /// What the cluster lacks, the worst first.
    lacking: Vec<HealthReport>,
}

/// What one node said.
#[derive(Debug)]
struct NodeSeen {
    node: Node,
    role: Role,
    /// None: it does not answer.
    status: Option<Status>,
    measured: Measured,
}

impl NodeSeen {
    fn new(file: &ClusterFile, node: &Node, status: Option<Status>) -> Self {
        let told = status.as_ref().and_then(|status| note(status, MEASURED));
        Self {
            role: dast::topology(file).role(NodeId(node.number)),
            measured: told.map(Measured::of_note).unwrap_or_default(),
            node: node.clone(),
            status,
        }
    }

    fn state(&self) -> Option<&str> {
        note(self.status.as_ref()?, STATE)
    }

    /// What it has counted that begins with these words, by what follows them.
    fn counters<'a>(&'a self, words: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        let counters = self.status.iter().flat_map(|status| &status.counters);
        counters.filter_map(move |(name, count)| Some((name.strip_prefix(words)?, *count)))
    }
}

impl Seen {
    fn new(file: &ClusterFile, answers: Vec<Option<Status>>) -> Self {
        let nodes = file.nodes.iter().zip(answers);
        let nodes: Vec<_> = nodes
            .map(|(node, answer)| NodeSeen::new(file, node, answer))
            .collect();
        assert_eq!(nodes.len(), file.nodes.len(), "each node is asked once");
        let said = |node: &Node| {
            let seen = nodes.get(node.number as usize)?;
            seen.status.as_ref().map(Said::of)
        };
        let lacking = judge(file, said);
        Self { nodes, lacking }
    }
}

impl GeoCluster {
    /// The cluster of `file`, of which this process is node `own`.
    #[must_use]
    pub fn new(file: ClusterFile, own: u32) -> Self {
        Self {
            file,
            own,
            last: Recent::default(),
        }
    }

    /// What all nodes say now, or said up to a second ago.
    fn seen(&self) -> Arc<Seen> {
        let ask = || Seen::new(&self.file, ask_all(&self.file, PATIENCE));
        self.last.get(ask)
    }
}
