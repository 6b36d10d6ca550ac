//! Tests of the simulator.

mod all_faults;
mod channel;
mod datagrams;
mod determinism;
mod faults;
mod fifo;
mod hunting;
mod toys;
mod world;
