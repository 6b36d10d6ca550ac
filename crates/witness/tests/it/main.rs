//! All carriers against one suite, over real sockets.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and says why it is skipped"
)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "numbers of tests are small"
)]

mod bench;
mod conformance;
mod differential;
mod freeze;
mod hostile;
mod namespace;
mod objects;
mod outlives;
mod refusals;
