//! The flags of `serve` that say where rows are.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;

/// Which commit path a server is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommitPathChoice {
    /// Rows in the data directory, this server's alone
    Local,
    /// Rows in the memory servers behind --memory, together with other servers
    Rsi,
    /// Rows replicated by the cluster of --curp-cluster: one server at a time serves, another takes
    /// over when it dies
    Curp,
}

impl std::fmt::Display for CommitPathChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Rsi => "rsi",
            Self::Curp => "curp",
        })
    }
}

/// Settings of rows, for the file too.
#[derive(Debug, Clone, Default, Args)]
pub struct RowsArgs {
    /// Where transactions are committed: `rsi` needs --memory, `curp` --curp-cluster [default: local]
    #[arg(long, env = "MANXDB_COMMIT_PATH", value_enum)]
    pub commit_path: Option<CommitPathChoice>,
    /// Directory of the memory servers (manxdb memory --directory) that hold the rows; or, on other
    /// machines (manxdb memory --listen), tcp:// and the addresses of all of them in the order of
    /// their numbers: tcp://one:7000,two:7000
    #[arg(long, env = "MANXDB_MEMORY", value_name = "DIR|ADDRESSES")]
    pub memory: Option<PathBuf>,
    /// Transactions that this server does in memory servers at a time; each takes one of their
    /// places [default: 8]
    #[arg(long, env = "MANXDB_MEMORY_CLIENTS", value_name = "NUMBER")]
    pub memory_clients: Option<u16>,
    /// How long a transaction keeps for itself what it sees in memory servers, so that others get no
    /// room of rows that are deleted meanwhile; then it may be told to begin again [default: 600]
    #[arg(long, env = "MANXDB_MEMORY_SNAPSHOT_SECONDS", value_name = "SECONDS")]
    pub memory_snapshot_seconds: Option<u32>,
    /// With addresses: the provider of libfabric, as memory servers have it [default: tcp;ofi_rxm]
    #[arg(long, env = "MANXDB_MEMORY_PROVIDER", value_name = "NAME")]
    pub memory_provider: Option<String>,
    /// With addresses: file with the token of the memory servers [default: they have none]
    #[arg(long, env = "MANXDB_MEMORY_TOKEN_FILE", value_name = "FILE")]
    pub memory_token_file: Option<PathBuf>,
    /// File of the cluster that replicates the rows (manxdb cluster up curp --sql), or its directory
    #[arg(long, env = "MANXDB_CURP_CLUSTER", value_name = "FILE")]
    pub curp_cluster: Option<PathBuf>,
    /// The number of this server in that file
    #[arg(long, env = "MANXDB_CURP_NODE", value_name = "NUMBER")]
    pub curp_node: Option<u32>,
}
