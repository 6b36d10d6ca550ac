//! Tests of the simulator.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod all_faults;
mod channel;
mod datagrams;
mod determinism;
mod faults;
mod fifo;
mod hunting;
mod toys;
mod world;
