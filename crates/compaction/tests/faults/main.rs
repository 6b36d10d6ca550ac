//! The compaction service in real processes, and what becomes of it when they are killed, frozen,
//! cut off or lie: the table of docs/compaction-faults.md, row by row.
//!
//! Each test has a control plane, workers and databases as processes of their own (this program
//! again, told what to be), with proxies between them that can hold and cut connections. The
//! databases write all the time and keep, outside of themselves, how far writes were acknowledged.
//! At the end of each test every database is closed, opened without the service and judged
//! ([`judge`]): all that was acknowledged is there, and nothing else; every checksum is right; no
//! file is left over; no job was lost.
//!
//! `MANXDB_FAULTS_SECONDS=1800 cargo test -p manxdb-compaction --test faults soak` runs random
//! faults for half an hour; `MANXDB_FAULTS_SEED` draws others.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods
)]

mod answers;
mod bad_worker;
mod cluster;
mod controls;
#[path = "../common/damage.rs"]
mod damage;
mod database;
mod databases;
mod disks;
mod etcd_store;
mod judge;
mod load;
mod network;
mod planes;
mod process;
mod proxy;
mod roles;
mod security;
mod settings;
mod soak;
mod workers;

/// Not a test: what the processes of the tests run.
#[test]
fn process() {
    roles::play();
}
