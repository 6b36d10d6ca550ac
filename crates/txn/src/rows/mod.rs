//! The rows of one replica, for paths that order procedures and run them in memory.
//!
//! What a shard holds at the start is a [`Base`]: immutable, and shared by all replicas in a
//! process, so that hundreds of simulated replicas of a large database fit into memory.
//! [`Rows`] lays over it what one replica changed, and keeps a digest of that. [`PieceRows`] is the
//! [`RowView`](crate::procedure::RowView) of one piece on it; [`run_piece`] runs one,
//! and [`run_serially`] whole calls, for tests.

mod base;
mod key;
mod overlay;
mod serial;
mod view;

pub use self::base::{Base, NoRows};
pub use self::overlay::Rows;
pub use self::serial::run_serially;
pub use self::view::{PieceRows, run_piece};
