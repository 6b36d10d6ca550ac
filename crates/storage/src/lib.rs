//! Multi-version keys over an ordered key-value engine.
//!
//! Every committed write carries a [`Version`]; a read names the version it
//! reads at and sees the newest write at or below it. Two engines implement
//! [`Engine`]: RocksDB (durable) and an ordered map in memory (tests, simulator).
//! This crate knows nothing of tables, transactions or conflicts.
//!
//! Start reading at [`engine`], then [`physical`] (the bytes of a record), [`rocks`] and
//! [`collection`] (which old versions may go), [`dead_rows`] (what goes beside them).

pub mod backup;
pub mod closing;
pub mod collection;
pub mod dead_rows;
pub mod engine;
mod error;
mod files;
pub mod format;
pub mod log;
pub mod memory;
mod memtable;
mod model;
pub mod physical;
pub mod rocks;
mod search;
mod sorted;

pub use dead_rows::{DeadRows, DroppedPrefix, ExpiredRows, ExpiryOf};
pub use engine::{Appended, Cursor, CursorEntry, Engine};
pub use error::StorageError;
pub use memory::MemoryEngine;
pub use model::{Direction, Durability, KeyRange, Rows, Version, Versioned, WriteBatch};
pub use rocks::{DamagedFile, Options, RocksEngine, Versions};
pub use search::{FileSearch, Judge, KeyPrefixes, SearchedFiles, StoredVersion};
pub use sorted::{SortedWrites, to_batch};
