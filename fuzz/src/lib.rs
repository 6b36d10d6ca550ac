//! The places where bytes from outside become structure.
//!
//! | target | bytes of | must hold |
//! |---|---|---|
//! | [`packets`] | a client's packets | taken or refused |
//! | [`sql_text`] | a statement | parsed or refused |
//! | [`template`] | a statement | its template has the same tree, constants apart |
//! | [`records`] | a stored row | read, and then written and read again, or called damaged |
//! | [`resp`] | a Redis client's commands, run | refused or answered, and every row that was written is read |
//! | [`witness`] | datagrams to a witness | counted, and answered or dropped; its table stays whole |
//! | [`log`] | files of the commit log | an error, or all batches up to some point |
//!
//! Each function here takes any bytes and must return, whatever they are. `cargo fuzz` drives
//! them with coverage (`targets/`), and `tests/short.rs` drives them in every `cargo test` with
//! a seeded generator, because a nightly compiler is not everywhere. Both begin with the same
//! good inputs ([`samples`]).
#![forbid(unsafe_code)]
#![allow(clippy::panic, reason = "a target tells what it found by panicking")]

mod inputs;
mod log;
mod packets;
mod records;
mod resp;
mod samples;
mod text;
mod witness;

pub use inputs::{Script, Source, mutated};
pub use log::log;
pub use packets::packets;
pub use records::{records, sample_record};
pub use resp::resp;
pub use samples::{samples, write_samples};
pub use text::{sql_text, template};
pub use witness::witness;
