//! Compaction as a service for RocksDB.
//!
//! Who does what is decided by the cores of [`manxdb_jobs`]; here are the processes around them.
//!
//! ```text
//! RocksDB ─edge─ service ─ actor(Client) ─ link ══gRPC══ server ─ actor(Contender) ─ store
//!                   │                                       ║
//!                outputs                                    ╚═gRPC═ link ─ actor(Worker) ─ worker ─edge─ RocksDB
//! ```
//!
//! | question | answered in |
//! |---|---|
//! | how RocksDB hands out a compaction, what a database says of itself | [`edge`], a crate of its own |
//! | a database's side: what goes elsewhere, what stays | [`service`] |
//! | what a database knows of itself while it is open | [`pressure`] |
//! | whether a worker's outputs may be installed | [`outputs`]; their blocks: [`blocks`] |
//! | databases of other programs: one service for all of them, what is read of each, what may be handed out | [`external_dbs`], [`external_db`], [`compatibility`] |
//! | what a database writes down of itself | [`settings`], [`manifest`], [`table`] |
//! | where workers write beside a database | [`staging`] |
//! | storage that both sides reach: a directory, or an object store | [`volume`], [`objects`], [`parallel`] |
//! | storage that is delayed_store away, in experiments | [`delayed_store`] |
//! | what of a database is in an object store, and what a worker makes of it | [`upload_index`], [`view`], [`database_copy`] |
//! | the database's fetches to an object store, and its name there | [`uploads`], [`identity`] |
//! | a worker's side | [`worker`], [`attempt`] |
//! | what a worker is asked, without paths | [`order`] |
//! | the control plane: its listener, and its store in a file or in etcd | [`server`], [`store`], [`store_thread`], [`etcd`] |
//! | words on the wire, and who may say them | [`wire`], [`security`], [`secrets`], [`listener`] |
//! | what the logs say of a job, by its trace | [`journal`] |
//! | bits that flip on the way | [`seal`] |
//! | numbers for operators | [`counts`], [`metrics`], [`scrape`] |
//! | how a core runs in a process | [`actor`], [`link`] |
//! | how RocksDB's descriptions of jobs and results are read | [`text`] |
//!
//! Start reading at [`service`], then [`worker`].
// Clocks, files, threads and sockets are what this crate keeps away from the cores.
#![allow(clippy::disallowed_methods)]

pub mod actor;
#[cfg(feature = "worker")]
pub mod attempt;
pub mod blobs;
pub mod blocks;
pub mod compatibility;
pub mod counts;
pub mod database_copy;
pub mod delayed_store;
pub mod etcd;
pub mod external_db;
pub mod external_dbs;
pub mod identity;
pub mod journal;
pub mod link;
pub mod listener;
pub mod manifest;
pub mod metrics;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod objects;
pub mod order;
pub mod outputs;
pub mod parallel;
pub mod pressure;
pub mod scrape;
pub mod scratch;
pub mod seal;
pub mod secrets;
pub mod security;
pub mod server;
pub mod service;
pub mod settings;
pub mod staging;
pub mod store;
pub mod store_thread;
pub mod table;
pub mod text;
pub mod upload_index;
pub mod uploads;
pub mod view;
pub mod volume;
pub mod wire;
#[cfg(feature = "worker")]
pub mod worker;

pub use manxdb_compaction_edge as edge;
