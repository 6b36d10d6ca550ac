//! Redis's data types, replicated in one round trip.
//!
//! `manxdb-curp` replicates any deterministic machine of keys; the machine of this crate is the
//! keyspace of `manxdb-redis`. A front takes Redis clients' connections, answers what a connection can
//! answer itself, and passes commands on data to a CURP client in its process. It has no protocol of
//! replication in it, no process and no command line: those are `manxdb-curp`'s, `manxdb-net`'s and
//! `manxdb`'s.
//!
//! ```text
//! Redis client ──RESP── front ── CURP client ──┬── master: RedisMachine
//!                       (proxy, or the         └── witnesses (of a proxy)
//!                        server's own port)
//! ```
//!
//! | question | answered in |
//! |---|---|
//! | how a command is written into records and logs | [`command`] |
//! | what a command does, which keys it touches, what backups keep | [`machine`] |
//! | which command waits for which, and how replies keep their order | [`front`] |
//! | a client for Rust programs, without a proxy | [`client`] |
//!
//! Start reading at [`machine`], then [`front`].
#![forbid(unsafe_code)]
// Sockets of clients are what the front is for.
#![allow(clippy::disallowed_methods)]

pub mod client;
pub mod command;
pub mod front;
pub mod machine;

pub use client::{RedisClient, RedisError, Value};
pub use command::ReplicatedCommand;
pub use front::{Front, FrontSettings, HomeCluster};
pub use machine::{RedisKeys, RedisMachine, told};
