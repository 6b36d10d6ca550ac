//! `manxdb cluster node`: a node of a commit path over several regions, as a process.
//!
//! | file | |
//! |---|---|
//! | [`file`] | what is written down about a cluster |
//! | [`node`] | one of its processes |
//! | [`rows`] | what its replicas hold |
//! | [`dast`] | how a node of DAST is put together |
//!
//! `manxdb-lab` starts all of a cluster's nodes, watches and stops them.

pub mod dast;
pub mod file;
pub mod node;
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
