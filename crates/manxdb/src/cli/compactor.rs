//! The command line of the compaction service.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::etcd::EtcdArgs;

/// Roles of the compaction service.
#[derive(Debug, Subcommand)]
pub enum CompactorCommand {
    /// Run the control plane: it leases compactions of databases to workers
    #[command(after_help = "\
State is in --store and survives the process. Until it is there again, databases compact\n\
locally; jobs under way go on.\n\
\n\
With --etcd in place of --store, several control planes share one state: one of them leads,\n\
and another one takes over when it ends, or --etcd-lease seconds after it was last heard of.\n\
Give all of them to databases and workers (--control A:7411,B:7411).")]
    Control(Box<ControlArgs>),
    /// Run a worker: it compacts for any database on the volumes that it reaches
    #[command(after_help = "\
SIGTERM or SIGINT lets what runs end and takes nothing more; a second signal ends it at once,\n\
and its jobs are given to others when their leases run out.")]
    Worker(WorkerArgs),
    /// Show what a pool is doing
    Top(TopArgs),
}

/// Which job next, on which worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyChoice {
    /// Databases near a stall first, fair shares, short jobs first, the worker that is done first
    Manxdb,
    /// By level and score, to the worker with the fewest jobs (CaaS-LSM as published)
    CaasLevel,
    /// In the order of arrival, to a worker drawn at random
    Random,
    /// Each database has one worker, and nothing is tried twice
    Static,
}

/// Who is let in.
#[derive(Debug, Clone, Args)]
pub struct SecurityArgs {
    /// File with the secret that all who take part share
    #[arg(long, value_name = "FILE", env = "MANXDB_COMPACTOR_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// File with the certificate (PEM) that signs the others' certificates; with --tls-cert and
    /// --tls-key, both sides show theirs
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"])]
    pub tls_ca: Option<PathBuf>,
    /// File with our own certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_ca")]
    pub tls_cert: Option<PathBuf>,
    /// File with its key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_ca")]
    pub tls_key: Option<PathBuf>,
    /// Name in the control plane's certificate
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    pub tls_name: String,
}

/// Flags of `compactor control`.
#[derive(Debug, Args)]
pub struct ControlArgs {
    /// Where databases and workers reach it. Without a token or certificates, only this machine
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7411")]
    pub listen: SocketAddr,
    /// File that its state is in
    #[arg(
        long,
        value_name = "FILE",
        default_value = "./manxdb-compactor",
        conflicts_with = "etcd"
    )]
    pub store: PathBuf,
    /// Where else its state may be.
    #[command(flatten)]
    pub etcd: EtcdArgs,
    /// What its keys in etcd begin with: control planes with the same one share a state
    #[arg(long, value_name = "PREFIX", default_value = "/manxdb/compaction/")]
    pub etcd_prefix: String,
    /// What others call this control plane, for logs and `top` [default: the address that it
    /// listens on]
    #[arg(long, value_name = "HOST:PORT", requires = "etcd")]
    pub advertise: Option<String>,
    /// How jobs are chosen
    #[arg(long, value_enum, default_value = "manxdb")]
    pub policy: PolicyChoice,
    /// Address for Prometheus metrics over HTTP
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Who is let in.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// Flags of `compactor worker`.
#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Control planes, tried in turn
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_delimiter = ',',
        default_value = "127.0.0.1:7411"
    )]
    pub control: Vec<String>,
    /// A storage that it reaches, and where: a directory, or an object store as in
    /// far=s3://bucket/prefix?region=eu-1&endpoint=https://HOST (keys come from the environment:
    /// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, …) or far=hdfs://HOST:PORT/prefix. Databases
    /// name volumes, never paths.
    /// Repeatable
    #[arg(long = "volume", value_name = "NAME=PLACE", required = true)]
    pub volumes: Vec<String>,
    /// Directory for what it fetches from object stores and makes, as large as the inputs and
    /// outputs of all its slots together; workers may share one [default: manxdb-compactor in the
    /// system's directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Megabytes of memory for ends of files in object stores, which every job of a database needs
    #[arg(long, value_name = "MB", default_value_t = 256)]
    pub remember_mb: u32,
    /// Jobs at a time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub slots: u32,
    /// Where it is: work in another zone counts as dearer
    #[arg(long, default_value_t = 0)]
    pub zone: u16,
    /// Address for Prometheus metrics over HTTP
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Who is let in.
    #[command(flatten)]
    pub security: SecurityArgs,
}

/// Flags of `compactor top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Control planes, tried in turn
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_delimiter = ',',
        default_value = "127.0.0.1:7411"
    )]
    pub control: Vec<String>,
    /// Show it once, and end
    #[arg(long)]
    pub once: bool,
    /// Who is let in.
    #[command(flatten)]
    pub security: SecurityArgs,
}
