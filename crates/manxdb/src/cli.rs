//! The command line, with the text of `--help`.

mod cluster;
mod compaction;
mod compactor;
mod curp;
mod etcd;
mod memory;
mod redis;
#[cfg(test)]
mod reference;
mod rows;
mod vault;
mod witness;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

pub use self::cluster::{ClusterCommand, ClusterNode, DEFAULT_CLUSTER, ProtocolChoice, TpccScale};
pub use self::compaction::{CompactionArgs, CompactionChoice};
pub use self::compactor::{
    CompactorCommand, ControlArgs, PolicyChoice, SecurityArgs, TopArgs, WorkerArgs,
};
pub use self::curp::{COORDINATOR_HELP, CURP_HELP, CoordinatorArgs, CurpNodeArgs, CurpProxyArgs};
pub use self::etcd::EtcdArgs;
pub use self::memory::{MEMORY_HELP, MemoryArchiverArgs, MemoryArgs};
pub use self::redis::{RedisArgs, RedisEngineChoice};
pub use self::rows::{CommitPathChoice, RowsArgs};
pub use self::vault::VaultArgs;
pub use self::witness::{CarrierChoice, WITNESS_HELP, WitnessArgs};

/// ManxDB: a MySQL-compatible database with short tails.
#[derive(Debug, Parser)]
#[command(
    name = "manxdb",
    version,
    about,
    after_help = "\
Start a server and talk to it:\n  \
manxdb serve\n  \
manxdb sql --password PASSWORD\n\n\
Every flag of `serve` that has an environment variable (shown in brackets) is also a key of \
manxdb.toml\n(its name with underscores). Flags win over the environment, the environment over \
the file, the\nfile over defaults; `manxdb config explain` shows what holds and why.\n\n\
bench, lab, sim and cluster are carried out by the program manxdb-lab, in the directory of this one."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The roles of the binary.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a server: MySQL clients on one port, health and metrics over HTTP on another
    #[command(after_help = "\
The root password is printed once, on the first start, unless it is given.\n\
SIGTERM or SIGINT ends the server in order: running statements may finish, for at most\n\
--shutdown-grace-seconds. A second signal ends it at once; acknowledged commits survive both.")]
    Serve(Box<ServeArgs>),
    /// Run SQL: a prompt with history, a file, or statements from the command line
    #[command(after_help = "\
At the prompt a statement ends with ; or with \\G for one column a line.\n\
  source FILE, \\. FILE   run a file\n  \
use DATABASE, \\u NAME   change the database\n  \
\\c                      forget the statement typed so far\n  \
exit, quit, \\q          leave\n\n\
Without a terminal, statements are read from standard input and rows are written as\n\
tab-separated text. The exit code is 0, or 1 when a statement failed or no server answered.")]
    Sql(SqlArgs),
    /// Make, check and restore backups
    #[command(subcommand)]
    Backup(BackupCommand),
    /// Find out whose the rows of a schema are, and what is wrong with that
    #[command(subcommand)]
    Compliance(ComplianceCommand),
    /// Look after the keys of Redis clients
    #[command(subcommand)]
    Redis(RedisCommand),
    /// Put a server or a cluster under load and measure it (manxdb-lab)
    Bench,
    /// Run a cluster over several regions, on this machine, with emulated distances (manxdb-lab), or
    /// a node of one
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Run the compaction service: its control plane, its workers, and what they do
    #[command(subcommand)]
    Compactor(CompactorCommand),
    /// Run a memory server: it holds rows of `serve --commit-path rsi` for any number of servers
    #[command(after_help = MEMORY_HELP)]
    Memory(Box<MemoryArgs>),
    /// Writes what is committed in memory servers to disk; started by each of them
    #[command(hide = true, alias = "memory-keeper")]
    MemoryArchiver(MemoryArchiverArgs),
    /// Decide who is master, backup and witness of a cluster that replicates Redis's keys or SQL's rows
    #[command(after_help = COORDINATOR_HELP)]
    Coordinator(Box<CoordinatorArgs>),
    /// Run a server of a cluster that replicates Redis's keys: master, backup or spare, as the
    /// coordinator decides. The first one of the cluster file is master when the cluster begins
    #[command(after_help = CURP_HELP, visible_alias = "master")]
    Replica(CurpNodeArgs),
    /// Run a witness of such a cluster, in a process or in the data plane: it keeps commands until the
    /// backups have them
    #[command(after_help = WITNESS_HELP)]
    Witness(Box<WitnessArgs>),
    /// Serve Redis clients beside the application: writes that commute take one round trip to the
    /// cluster. A server's own Redis port serves the same in two
    #[command(after_help = CURP_HELP)]
    Proxy(CurpProxyArgs),
    /// Repeat published experiments in the simulator, and draw their figures (manxdb-lab)
    Lab,
    /// Run a cluster over several regions in virtual time, and say where the time of calls went
    /// (manxdb-lab)
    Sim,
    /// Check a configuration file, or explain which settings hold
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the version
    Version,
}

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityChoice {
    /// On disk: survives power loss
    Sync,
    /// Handed to the operating system: survives a killed process, not power loss
    Async,
}

/// What transactions see of each other, unless a session asks for another level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationChoice {
    /// Every statement sees what is committed when it begins
    ReadCommitted,
    /// As MySQL's default: plain reads see the state at the first of them, locking reads and
    /// writes the newest
    RepeatableRead,
    /// Equal to some serial order: all reads are validated at commit, and a transaction whose
    /// reads changed ends with error 1213 and may be tried again
    Serializable,
}

impl std::fmt::Display for IsolationChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ReadCommitted => "read-committed",
            Self::RepeatableRead => "repeatable-read",
            Self::Serializable => "serializable",
        })
    }
}

impl std::fmt::Display for DurabilityChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sync => "sync",
            Self::Async => "async",
        })
    }
}

/// Whether a client encrypts, and what it asks of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum TlsMode {
    /// Never
    Disabled,
    /// When the server offers it; keeps listeners out, not impostors
    #[default]
    Preferred,
    /// Always
    Required,
    /// Always, with a certificate that leads to --tls-ca
    VerifyCa,
    /// The same, and it names the host
    VerifyIdentity,
}

/// Flags of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Settings that the configuration file has too.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// Password of root on the first start [default: a random one, printed once]
    #[arg(
        long,
        env = "MANXDB_ROOT_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true
    )]
    pub root_password: Option<String>,
    /// Port of the MySQL listener; the address stays as configured
    #[arg(long, value_name = "PORT")]
    pub mysql_port: Option<u16>,
    /// Port of the admin listener; the address stays as configured
    #[arg(long, value_name = "PORT")]
    pub admin_port: Option<u16>,
}

/// Settings: flag, environment variable and key of the file are made of one name.
#[derive(Debug, Args)]
pub struct SettingsArgs {
    /// Configuration file [default: manxdb.toml, when there is one]
    #[arg(long, env = "MANXDB_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data directory, made when missing [default: ./manxdb-data]
    #[arg(long, env = "MANXDB_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where MySQL clients connect [default: 127.0.0.1:3306]
    #[arg(long, env = "MANXDB_MYSQL_LISTEN", value_name = "ADDRESS:PORT")]
    pub mysql_listen: Option<SocketAddr>,
    /// Where health, metrics and slow statements are served over HTTP [default: 127.0.0.1:8088]
    #[arg(long, env = "MANXDB_ADMIN_LISTEN", value_name = "ADDRESS:PORT")]
    pub admin_listen: Option<SocketAddr>,
    /// Serve the admin listener over HTTPS alone, with the certificate of the MySQL listener [default: false]
    #[arg(long, env = "MANXDB_ADMIN_TLS", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", require_equals = true)]
    pub admin_tls: Option<bool>,
    /// On the first start, create root without a password
    #[arg(long, env = "MANXDB_INSECURE", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", require_equals = true)]
    pub insecure: Option<bool>,
    /// When a commit counts as done [default: sync]. With --commit-path rsi it says so only where
    /// memory servers write to disk (manxdb memory --disk); otherwise rows are in memory alone
    #[arg(long, env = "MANXDB_DURABILITY", value_enum)]
    pub durability: Option<DurabilityChoice>,
    /// Isolation of transactions that do not ask for another level: the global
    /// transaction_isolation at the start [default: repeatable-read]
    #[arg(long, env = "MANXDB_TRANSACTION_ISOLATION", value_enum)]
    pub transaction_isolation: Option<IsolationChoice>,
    /// TLS certificate chain, PEM [default: a self-signed one, kept in the data directory]
    #[arg(long, env = "MANXDB_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the TLS certificate, PEM
    #[arg(long, env = "MANXDB_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Most client connections at a time [default: 1000]
    #[arg(long, env = "MANXDB_MAX_CONNECTIONS", value_name = "COUNT")]
    pub max_connections: Option<usize>,
    /// Longest packet a client may send, in MiB, at most 1024 [default: 64]
    #[arg(long, env = "MANXDB_MAX_ALLOWED_PACKET_MB", value_name = "MIB")]
    pub max_allowed_packet_mb: Option<usize>,
    /// Memory for blocks read from disk, in MiB [default: 256]
    #[arg(long, env = "MANXDB_BLOCK_CACHE_MB", value_name = "MIB")]
    pub block_cache_mb: Option<usize>,
    /// Memory for writes that are not in sorted files yet, in MiB: up to three such buffers, at
    /// most 4096 each [default: 64]
    #[arg(long, env = "MANXDB_WRITE_BUFFER_MB", value_name = "MIB")]
    pub write_buffer_mb: Option<usize>,
    /// Memory one statement may hold, in MiB; joins, sorts and rows to be written go on in temporary
    /// files of up to 128 times as much [default: 256]
    #[arg(long, env = "MANXDB_STATEMENT_MEMORY_MB", value_name = "MIB")]
    pub statement_memory_mb: Option<usize>,
    /// Directory whose files LOAD DATA may read and SELECT INTO OUTFILE may write; without it
    /// they reach no file of the server
    #[arg(long, env = "MANXDB_SECURE_FILE_PRIV", value_name = "DIRECTORY")]
    pub secure_file_priv: Option<String>,
    /// Statements slower than this are kept for /slow, in milliseconds [default: 1000]
    #[arg(long, env = "MANXDB_LONG_QUERY_MS", value_name = "MS")]
    pub long_query_ms: Option<u32>,
    /// How long running statements may finish at shutdown, in seconds [default: 10]
    #[arg(long, env = "MANXDB_SHUTDOWN_GRACE_SECONDS", value_name = "SECONDS")]
    pub shutdown_grace_seconds: Option<u32>,
    /// Where compactions are done.
    #[command(flatten)]
    pub compaction: CompactionArgs,
    /// Where rows are.
    #[command(flatten)]
    pub rows: RowsArgs,
    /// Redis clients.
    #[command(flatten)]
    pub redis: RedisArgs,
    /// Keys of people.
    #[command(flatten)]
    pub vault: VaultArgs,
    /// What is logged to standard error: error, warn, info, debug, trace, or a filter such as
    /// `info,manxdb_storage=debug` [default: info]
    #[arg(long, env = "MANXDB_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

/// Flags of `sql`.
#[derive(Debug, Args)]
pub struct SqlArgs {
    /// Server's host
    #[arg(long, short = 'H', env = "MANXDB_HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Server's port
    #[arg(long, short = 'P', env = "MANXDB_PORT", default_value_t = 3306)]
    pub port: u16,
    /// User
    #[arg(long, short, env = "MANXDB_USER", default_value = "root")]
    pub user: String,
    /// Password; asked for when the flag has no value
    #[arg(long, short, env = "MANXDB_PASSWORD", num_args = 0..=1, default_missing_value = "", hide_env_values = true)]
    pub password: Option<String>,
    /// Whether to encrypt the connection
    #[arg(
        long,
        alias = "ssl-mode",
        env = "MANXDB_TLS",
        value_enum,
        default_value_t,
        value_name = "MODE"
    )]
    pub tls: TlsMode,
    /// Certificates, PEM, that the server's must lead to: of an authority, or the server's own
    #[arg(long, alias = "ssl-ca", env = "MANXDB_TLS_CA", value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Run these statements and leave
    #[arg(long, short, value_name = "STATEMENTS")]
    pub execute: Option<String>,
    /// Run this file and leave
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Draw tables also when the output is not a terminal
    #[arg(long, short)]
    pub table: bool,
    /// Go on after a statement failed
    #[arg(long)]
    pub force: bool,
    /// Database to use
    pub database: Option<String>,
}

/// Ownership of a schema.
#[derive(Debug, Subcommand)]
pub enum ComplianceCommand {
    /// Check a file of CREATE TABLE and ALTER TABLE statements, or a dump, without a server
    #[command(after_help = "\
Statements run as in an empty server, in memory; rows, views and routines are passed over. Each\n\
table is shown with the chains through which its rows are people's (EXPLAIN COMPLIANCE). The exit\n\
code is 1 when a statement was refused or an error was found.")]
    Check {
        /// The file; - for standard input
        schema: PathBuf,
        /// Fail on warnings too
        #[arg(long)]
        strict: bool,
    },
    /// Check a certificate of GDPR CERTIFICATE: its signature and its chain of audit records, without a server
    #[command(after_help = "\
What it says is printed, then each thing that is wrong: the part or the audit record that was changed, a\n\
signature that does not fit, a byte that is not as a certificate is written. The exit code is 1 when there is\n\
one. Whose key signed it is for you to know: give that key, as an earlier certificate of the server or its\n\
operator has told it.")]
    Verify {
        /// The file; - for standard input
        certificate: PathBuf,
        /// The public key it must be signed by, 64 hexadecimal digits
        #[arg(long, value_name = "HEX")]
        public_key: Option<String>,
    },
}

/// Keys of Redis clients.
#[derive(Debug, Subcommand)]
pub enum RedisCommand {
    /// Check that the rows of a data directory make the objects of its keys
    #[command(after_help = "\
No server may use the directory. Each finding is a line; the last line counts. The exit code is 1\n\
when there are findings.")]
    Check {
        /// The data directory
        #[arg(long, value_name = "DIRECTORY")]
        data: PathBuf,
    },
}

/// Backups.
#[derive(Debug, Subcommand)]
pub enum BackupCommand {
    /// Back up a running server, or a data directory no server uses
    Create {
        /// Directory that holds backups; files that did not change are stored once
        directory: PathBuf,
        /// Name of this backup [default: the time, for example 2026-01-31T18-30-00Z]
        #[arg(long)]
        label: Option<String>,
        /// Data directory
        #[arg(
            long,
            env = "MANXDB_DATA",
            default_value = "./manxdb-data",
            value_name = "DIR"
        )]
        data: PathBuf,
        /// Admin listener of the server that uses the data directory
        #[arg(
            long,
            env = "MANXDB_ADMIN_LISTEN",
            default_value = "127.0.0.1:8088",
            value_name = "ADDRESS:PORT"
        )]
        admin: SocketAddr,
    },
    /// Read every byte of every backup and compare checksums
    Verify {
        /// Directory that holds backups
        directory: PathBuf,
    },
    /// List backups, oldest first
    List {
        /// Directory that holds backups
        directory: PathBuf,
    },
    /// Copy what can be read of a data directory that does not open into a new one
    #[command(after_help = "\
The damaged directory is left as it is. What was only in a damaged file is missing from the new\n\
one: rows may be gone or older than they were, and indexes may lead to no row. So copy the data\n\
out of it (mysqldump) into a fresh server rather than going on with it, and prefer a backup.")]
    Salvage {
        /// The damaged data directory; no server may use it
        #[arg(
            long,
            env = "MANXDB_DATA",
            default_value = "./manxdb-data",
            value_name = "DIR"
        )]
        data: PathBuf,
        /// Data directory to make; must not exist
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
    },
    /// Write a backup into a new data directory
    #[command(after_help = "\
Who was forgotten since the backup is known beside the vault (--vault of serve), which no backup has: a\n\
server that is started on the new directory with that vault forgets them again before it serves.")]
    Restore {
        /// Directory that holds backups
        directory: PathBuf,
        /// Which one [default: the newest]
        #[arg(long)]
        label: Option<String>,
        /// Data directory to make; must not hold anything
        #[arg(long, value_name = "DIR")]
        data: PathBuf,
    },
}

/// Configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check a configuration file; errors name line and column
    Check {
        /// The file [default: manxdb.toml]
        config: Option<PathBuf>,
    },
    /// Show every setting, its value, and where the value comes from
    Explain(Box<SettingsArgs>),
}
