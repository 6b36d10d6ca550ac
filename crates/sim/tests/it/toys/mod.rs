//! Small cores to try the simulator with.
#![allow(dead_code, reason = "each test file uses some of them")]

pub mod chatter;
pub mod counter;
pub mod ping;
pub mod ring;
pub mod seen;
pub mod words;
