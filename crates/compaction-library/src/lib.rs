//! Compactions by a pool for every program that uses RocksDB 11.8: `libmanxdb_compaction.so`.
//!
//! RocksDB hands compactions to an object of its class `CompactionService`, which a program puts
//! into its options. In RocksDB's C interface that object is a `rocksdb_compactionservice_t`: a class
//! of `c.cc` that has `CompactionService` as its first and only base and calls functions of C. So a
//! pointer to one is a pointer to the other, for C, C++, Go and Java alike, and one symbol is all that
//! this library offers (`include/manxdb_compaction.h`; a second one, by a name that Java prescribes,
//! is the same with the options in hand). The object belongs to whoever gets it. It serves all
//! databases that are opened with it, and finds out what there is to know of each from its files:
//! which compactions a worker would do bit for bit as the program does, and what the outputs may be.
//! All others the program does itself, with a reason that is logged and counted
//! (`manxdb_compaction::external`).
//!
//! No RocksDB is inside: with a second copy in one process an object of the one would be used by the
//! code of the other. Nor is one linked by its name, because it has many: Debian's has a number
//! behind it, Java's is unpacked to a new one each time, Kvrocks has it inside of its own program.
//! The thirteen functions that the hook needs are looked up when a service is made: among what the
//! whole program sees, else in each library that is loaded, Java's with its private symbols too
//! ([`loaded`]). A program that was linked with RocksDB's archive must export them
//! (`-Wl,--export-dynamic`, with `--whole-archive` around the archive, of which `c.cc` would else be
//! left out). Panics end at the border: RocksDB is told to compact itself.
//!
//! | question | answered in |
//! |---|---|
//! | the symbol | [`c`], [`java`] |
//! | what a program may say | [`configuration`] |
//! | where RocksDB is | [`loaded`] |
//! | what operators see | [`log`], [`served`] |
// Files, threads and sockets: this crate is where a program meets the service.
#![allow(clippy::disallowed_methods)]

mod c;
mod configuration;
mod java;
mod loaded;
mod log;
mod served;
