//! The flags of `serve` for Redis clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;

/// What Redis keys are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RedisEngineChoice {
    /// Nothing: they end with the process
    Memory,
    /// The store of the data directory, beside the rows of SQL
    Rocksdb,
}

impl std::fmt::Display for RedisEngineChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Rocksdb => "rocksdb",
        })
    }
}

/// Settings of the Redis server, for the file too.
#[derive(Debug, Clone, Default, Args)]
pub struct RedisArgs {
    /// Where Redis clients connect [default: nowhere]
    #[arg(long, env = "MANXDB_REDIS_LISTEN", value_name = "ADDRESS:PORT")]
    pub redis_listen: Option<SocketAddr>,
    /// What Redis keys are kept in [default: rocksdb]
    #[arg(long, env = "MANXDB_REDIS_ENGINE", value_enum)]
    pub redis_engine: Option<RedisEngineChoice>,
    /// Memory for Redis keys and values, in MiB, at least 16: values beyond it are in the store only until
    /// they are used; names of keys always take memory [default: 1024]
    #[arg(long, env = "MANXDB_REDIS_MEMORY_MB", value_name = "MIB")]
    pub redis_memory_mb: Option<usize>,
    /// Password of Redis clients (user `default`); needed unless --insecure
    #[arg(
        long,
        env = "MANXDB_REDIS_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true
    )]
    pub redis_password: Option<String>,
    /// File of Redis users, read at the start and by ACL LOAD, written by ACL SAVE [default: none]
    #[arg(long, env = "MANXDB_REDIS_ACL_FILE", value_name = "FILE")]
    pub redis_acl_file: Option<PathBuf>,
}
