//! The command lines of the processes that replicate Redis's keys.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::cluster::DEFAULT_CLUSTER;
use super::etcd::EtcdArgs;

/// What holds for each of them.
macro_rules! of_each {
    () => {
        "\
The cluster file lists every process with its address; `manxdb cluster up curp` writes one and starts\n\
them all, and this command starts one of them, on any machine that has the file; its data directory is\n\
node-NUMBER beside the file. Durability: as the file says (curp.durability). With memory, what is\n\
acknowledged is in the memory of f + 1 processes, and servers write it to disk behind that; with fsync it\n\
is on the disks of f + 1 servers first. A cluster all of whose processes have ended goes on when they\n\
are started again. There is no authentication: keep the ports within a network that you trust. SIGTERM\n\
and SIGINT end the process."
    };
}

/// Below the help of each.
pub const CURP_HELP: &str = of_each!();

/// Below the help of a coordinator.
pub const COORDINATOR_HELP: &str = concat!(
    of_each!(),
    "\n\n\
With --etcd, its decisions are in etcd instead of its directory, and several coordinators share them: one\n\
of them leads, and another one takes over when it ends, or --etcd-lease seconds after it was last heard of.\n\
Until then nobody is replaced, and reads end with the master's lease. Name the addresses of the others in\n\
the file (curp.other_coordinators), and give each process its own with --listen. What a coordinator has\n\
decided into a file does not go to etcd: begin the cluster with --etcd."
);

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

/// Flags of a coordinator.
#[derive(Debug, Args)]
pub struct CoordinatorArgs {
    /// Which node it is.
    #[command(flatten)]
    pub node: CurpNodeArgs,
    /// Where else its state may be.
    #[command(flatten)]
    pub etcd: EtcdArgs,
    /// What its keys in etcd begin with; the cluster's id follows
    #[arg(long, value_name = "PREFIX", default_value = "/manxdb/curp/")]
    pub etcd_prefix: String,
    /// Where it listens while it leads: one of the addresses that the cluster file has for coordinators
    /// [default: that of node 0]
    #[arg(long, value_name = "ADDRESS:PORT", requires = "etcd")]
    pub listen: Option<SocketAddr>,
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
    /// Answer MOVED for keys that are in another cluster, to clients that know what that is, instead of asking
    /// that cluster
    #[arg(long)]
    pub no_follow: bool,
    /// Be this proxy of the cluster file instead, which says where clients connect
    #[arg(
        long,
        value_name = "NUMBER",
        conflicts_with_all = ["listen", "admin_listen", "no_follow"]
    )]
    pub node: Option<u32>,
}
