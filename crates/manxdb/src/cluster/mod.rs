//! Nodes of a commit path over several regions, or of a cluster that replicates Redis's keys, and how each
//! is put together. [`crate::roles`] runs one as a process.
//!
//! | file | |
//! |---|---|
//! | [`file`] | what is written down about a cluster |
//! | [`node`] | what every node has |
//! | [`rows`] | what its replicas hold |
//! | [`dast`] | how a node of DAST is put together |
//! | [`curp`] | how a node that replicates Redis's keys is put together |
//! | `coordinator` | the node that decides who does what: alone, or as one of several over etcd |
//! | [`geo`] | what such a node measures, and the page and metrics of its admin listener |
//! | [`dast_status`] | what a cluster over regions lacks |
//! | [`answers`] | what nodes say when they are asked |
//! | [`curp_status`] | what a cluster that replicates is like, and what it lacks |
//! | [`replication`] | that, as a page and as metrics of an admin listener |
//! | `proxy_admin` | what its admin listener shows of a proxy |
//!
//! `manxdb-lab` starts all of a cluster's nodes, watches and stops them.

pub mod answers;
pub(crate) mod coordinator;
pub mod curp;
pub mod curp_status;
pub mod dast;
pub mod dast_status;
#[cfg(test)]
mod example;
pub mod file;
pub mod geo;
pub mod node;
pub(crate) mod proxy_admin;
pub mod replication;
mod rows;

pub use file::ClusterFile;
