//! Tests of workloads.

mod append;
mod common;
mod tpca;
mod tpcc;
