//! Experiments: clusters of protocol cores under workloads, measured and checked.
//!
//! | question | answered in |
//! |---|---|
//! | how a DAST cluster is put into the simulator | [`dast`] |
//! | who asks, and what is kept of the answers | [`load`] |
//!
//! Start reading at [`load`].
#![forbid(unsafe_code)]

pub mod dast;
pub mod load;
