//! The command lines of the processes that replicate Redis's keys.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::cluster::DEFAULT_CLUSTER;

/// Below the help of each.
pub const CURP_HELP: &str = "\
The cluster file lists every process with its address; `manxdb cluster up curp` writes one and starts\n\
them all, and this command starts one of them, on any machine that has the file; its data directory is\n\
node-NUMBER beside the file. Durability: as the file says (curp.durability). With memory, what is\n\
acknowledged is in the memory of f + 1 processes, and servers write it to disk behind that; with fsync it\n\
is on the disks of f + 1 servers first. A cluster all of whose processes have ended goes on when they\n\
are started again. There is no authentication: keep the ports within a network that you trust. SIGTERM\n\
and SIGINT end the process.";

/// Flags of one node.
#[derive(Debug, Args)]
pub struct CurpNodeArgs {
    /// The cluster: its file, or the data directory that holds it
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
    pub cluster: PathBuf,
    /// The node's number in the cluster file [default: the first of this role]
    #[arg(long, value_name = "NUMBER")]
    pub node: Option<u32>,
}

/// Flags of a proxy.
#[derive(Debug, Args)]
pub struct CurpProxyArgs {
    /// The cluster: its file, or the data directory that holds it
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
    pub cluster: PathBuf,
    /// Where Redis clients connect
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:6379")]
    pub listen: SocketAddr,
    /// Where health and metrics are served over HTTP: /healthz, /metrics [default: nowhere]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub admin_listen: Option<SocketAddr>,
    /// Be this proxy of the cluster file instead, which says where clients connect
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["listen", "admin_listen"])]
    pub node: Option<u32>,
}
