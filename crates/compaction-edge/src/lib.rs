//! Where a database and the compaction service meet.
//!
//! A crate of its own, so that a database needs to know nothing of networks and runtimes, and the
//! service nothing of databases. No threads, no files, no sockets. Without its feature `rocksdb` no
//! RocksDB is linked: a library inside of another program uses the one that is there.
//!
//! | question | answered in |
//! |---|---|
//! | how RocksDB hands out a compaction | [`hook`] |
//! | how a database is given a service, and how a worker runs a job | `rocks` |
//! | what RocksDB says of its own compactions, and of damage that they meet | `listener` |
//! | what kind of database it is, for whoever compacts it | [`profile`] |
//! | what of a database's tables and prefixes another process can do the same | [`shape`] |
//! | what a database and a service say to each other | [`callbacks`] |
//! | how files are read through by RocksDB before a database takes them | [`tables`] |

pub mod callbacks;
pub mod hook;
#[cfg(feature = "rocksdb")]
pub mod listener;
pub mod profile;
#[cfg(feature = "rocksdb")]
pub mod rocks;
pub mod shape;
pub mod tables;

#[cfg(feature = "rocksdb")]
pub use callbacks::NoCallbacks;
pub use callbacks::{
    DatabaseCallbacks, DatabaseService, Inputs, JobFiles, Level0, OpenDatabase, Pool, STAGING,
};
pub use hook::{Hooks, JobInfo, RawService, Service, Waited, raw_service};
#[cfg(feature = "rocksdb")]
pub use listener::{CORRUPTION, CompactionListener, set_background_jobs, set_compaction_listener};
#[cfg(feature = "rocksdb")]
pub use profile::Prepared;
pub use profile::{CompactionProfile, Plain, Shaped};
#[cfg(feature = "rocksdb")]
pub use rocks::{Cancel, inputs_among, linked_tables, open_and_compact, set_service};
pub use shape::Shape;
pub use tables::TableFunctions;
