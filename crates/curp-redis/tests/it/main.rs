//! Tests of Redis's keyspace as a replicated machine.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod client;
mod machine;
mod moving;
mod scripts;
