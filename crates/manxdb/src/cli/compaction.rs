//! The flags of `serve` that say where compactions are done.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;

/// Where compactions are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactionChoice {
    /// In this process
    Local,
    /// By the pool behind --control, and here whenever that is better
    Remote,
}

impl std::fmt::Display for CompactionChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Remote => "remote",
        })
    }
}

/// Settings of compactions, for the file too.
#[derive(Debug, Clone, Default, Args)]
pub struct CompactionArgs {
    /// Where compactions are done: `remote` needs --control and --compaction-volume [default: local]
    #[arg(long, env = "MANXDB_COMPACTION", value_enum)]
    pub compaction: Option<CompactionChoice>,
    /// Control planes of the compaction pool (manxdb compactor control), tried in turn
    #[arg(
        long,
        env = "MANXDB_CONTROL",
        value_name = "HOST:PORT",
        value_delimiter = ','
    )]
    pub control: Option<Vec<String>>,
    /// Storage that the pool's workers reach too: the name they know it by, and where it is here. A
    /// directory that the data directory is in, or an object store for copies, as in
    /// far=s3://bucket/prefix?region=eu-1&endpoint=https://HOST (keys come from the environment:
    /// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, …) or far=hdfs://HOST:PORT/prefix
    #[arg(long, env = "MANXDB_COMPACTION_VOLUME", value_name = "NAME=PLACE")]
    pub compaction_volume: Option<String>,
    /// Where this machine is: the pool prefers workers of the same zone [default: 0]
    #[arg(long, env = "MANXDB_COMPACTION_ZONE", value_name = "NUMBER")]
    pub compaction_zone: Option<u16>,
    /// This server's share of the pool, relative to other servers' [default: 1]
    #[arg(long, env = "MANXDB_COMPACTION_WEIGHT", value_name = "NUMBER")]
    pub compaction_weight: Option<u32>,
    /// Compactions of fewer MiB are done here [default: 4]
    #[arg(long, env = "MANXDB_COMPACTION_MIN_MB", value_name = "MIB")]
    pub compaction_min_mb: Option<usize>,
    /// Sorted files that gather on level 0 until they are compacted, and memtables that level 1 is as
    /// large as: more are compacted less often, and looked through by each read [default: 4, or 8
    /// where copies go to an object store]
    #[arg(long, env = "MANXDB_COMPACTION_LEVEL0_FILES", value_name = "COUNT")]
    pub compaction_level0_files: Option<u16>,
    /// File with the secret of the pool
    #[arg(long, env = "MANXDB_COMPACTION_TOKEN_FILE", value_name = "FILE")]
    pub compaction_token_file: Option<PathBuf>,
    /// File with the certificate, PEM, that signs those of the pool
    #[arg(long, env = "MANXDB_COMPACTION_TLS_CA", value_name = "FILE")]
    pub compaction_tls_ca: Option<PathBuf>,
    /// File with this server's certificate for the pool, PEM
    #[arg(long, env = "MANXDB_COMPACTION_TLS_CERT", value_name = "FILE")]
    pub compaction_tls_cert: Option<PathBuf>,
    /// File with its key, PEM
    #[arg(long, env = "MANXDB_COMPACTION_TLS_KEY", value_name = "FILE")]
    pub compaction_tls_key: Option<PathBuf>,
    /// Name in the control plane's certificate [default: localhost]
    #[arg(long, env = "MANXDB_COMPACTION_TLS_NAME", value_name = "NAME")]
    pub compaction_tls_name: Option<String>,
}
