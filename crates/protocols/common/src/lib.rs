//! What protocols that order one-shot procedures over many regions have in common.
//!
//! Parts of cores: no messages, timers, sockets or clocks of their own. A protocol decides in which
//! order transactions run; what a call is, how it is cut into pieces and where those live does not
//! depend on that.
//!
//! | question | answered in |
//! |---|---|
//! | what is asked, how it is cut into pieces, and what it gives | [`call`] |
//! | who is where | [`topology`] |
//! | which calls of a client are under way, and whom it asks | [`client`] |
//! | which transactions meet on a row | [`conflicts`] |
//! | what runs of transactions whose order is decided, and what waits for a row or a value | [`pieces`] |
//! | what every node of a cluster is given | [`shared`] |
//! | what a node is where clients coordinate what they ask | [`node`] |
//!
//! Start reading at [`call`].
#![forbid(unsafe_code)]

pub mod call;
pub mod client;
pub mod conflicts;
pub mod node;
pub mod pieces;
pub mod shared;
pub mod topology;

pub use call::{Answer, Ask, Call, CallId, Given, Level, Numbered, Planned};
pub use client::OpenCalls;
pub use conflicts::Conflicts;
pub use node::Node;
pub use pieces::{Pieces, Release};
pub use shared::Shared;
pub use topology::{RegionId, Role, Topology};
