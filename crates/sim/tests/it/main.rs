//! Tests of the simulator.

mod all_faults;
mod channel;
mod determinism;
mod faults;
mod fifo;
mod hunting;
mod toys;
mod world;
