//! Replication in one round trip for operations that commute (CURP), with witnesses.
//!
//! A protocol core: no sockets, clocks or threads (see `manxdb_core`). It replicates a
//! deterministic machine of keys for linearizable commands, each executed exactly once
//! ("Exploiting Commutativity For Practical Fast Replication", Park and Ousterhout, NSDI 2019;
//! RIFL, SOSP 2015). What machine that is, is not in here, and neither are sockets, XDP or RESP.
//!
//! A client sends a command to the master and, at the same time, a record of it to f *witnesses*.
//! A witness keeps requests that touch different keys, in no order. The master runs the command
//! and answers at once, unless it touches a key whose last update is not on all f backups yet.
//! An answer and the acceptances of all witnesses complete the command: one round trip. The
//! master brings its log to the backups later, in batches, and lets witnesses forget. When it
//! dies, a backup takes its place and runs what one witness has.
//!
//! What is acknowledged is in the memory of f + 1 processes, or on the disks of f + 1 servers
//! ([`Durability`]); in both modes servers write their logs down, so that a cluster that was stopped
//! whole comes back.
//!
//! | question | answered in |
//! |---|---|
//! | names, and what a view is | [`ids`] |
//! | what is replicated | [`execute`] |
//! | how keys move to another group | [`slots`] |
//! | what a log is made of | [`log`] |
//! | how bytes are written down | [`bytes`] |
//! | how a client completes an operation | [`client`] |
//! | what the master answers at once | [`master`] |
//! | what runs once | [`rifl`] |
//! | what a backup keeps, and what may be cut off | [`backup`] |
//! | how a new backup gets everything, piece by piece | [`copying`] |
//! | how a spare follows the log before it is needed | `master/following.rs` |
//! | what a witness accepts and forgets | [`table`], [`witness`] |
//! | where its records lie | [`carrier`] |
//! | the datagrams, byte by byte; their hashes | [`wire`], [`hash`] |
//! | who replaces whom, and in which order | [`coordinator`], [`server`] |
//! | what is on disk, and who may begin again from it | [`disk`] |
//! | what nodes say to each other | [`message`] |
//!
//! Start reading at [`client`], then [`master`], then [`coordinator`].
#![forbid(unsafe_code)]

pub mod backup;
pub mod bytes;
pub mod carrier;
pub mod client;
pub mod coordinator;
pub mod copying;
pub mod disk;
pub mod execute;
mod garbage;
pub mod hash;
pub mod ids;
pub mod image;
pub mod log;
#[cfg(test)]
mod machine_tests;
pub mod master;
pub mod message;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod node;
pub mod options;
mod replies;
pub mod rifl;
pub mod server;
pub mod slots;
pub mod table;
pub mod wire;
pub mod witness;

pub use carrier::{MemoryCarrier, ViewTokens, WitnessCarrier};
pub use client::{ClientAnswer, Completion};
pub use execute::{Declared, Execute, Executed, Recorded, Settled};
pub use image::{ReadImage, ReceiveImage, StateError};
pub use node::{CurpNode, CurpTimer};
pub use options::{Durability, Options, Role};
