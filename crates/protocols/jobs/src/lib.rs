//! The protocol of compaction as a service, without I/O.
//!
//! Databases hand compactions to a control plane, which leases them to workers. Any process may
//! fail: a worker stops answering, a control plane restarts, a result is wrong. Two guarantees hold
//! in all cases. Each job ends, with a result or with the order to compact locally, so a database
//! never waits for ever. And a database installs only the result of the attempt that its control
//! plane named: attempts have numbers, tokens and directories of their own, and late results are
//! refused (CaaS-LSM, by contrast, keeps everything in memory and counts its tasks from 0 again
//! after a restart).
//!
//! Three roles, each a core ([`manxdb_core::Core`]) without sockets, files, clocks or threads:
//!
//! | role | core | requests from outside |
//! |---|---|---|
//! | the control plane | [`Control`], inside a [`Contender`] | operators: the state of the pool |
//! | a worker | [`Worker`] | its slots: a job, please; this attempt ended |
//! | a database | [`Client`] | RocksDB's compaction threads: compact this; it is installed |
//!
//! Messages may be lost, repeated and reordered. Databases and workers repeat which jobs they wait
//! for and which attempts they run ([`message`]), and the control plane corrects differences, so no
//! state depends on a connection.
//!
//! | question | answered in |
//! |---|---|
//! | jobs, and the identity of attempts | [`job`] |
//! | the messages | [`message`] |
//! | durable records | [`record`] |
//! | which job next, on which worker, by four policies | [`control::choice`] |
//! | leases, attempts, refusals | [`control`] |
//! | which of several control planes leads, and what the others do | [`election`], [`contender`] |
//!
//! Start reading at [`job`], then [`message`].
#![forbid(unsafe_code)]

pub mod client;
pub mod contender;
pub mod control;
pub mod election;
pub mod job;
pub mod message;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod node;
pub mod options;
pub mod record;
pub mod worker;

pub use client::{Answer, Ask, Client};
pub use contender::Contender;
pub use control::Control;
pub use election::{Lease, Term};
pub use job::{AttemptId, DatabaseId, Facts, Fingerprint, JobId, SessionId, Spec, WorkerId, Zone};
pub use message::Message;
pub use node::Node;
pub use options::{Options, Policy};
pub use record::Record;
pub use worker::{Given, SlotAsk, Worker};
