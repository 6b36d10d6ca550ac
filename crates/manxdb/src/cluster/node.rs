//! What every node of a cluster has: a data directory and an address.

use std::net::TcpListener;
use std::path::Path;

use super::file::Node;
use crate::fault::Fault;
use crate::process;

/// The note by which a node says what it does.
pub const STATE: &str = "state";

/// The data directory of a node, beside the cluster file.
pub fn directory_of(cluster_file: &Path, number: u32) -> std::path::PathBuf {
    let directory = cluster_file.parent().unwrap_or(Path::new("."));
    directory.join(format!("node-{number}"))
}

/// Listens at the address of a node.
///
/// # Errors
/// The address is taken or none of this machine's.
pub fn listen(node: &Node) -> Result<TcpListener, Fault> {
    process::listen(node.address, "nodes of the cluster", "base-port")
}

/// A fault that says what another layer said.
pub fn other(error: impl std::fmt::Display) -> Fault {
    Fault::Other(error.to_string())
}
