//! What is simulated.

use manxdb_core::channel::Life;
use manxdb_core::{Core, NodeId, RequestId, Weight};

use crate::cost::CostModel;

/// The events, requests and so on of a system's cores.
pub type RequestOf<S> = <<S as System>::Core as Core>::Request;
/// What they answer.
pub type ReplyOf<S> = <<S as System>::Core as Core>::Reply;
/// What they write to disk.
pub type RecordOf<S> = <<S as System>::Core as Core>::Record;

/// A protocol as a set of nodes.
pub trait System {
    /// One node.
    type Core: Core;

    /// The core of a node that starts: the first time with life 1 and an empty disk, later with
    /// the records that its disk has, oldest first. The world counts lives, also of a node whose
    /// disk is lost; a real process learns its life from the cluster's membership.
    fn start(&mut self, node: NodeId, life: Life, disk: Vec<RecordOf<Self>>) -> Self::Core;

    /// What things cost a node, where that differs from the run's prices.
    fn cost(&self, _node: NodeId) -> Option<CostModel> {
        None
    }

    /// What it costs a node to receive a request.
    fn request_weight(&self, _request: &RequestOf<Self>) -> Weight {
        Weight::Call { pieces: 0 }
    }

    /// The transaction that a request is about, for traces.
    fn request_txn(&self, _request: &RequestOf<Self>) -> Option<u64> {
        None
    }

    /// The transaction that a reply is about, for traces and to explain its latency.
    fn reply_txn(&self, _request: RequestId, _reply: &ReplyOf<Self>) -> Option<u64> {
        None
    }

    /// What it costs a node to send a reply.
    fn reply_weight(&self, _reply: &ReplyOf<Self>) -> Weight {
        Weight::Call { pieces: 0 }
    }
}
