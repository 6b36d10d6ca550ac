//! SQL's commit path over CURP in the simulator.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod bank;
mod faults;
mod machine;
mod mutants;
mod process;
mod rounds;
mod setting;
