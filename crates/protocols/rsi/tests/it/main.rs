//! The tests of transactions over one-sided memory, one program: each module says what it tests.

#![allow(clippy::unwrap_used, clippy::panic)]

mod collect;
mod common;
mod crash;
mod crash_matrix;
mod drains;
mod entering;
mod free_extents;
mod history;
mod isolation;
mod keys;
mod leases;
mod model;
mod older;
mod places;
mod processes;
mod replicas;
mod rows;
mod simulated_rack;
mod tree;
