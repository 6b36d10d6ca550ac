//! What every node of a cluster has: a data directory and an address.

use std::net::TcpListener;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use manxdb_core::channel::Life;
use manxdb_net::DataDirectory;

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

/// Begins the next life of a node. One that lost its directory must not be taken for the process before,
/// which had what was acknowledged, nor for one that begins with its cluster: so lives are numbered from
/// the clock's seconds on, unless the directory was made for a first life
/// ([`DataDirectory::expect_first_life`]).
///
/// # Errors
/// The directory cannot be written, or has a counter that is none.
pub fn begin_life(data: &DataDirectory) -> Result<Life, Fault> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // Life 1 is that of a node that begins with its cluster.
    let seconds = since.map_or(2, |since| since.as_secs());
    data.begin_life_from(seconds.max(2)).map_err(other)
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
