//! Compaction as a service for RocksDB.
//!
//! | question | answered in |
//! |---|---|
//! | how RocksDB hands out a compaction, and how a worker runs it | [`edge`] |
//! | how its descriptions of jobs and results are read | [`text`] |
//! | whether a worker's outputs may be installed | [`outputs`] |
//!
//! Start reading at [`edge`].

pub mod edge;
pub mod outputs;
pub mod text;
