//! The workloads ManxDB is measured and checked with, as pure code.
//!
//! A workload says what tables there are, what rows they hold at a scale, which requests
//! arrive and what each request sends. It does not send them: there is no socket, clock or
//! thread in here, and everything random comes from a seed, so that a driver over the
//! MySQL protocol, a simulator and a test all ask the very same questions.
//!
//! Two kinds:
//!
//! - A conversation: later statements depend on the rows of the earlier ones. A driver asks for
//!   the next [`Statement`] with the [`Answer`] to the one before, until there is none.
//!   [`lobsters`] is one.
//! - One-shot transactions: a generator gives [`Request`]s for a client of a shard in a
//!   [`Topology`] of regions, and a [`Procedure`](manxdb_txn::procedure::Procedure) runs them in
//!   pieces where their rows live.
//!
//! | workload | what for |
//! |---|---|
//! | [`append`] | lists whose reads tell the order of everything: for `manxdb-checker` |
//! | [`tpca`] | three increments on keys of a Zipf distribution |
//! | [`tpcc`] | the five transactions of a wholesaler, one warehouse a shard |
//! | [`payment`] | one of them alone, with a share of cross-region ones to be chosen |
//!
//! A [`Workload`] is one of these by name, [`Calls`] what all its clients ask.
//!
//! Start reading at [`lobsters`] for the one kind, at [`tpca`] for the other.
#![forbid(unsafe_code)]

pub mod append;
mod codec;
pub mod lobsters;
pub mod payment;
mod request;
mod statement;
mod topology;
pub mod tpca;
pub mod tpcc;
mod workload;
mod zipf;

pub use manxdb_core::Random;
pub use request::Request;
pub use statement::{Answer, Statement, Value};
pub use topology::{Partition, Reach, RegionId, Topology};
pub use workload::{Calls, Workload, procedures};
pub use zipf::Zipf;
