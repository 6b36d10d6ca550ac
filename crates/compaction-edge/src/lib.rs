//! Where a database and the compaction service meet.
//!
//! A crate of its own, so that a database needs to know nothing of networks and runtimes, and the
//! service nothing of databases. No threads, no files, no sockets.
//!
//! | question | answered in |
//! |---|---|
//! | how RocksDB hands out a compaction, and how a worker runs it | [`rocks`] |
//! | what kind of database it is, for whoever compacts it | [`flavour`] |
//! | what a database and a service say to each other | [`house`] |

pub mod flavour;
pub mod house;
pub mod rocks;

pub use flavour::{Flavour, Plain, Prepared};
pub use house::{House, Inputs, Level0, Opened, Pool, Resident, STAGING, Unasked};
pub use rocks::{Cancel, JobInfo, Service, Waited, open_and_compact, set_service};
