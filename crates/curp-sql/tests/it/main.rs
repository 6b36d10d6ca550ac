//! SQL's commit path over CURP in the simulator.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bank;
mod faults;
mod machine;
mod mutants;
mod process;
mod rounds;
mod setting;
mod stored;
mod stored_crashes;
