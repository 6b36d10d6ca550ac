//! `manxdb cluster`: the nodes of a commit path over several regions, as processes.
//!
//! | file | |
//! |---|---|
//! | [`file`] | what is written down about a cluster |
//! | [`up`] | starting all of its processes and watching them |
//! | [`children`] | one process a node, and how they end |
//! | [`node`] | one of these processes |
//! | [`status`] | asking them how they are, and stopping them |
//! | [`health`] | what it lacks, and what to do |
//! | [`rows`] | what its replicas hold |
//! | [`dast`] | how a node of DAST is put together |

mod children;
pub mod dast;
pub mod file;
mod health;
mod node;
mod rows;
mod status;
mod up;

use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli::ClusterCommand;
use crate::fault::Fault;

pub use file::ClusterFile;
pub use status::{ask, note};

/// Runs a command on clusters.
///
/// # Errors
/// What is in the way, in one line.
pub fn run(command: &ClusterCommand) -> Result<ExitCode, Fault> {
    match command {
        ClusterCommand::Up(args) => up::run(args),
        ClusterCommand::Node {
            cluster,
            node,
            parent,
        } => node::run(cluster, *node, *parent),
        ClusterCommand::Status { cluster, json } => status::run(cluster, *json),
        ClusterCommand::Down { cluster } => status::down(cluster),
    }
}

/// A stream that becomes readable when the process is told to end.
///
/// # Errors
/// The operating system's.
pub fn stop_signal() -> Result<UnixStream, Fault> {
    let io = |error| Fault::io("cannot watch signals", error);
    let (stop, raised) = UnixStream::pair().map_err(io)?;
    for signal in [SIGTERM, SIGINT] {
        let raised = raised.try_clone().map_err(io)?;
        signal_hook::low_level::pipe::register(signal, raised).map_err(io)?;
    }
    Ok(stop)
}
