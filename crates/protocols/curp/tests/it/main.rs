//! Tests of the replication core, alone and in the simulator.

mod common;
mod faults;
mod mutants;
mod rounds;
mod steps;
mod table;
mod wire;
