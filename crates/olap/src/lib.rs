//! Joins and aggregations spread over the nodes of a rack: by messages, and over one-sided memory
//! (Binnig et al., "The End of Slow Networks", §5).
//!
//! Each node has a share of the rows and a thread. Rows go to the node that their key's hash names,
//! by a [`socket`](sockets) or by writes into that node's [`memory`], and what meets there is joined
//! or added up. What all nodes find together is the answer; each calls a function of the caller for
//! what it finds itself.
//!
//! | algorithm | rows travel | then | in |
//! |---|---|---|---|
//! | GHJ | as messages | partitioned again so that they fit a cache, joined | [`join::by_messages`] |
//! | GHJ with Bloom filters | as messages, if the other relation may have their key | the same | [`join::by_messages`] |
//! | RDMA GHJ | as writes, a buffer for each node | the same | [`join::by_writes`] |
//! | RRJ | as writes, a buffer for each partition that fits a cache | joined as they lie | [`join::by_writes`] |
//! | AGG | added up by each node, then as messages | added up again | [`aggregate::by_messages`] |
//! | RDMA AGG | added up in a table that fits a cache, what it loses as writes | added up partition by partition | [`aggregate::by_writes`] |
//!
//! [`workload`] makes rows whose answer is known without asking anybody.
//!
//! There are no plans, no SQL and no recovery in here: a node that dies ends the query, and the
//! others say so. Start reading at [`rows`], then [`join`].
#![forbid(unsafe_code)]
// Sockets and the threads that read them are what messages are carried by.
#![allow(clippy::disallowed_methods)]

pub mod aggregate;
mod bloom;
mod error;
mod hash;
pub mod join;
pub mod memory;
pub mod rows;
pub mod sockets;
mod traffic;
pub mod workload;

pub use error::OlapError;
pub use rows::{Key, Rows, Width};
pub use traffic::Traffic;
