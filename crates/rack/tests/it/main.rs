//! The tests of transactions inside a rack, one program: each module says what it tests.

#![allow(clippy::unwrap_used, clippy::panic)]

mod archiver;
mod common;
mod isolation;
mod losses;
mod memory;
#[cfg(feature = "libfabric")]
mod remote;
mod tidy;
mod tpcc;
