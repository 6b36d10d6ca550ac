//! Tests of the program manxdb-lab.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command_line;
mod fillrandom;
mod lab;
mod rack;
mod simulation;
mod support;
