//! The protocol of compaction as a service: who compacts what, without I/O.
//!
//! Databases hand compactions to a control plane, which leases them to workers. Anything may
//! fail: a worker that stops answering, a control plane that restarts, a result that is wrong.
//! Two promises hold all the same. A database never waits for ever: each job ends with a result
//! or with the word to compact locally. And no result is installed but that of the attempt which
//! the job's own database was told of: attempts have numbers, tokens and directories of their
//! own, and what comes late is refused (reference: CaaS-LSM, whose control plane kept everything
//! in memory and counted its tasks from 0 again after a restart).
//!
//! Three roles, each a core ([`manxdb_core::Core`]) without sockets, files, clocks or threads:
//!
//! | role | core | asks it from outside |
//! |---|---|---|
//! | the control plane | [`Control`], inside of a [`Contender`] | operators: what is going on |
//! | a worker | [`Worker`] | its slots: give me a job; this is how it ended |
//! | a database | [`Client`] | RocksDB's compaction threads: compact this; it is installed |
//!
//! Messages may be lost, repeated and reordered. Databases and workers say again and again what
//! they wait for and what they run ([`message`]), and the control plane mends what differs, so
//! nothing depends on a connection that holds.
//!
//! | question | answered in |
//! |---|---|
//! | what a job is, what identifies an attempt | [`job`] |
//! | who says what to whom | [`message`] |
//! | what is durable | [`record`] |
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
