//! Rows that travel as writes into other nodes' memory, whose processors do not run for it.
//!
//! Every node registers the same [`NodeRegion`]: a counter, and places for pieces of partitions. Who has
//! a piece full of rows adds to the counter of the node that they belong to, which gives it places
//! that nobody else gets, and writes the piece there while it goes on; the piece says which
//! partition it is of. When a node has written all it says so in the memory of all others, and when
//! all have said so a node finds its pieces in its own memory.
//!
//! Nobody has to know before how rows are spread: a partition is as many pieces as it needs, in
//! any order, and one that gets most of the rows needs no other memory than many small ones.
//! A room is for one query.

mod gather;
mod node;
mod pipe;
mod region;
mod scatter;

pub(crate) use gather::Gathered;
pub use node::Node;
pub use region::{Load, NodeRegion};
pub(crate) use scatter::Scatter;
