//! `manxdb cluster node`: a node of a commit path over several regions, or of a cluster that
//! replicates Redis's keys, as a process.
//!
//! | file | |
//! |---|---|
//! | [`file`] | what is written down about a cluster |
//! | [`node`] | one of its processes |
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
//! | [`roles`] | the commands that start one of those by its role |
//!
//! `manxdb-lab` starts all of a cluster's nodes, watches and stops them.

pub mod answers;
mod coordinator;
pub mod curp;
pub mod curp_status;
pub mod dast;
pub mod dast_status;
#[cfg(test)]
mod example;
pub mod file;
pub mod geo;
pub mod node;
mod proxy_admin;
pub mod replication;
pub mod roles;
mod rows;

use std::process::ExitCode;

use crate::cli::ClusterCommand;
use crate::fault::Fault;

pub use file::ClusterFile;

/// Runs a node of a cluster.
///
/// # Errors
/// What is in the way, in one line.
pub fn run(command: &ClusterCommand) -> Result<ExitCode, Fault> {
    let ClusterCommand::Node(args) = command;
    node::run(args)
}
