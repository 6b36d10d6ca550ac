//! The command line of a node of a cluster.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use manxdb_workloads::tpcc::Scale;
use serde::{Deserialize, Serialize};

/// Where a cluster's file is when nobody says.
pub const DEFAULT_CLUSTER: &str = "./manxdb-cluster/cluster.toml";

/// Clusters: `manxdb-lab` has the commands on whole ones.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Run one node of a cluster: what `up` does for each, and a way to start a dead one again
    Node(ClusterNode),
}

/// Flags of `cluster node`.
#[derive(Debug, Args)]
pub struct ClusterNode {
    /// The cluster: its file, or the data directory that holds it
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
    pub cluster: PathBuf,
    /// The node's number, as `manxdb cluster status` shows it
    #[arg(long, value_name = "NUMBER")]
    pub node: u32,
    /// Where health, metrics and the page of a cluster over regions are served over HTTP [default: as the
    /// cluster file says, or nowhere]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address_with_port)]
    pub admin_listen: Option<SocketAddr>,
    /// Serve them over HTTPS alone, with a certificate that the node makes in its data directory, or with
    /// that of --tls-cert
    #[arg(long)]
    pub admin_tls: bool,
    /// Certificate chain of --admin-tls, PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        requires = "admin_tls"
    )]
    pub tls_cert: Option<PathBuf>,
    /// Its private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// End when this process does
    #[arg(long, hide = true, value_name = "PID")]
    pub parent: Option<i32>,
}

impl ClusterNode {
    /// Of a node that shows nothing over HTTP, unless the cluster file says so.
    #[must_use]
    pub fn new(cluster: PathBuf, node: u32) -> Self {
        Self {
            cluster,
            node,
            admin_listen: None,
            admin_tls: false,
            tls_cert: None,
            tls_key: None,
            parent: None,
        }
    }
}

/// An address to listen at.
///
/// # Errors
/// What would be one.
fn address_with_port(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "that is no IP address with a port, as 127.0.0.1:8500 is".to_owned())
}

/// Protocols that can order a cluster's transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolChoice {
    /// Local transactions never wait for cross-region ones (EuroSys 2021)
    Dast,
}

/// How large a warehouse of TPC-C is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TpccScale {
    /// 3 districts, 12 customers each, 40 items: for tests
    Tiny,
    /// The standard's: 10 districts, 3,000 customers each, 100,000 items, 30 MB
    Full,
}

impl TpccScale {
    /// In numbers.
    pub fn scale(self) -> Scale {
        match self {
            Self::Tiny => Scale::tiny(),
            Self::Full => Scale::full(),
        }
    }
}
