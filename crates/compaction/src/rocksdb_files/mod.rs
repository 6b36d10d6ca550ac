//! Facts that a RocksDB database records about itself, read from its files without RocksDB.
//!
//! | question | answered in |
//! |---|---|
//! | the levels and files of each column family | [`manifest`] |
//! | the options file | [`settings`] |
//! | the properties and the layout of one sorted file | [`table`] |
//! | RocksDB's text form of a compaction job and its result | [`text`] |

pub(crate) mod manifest;
pub(crate) mod settings;
pub mod table;
pub mod text;
