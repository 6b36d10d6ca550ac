//! Tests of the replication core, alone and in the simulator.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail like tests"
)]

mod common;
mod disks;
mod every_order;
mod faults;
mod following;
mod groups;
mod joining;
mod mutants;
mod rounds;
mod steps;
mod stores;
mod table;
mod wire;
