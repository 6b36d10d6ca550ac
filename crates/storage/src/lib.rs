//! Multi-version keys over an ordered key-value engine.
//!
//! Every committed write carries a [`Version`]; a read names the version it
//! reads at and sees the newest write at or below it. Two engines implement
//! [`Engine`]: RocksDB (durable) and an ordered map in memory (tests, simulator).
//! This crate knows nothing of tables, transactions or conflicts.
//!
//! Start reading at [`engine`].
#![warn(clippy::pedantic)]

pub mod engine;

pub use engine::{
    Cursor, Direction, Durability, Engine, Entry, KeyRange, StorageError, Version, Versioned,
    WriteBatch,
};
