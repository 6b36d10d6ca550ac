//! The interface between a database and the compaction service.
//!
//! It is a crate of its own so that a database links neither a network nor an async runtime, and
//! the service knows nothing about the database's format. It owns no threads, files or sockets.
//! Without the feature `rocksdb` it links no RocksDB: a library inside another program uses the
//! RocksDB that the program has loaded.
//!
//! | question | answered in |
//! |---|---|
//! | how RocksDB hands out a compaction | [`hook`] |
//! | how a database is given a service, and how a worker runs a job | `rocks` |
//! | local compactions and the damage that they find | `listener` |
//! | what a database and its workers must have in common | [`profile`] |
//! | tables and prefixes that another process can write identically | [`shape`] |
//! | the traits between a database and a service | [`callbacks`] |
//! | how RocksDB reads all blocks of files before they are installed | [`tables`] |

pub mod callbacks;
pub mod hook;
pub mod inputs;
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
    DatabaseCallbacks, DatabaseService, JobFiles, Level0, OpenDatabase, Pool, STAGING,
};
pub use hook::{Hooks, JobInfo, RawService, Service, Waited, raw_service};
pub use inputs::Inputs;
#[cfg(feature = "rocksdb")]
pub use listener::{
    CORRUPTION, CompactionListener, set_background_jobs, set_compaction_listener,
    set_manifest_size, stop_manual_compactions,
};
#[cfg(feature = "rocksdb")]
pub use profile::Prepared;
pub use profile::{CompactionProfile, Plain, Shaped};
#[cfg(feature = "rocksdb")]
pub use rocks::{Cancel, inputs_among, linked_tables, open_and_compact, set_service};
pub use shape::Shape;
pub use tables::TableFunctions;
