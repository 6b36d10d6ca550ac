//! Compaction as a service for RocksDB.
//!
//! The cores of [`manxdb_jobs`] decide which worker compacts which job; this crate runs them as
//! processes.
//!
//! ```text
//! RocksDB ─edge─ service ─ actor(Client) ─ link ══gRPC══ server ─ actor(Contender) ─ store
//!                   │                                       ║
//!                outputs                                    ╚═gRPC═ link ─ actor(Worker) ─ worker ─edge─ RocksDB
//! ```
//!
//! | question | answered in |
//! |---|---|
//! | a database's side: hand out jobs, verify outputs, install them | [`database`] |
//! | databases of other programs | [`external`] |
//! | a worker | [`worker`] |
//! | the control plane, with its state in a file or in etcd | [`control`] |
//! | volumes and object stores | [`object_store`] |
//! | RocksDB's own files and descriptions, read without RocksDB | [`rocksdb_files`] |
//! | connections, messages, tokens and certificates | [`transport`] |
//! | the traits between a database and the service, RocksDB's hook | [`edge`], a crate of its own |
//! | a worker's order, without paths, and its answer | [`order`], [`answer`] |
//! | checksums around both | [`seal`] |
//! | how a core runs in a process | [`actor`] |
//! | metrics as text and over HTTP | [`metrics`] |
//!
//! Start reading at [`database::service`], then [`worker`].
// Clocks, files, threads and sockets are what this crate keeps away from the cores.
#![allow(clippy::disallowed_methods)]
#![warn(unreachable_pub)]

pub mod actor;
pub mod answer;
pub mod control;
pub mod database;
pub mod external;
mod file_io;
pub mod metrics;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod object_store;
pub mod order;
pub mod rocksdb_files;
pub mod seal;
pub mod transport;
#[cfg(feature = "worker")]
pub mod worker;

pub use manxdb_compaction_edge as edge;
