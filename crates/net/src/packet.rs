//! What is in a frame.

use std::net::SocketAddr;

use manxdb_core::NodeId;
use serde::{Deserialize, Serialize};

use crate::cluster_id::ClusterId;
use crate::status::Status;

/// A region, for the emulated distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionId(pub u32);

/// A node and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The node.
    pub node: NodeId,
    /// Its region.
    pub region: RegionId,
}

/// How a connection begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Of the sender.
    pub cluster: ClusterId,
    /// Where the sender listens.
    pub address: SocketAddr,
    /// The nodes that run there.
    pub places: Vec<Place>,
}

/// One packet. A connection carries packets one way only, but for the answer to
/// [`Packet::AskStatus`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Packet<M> {
    /// Who speaks. Comes first.
    Hello(Hello),
    /// A message of a node to a node.
    Message {
        /// One of the sender's nodes.
        from: NodeId,
        /// One of the receiver's.
        to: NodeId,
        /// The message.
        body: M,
    },
    /// How is it going? Needs no [`Packet::Hello`].
    AskStatus,
    /// The answer.
    Status(Status),
}
