//! Compaction as a service for RocksDB.
//!
//! | question | answered in |
//! |---|---|
//! | how RocksDB hands out a compaction, and how a worker runs it | [`edge`] |
//!
//! Start reading at [`edge`].

pub mod edge;
