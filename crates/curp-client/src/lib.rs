//! The client of a cluster that replicates a machine by CURP, in one round trip where commands commute.
//!
//! The protocol is `manxdb-curp`'s, the loop and the sockets are `manxdb-net`'s; this crate puts a client's
//! core into such a loop, for a program that asks with blocking calls ([`Client`]) and for drivers of a
//! loop of their own, as `manxdb proxy` is ([`Calls`]). It knows no machine: what a command's bytes mean
//! is the machine's. Redis's commands are typed in `manxdb_curp_redis::RedisClient`, where an example is.
//!
//! | question | answered in |
//! |---|---|
//! | what a client has to know of a cluster, and how it learns it from the coordinator | [`cluster`] |
//! | commands under way, each completed once | [`calls`] |
//! | how commands were completed | [`counts`] |
//! | a client with calls that block | [`client`] |
//!
//! A command keeps its id however often it is sent, so that it is executed once, whatever fails in between
//! (RIFL, SOSP 2015). There is no authentication: whoever reaches the ports takes part.
//!
//! Start reading at [`client`].
#![forbid(unsafe_code)]
// Sockets, threads and clocks are what this crate has beside the core.
#![allow(clippy::disallowed_methods)]

pub mod calls;
pub mod client;
pub mod cluster;
pub mod counts;

pub use calls::Calls;
pub use client::{CallError, Client};
pub use cluster::{Cluster, ConnectError, CoordinatorDriver};
pub use counts::{ClientCounts, ClientMeter};
