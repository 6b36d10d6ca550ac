//! What a killed process, a damaged file or a full disk may do to a store: nothing unseen.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod contained;
mod damage;
mod disk_full;
mod history;
mod kill;
