//! The one transaction model of ManxDB, and the commit path `local`.
//!
//! A session reads at a [`Snapshot`], buffers its writes in a
//! [`Transaction`], and commits them as one [`Intent`]: what it read, what it
//! writes, under which isolation. A [`CommitPath`] decides by validating the
//! reads and applying the writes atomically. Nothing here knows SQL, sockets,
//! clocks or threads; waiting is done by the [`Waiter`] a session brings along.
//!
//! Start reading at [`path`], then [`transaction`], then [`local`].
#![warn(clippy::pedantic)]
#![forbid(unsafe_code)]

pub mod path;
pub mod transaction;

pub use path::{CommitPath, Intent, IsolationLevel, ReadSet, Reply, Snapshot, TxnError, TxnId};
pub use transaction::{ReadMode, Transaction, Waiter};
