//! The one transaction model of ManxDB, and the commit path `local`.
//!
//! A session reads at a [`Snapshot`], buffers its writes in a
//! [`Transaction`], and commits them as one [`Intent`]: what it read, what it
//! writes, under which isolation. A [`CommitPath`] decides by validating the
//! reads and applying the writes atomically. Nothing here knows SQL, sockets,
//! clocks or threads; waiting is done by the [`Waiter`] a session brings along.
//!
//! | question | answered in |
//! |---|---|
//! | reads, intents, snapshots and replies | `model`; errors: `error` |
//! | how a path is asked to commit | [`path`] |
//! | what a session may do before that | [`transaction`] |
//! | one-shot transactions sent to the data | [`procedure`]; all of one in a transaction: [`run_procedure`] |
//! | a replica's rows in memory, to run pieces on | [`rows`] |
//! | large sets of keys in little memory | [`keys`] |
//! | who waits for whom on a row | [`locks`] |
//! | how one node orders and stores commits | [`local`] |
//!
//! Validation at commit decides alone whether a history is allowed; row locks only
//! make sessions wait where they would otherwise conflict.
//!
//! Start reading at [`path`], then [`transaction`], then [`local`].
#![forbid(unsafe_code)]

pub mod confirm;
mod error;
pub mod keys;
pub mod local;
pub mod locks;
mod model;
#[cfg(feature = "mutants")]
pub mod mutants;
pub mod path;
pub mod procedure;
mod ranges;
pub mod rows;
pub mod run_procedure;
pub mod testing;
pub mod transaction;
pub mod waiter;

pub use confirm::Confirm;
pub use error::TxnError;
pub use local::{AppendedRows, LocalOptions, LocalPath, LocalStatistics};
pub use locks::LockTable;
pub use model::{Intent, IsolationLevel, Page, ReadSet, Reply, Snapshot, TxnId};
pub use path::{CommitObserver, CommitPath, OrderedWrite, Others};
pub use transaction::{ReadMode, Transaction, UsedPart};
pub use waiter::Waiter;
