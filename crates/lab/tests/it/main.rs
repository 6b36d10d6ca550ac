//! Tests of protocols in the simulator, and of experiments.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ahead_faults;
mod ahead_fence;
mod ahead_history;
mod baselines;
mod caas_many;
mod common;
mod dast_clocks;
mod dast_faults;
mod dast_floors;
mod dast_history;
mod dast_levels;
mod dast_order;
mod dast_scenarios;
mod dast_steps;
mod dast_tpcc;
mod dast_waits;
mod detock;
mod experiments;
mod rack_model;
mod tapir;
