//! What every node of a cluster has: a data directory and an address.

use std::net::TcpListener;
use std::path::Path;

use super::file::Node;
use crate::fault::Fault;

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
    TcpListener::bind(node.address).map_err(|error| Fault::Listen {
        address: node.address,
        listener: "nodes of the cluster",
        flag: "base-port",
        reason: match error.kind() {
            std::io::ErrorKind::AddrInUse => "the port is in use".to_owned(),
            _ => error.to_string(),
        },
    })
}

/// A fault that says what another layer said.
pub fn other(error: impl std::fmt::Display) -> Fault {
    Fault::Other(error.to_string())
}
