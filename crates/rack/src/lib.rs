//! Rows in the memory of servers in a rack, on real fabrics: the protocol of `manxdb-rsi` with sockets,
//! threads, clocks and files.
//!
//! The protocol itself is not here, and neither is what it is compared with (`manxdb-checkout`).
//!
//! | question | answered in |
//! |---|---|
//! | how a machine's operations are carried out, and when a server is given up | [`drive`] |
//! | the commit path `rsi` of SQL | [`path`] |
//! | rows with procedures on them, such as TPC-C's | [`rows`] |
//! | when statements are refused because too many memory servers are lost | [`availability`] |
//! | memory servers that outlive their clients, and where everything lies in their memory | [`memory`] |
//! | how what is committed reaches disk, and comes back | [`archiver`], [`disk`] |
//!
//! Start reading at [`drive`], then [`path`].
#![forbid(unsafe_code)]
// Sockets, threads and clocks are what this crate carries the protocols with.
#![allow(clippy::disallowed_methods)]

pub mod archiver;
pub mod availability;
pub mod disk;
pub mod drive;
pub mod memory;
pub mod path;
pub mod rows;
mod silence;
