//! Isolation as a client meets it: SQL text over real sessions that take turns in an order a
//! seed decides.
//!
//! | file | shows |
//! |---|---|
//! | `stage` | how sessions take turns: one runs at a time, and only a seed decides which |
//! | `random`, `histories` | random transactions at every level, judged by two checkers |
//! | `named` | each anomaly by its name, step by step |
//! | `passing` | which rows a locking statement leaves to others |
//! | `races` | uniqueness, foreign keys, AUTO_INCREMENT, retries, schema changes |
//! | `defects` | a commit path with planted defects, each of which one of the above must catch |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it counted"
)]

mod columns;
mod defects;
mod histories;
mod named;
mod passing;
mod races;
mod random;
pub mod stage;
