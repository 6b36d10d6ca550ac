//! Experiments: clusters of protocol cores under workloads, measured and checked.
//!
//! | question | answered in |
//! |---|---|
//! | how a DAST cluster is put into the simulator | [`dast`] |
//! | what list-append clients ask, and the history they saw | [`append`] |
//! | what TPC-C clients ask, and the rows they begin with | [`tpcc`] |
//! | who asks, and what is kept of the answers | [`load`] |
//!
//! Start reading at [`load`].
#![forbid(unsafe_code)]

pub mod append;
pub mod dast;
pub mod load;
pub mod tpcc;
