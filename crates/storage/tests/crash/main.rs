//! What a killed process, a damaged file or a full disk may do to a store: nothing unseen.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;
mod disk_full;
mod history;
mod kill;
