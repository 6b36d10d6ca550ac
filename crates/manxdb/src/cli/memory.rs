//! The command line of a memory server.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// What `memory --help` says behind its flags.
pub const MEMORY_HELP: &str = "\
Start as many as --servers says, with the same settings but for --server and --admin-listen, and\n\
database servers on their memory:\n  \
manxdb memory --directory DIR --servers 2 --server 0\n  \
manxdb memory --directory DIR --servers 2 --server 1 --admin-listen 127.0.0.1:8091\n  \
manxdb serve --commit-path rsi --memory DIR\n\n\
Every flag is also an environment variable (shown in brackets) and a key of manxdb-memory.toml (its\n\
name with underscores). Flags win over the environment, the environment over the file.\n\n\
When a memory server ends, what it had in memory is lost, and all of them are to be started anew; unless\n\
--replicas says that others have it too: then the database goes on without that server, which does not\n\
come back. With --disk what is committed is written to a directory as well, by a process that each\n\
memory server starts (one of them works); memory servers that are all started again have their rows,\n\
up to the last commit that was on disk: what `manxdb serve` acknowledges with durability = \"sync\" is.\n\
Who can open the sockets in the directory can read and write all\n\
rows. Memory is shared by processes of one machine; a client that is shut out (a database server that\n\
has not shown for --lease-ms that it lives) is killed when it does not let go of it by itself,\n\
because memory cannot be taken from a process.\n\n\
Across machines, in a build with --features libfabric:\n  \
manxdb memory --listen 10.0.0.1:7000 --token-file FILE --servers 2 --server 0\n  \
manxdb memory --listen 10.0.0.2:7000 --token-file FILE --servers 2 --server 1\n  \
manxdb serve --commit-path rsi --memory tcp://10.0.0.1:7000,10.0.0.2:7000 --memory-token-file FILE\n\
Nothing is encrypted on the way: whoever can read or change what travels between these machines can\n\
read and write all rows. Each memory server needs a processor.\n\n\
SIGTERM or SIGINT ends it.";

/// Flags of the log archiver of a memory server, which starts it.
#[derive(Debug, Args)]
pub struct MemoryArchiverArgs {
    /// Where memory servers meet their clients
    #[arg(long, value_name = "DIR")]
    pub directory: PathBuf,
    /// Where files are
    #[arg(long, value_name = "DIR")]
    pub disk: PathBuf,
    /// Bytes of batches behind a checkpoint before there is another one, at least
    #[arg(long, value_name = "BYTES")]
    pub checkpoint_bytes: u64,
    /// What is logged to standard error
    #[arg(long, value_name = "FILTER")]
    pub log: String,
}

/// Flags of `memory`.
#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// Configuration file [default: manxdb-memory.toml, when there is one]
    #[arg(long, env = "MANXDB_MEMORY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory where all memory servers of a database meet their clients, made when missing
    /// [default: ./manxdb-memory]
    #[arg(long, env = "MANXDB_MEMORY_DIRECTORY", value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Address and port at which database servers on other machines reach this memory, in place of
    /// --directory: of this machine in the network of the rack. One that others reach takes
    /// --token-file [default: memory is shared by processes of this machine]
    #[arg(long, env = "MANXDB_MEMORY_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// With --listen: the provider of libfabric (fi_info -l) [default: tcp;ofi_rxm]
    #[arg(long, env = "MANXDB_MEMORY_PROVIDER", value_name = "NAME")]
    pub provider: Option<String>,
    /// With --listen: file with a token that database servers have to know, at most 255 bytes
    #[arg(long, env = "MANXDB_MEMORY_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Number of this server, from 0 [default: 0]
    #[arg(long, env = "MANXDB_MEMORY_SERVER", value_name = "NUMBER")]
    pub server: Option<u16>,
    /// How many memory servers there are [default: 1]
    #[arg(long, env = "MANXDB_MEMORY_SERVERS", value_name = "NUMBER")]
    pub servers: Option<u16>,
    /// Memory servers that have each row: with 3 of 4, any two may be lost, one after the other, and
    /// nothing with them. More than 1 takes at least 3 servers [default: 1]
    #[arg(long, env = "MANXDB_MEMORY_REPLICAS", value_name = "NUMBER")]
    pub replicas: Option<u16>,
    /// Name of the database, so that no server is taken for another's [default: manxdb]
    #[arg(long, env = "MANXDB_MEMORY_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// Memory of each server, in MiB; the system gives it as it is written, or see --populate
    /// [default: 1024]
    #[arg(long, env = "MANXDB_MEMORY_SIZE_MB", value_name = "MIB")]
    pub size_mb: Option<u64>,
    /// Has the system give all memory before anybody comes in, so that no transaction waits for a
    /// page: takes all of --size-mb at once, and some seconds for many gigabytes [default: false]
    #[arg(long, env = "MANXDB_MEMORY_POPULATE", num_args = 0..=1, default_missing_value = "true")]
    pub populate: Option<bool>,
    /// Transactions at a time, of all database servers together [default: 32]
    #[arg(long, env = "MANXDB_MEMORY_PLACES", value_name = "NUMBER")]
    pub places: Option<u16>,
    /// Memory servers that each commit is logged on, from which a dead client's commits are
    /// completed [default: 2, or 1 when there is one server; where rows have replicas, as many]
    #[arg(long, env = "MANXDB_MEMORY_LOG_COPIES", value_name = "NUMBER")]
    pub log_copies: Option<u16>,
    /// Largest transaction, in KiB [default: 512]
    #[arg(long, env = "MANXDB_MEMORY_LOG_KB", value_name = "KIB")]
    pub log_kb: Option<u64>,
    /// Versions kept of each row, for transactions that began before the newest [default: 4]
    #[arg(long, env = "MANXDB_MEMORY_VERSIONS", value_name = "NUMBER")]
    pub versions: Option<u16>,
    /// Bytes of a row; longer ones are cut into pieces [default: 256]
    #[arg(long, env = "MANXDB_MEMORY_ROW_BYTES", value_name = "BYTES")]
    pub row_bytes: Option<u64>,
    /// Bytes of a node of the tree of keys; the longest key has about a quarter [default: 8192]
    #[arg(long, env = "MANXDB_MEMORY_NODE_BYTES", value_name = "BYTES")]
    pub node_bytes: Option<u64>,
    /// A client that has not shown for so many milliseconds that it lives is shut out, and what it
    /// had committed is completed [default: 5000]
    #[arg(long, env = "MANXDB_MEMORY_LEASE_MS", value_name = "MS")]
    pub lease_ms: Option<u64>,
    /// Directory that what is committed is written to, equal for all memory servers of a database:
    /// when all of them have ended and are started again, rows are there. Made when missing
    /// [default: rows are in memory alone]
    #[arg(long, env = "MANXDB_MEMORY_DISK", value_name = "DIR")]
    pub disk: Option<PathBuf>,
    /// With --disk: MiB of commits behind a copy of all rows before there is another copy, at least;
    /// they are read when memory servers are started again [default: 256]
    #[arg(long, env = "MANXDB_MEMORY_CHECKPOINT_MB", value_name = "MIB")]
    pub checkpoint_mb: Option<u64>,
    /// With --disk: transactions of each place that may wait to be written to disk; each takes
    /// --log-kb on as many servers as have logs [default: 8]
    #[arg(long, env = "MANXDB_MEMORY_LOG_SLOTS", value_name = "NUMBER")]
    pub log_slots: Option<u16>,
    /// Where health and metrics are served over HTTP [default: 127.0.0.1:8090]
    #[arg(long, env = "MANXDB_MEMORY_ADMIN_LISTEN", value_name = "ADDRESS:PORT")]
    pub admin_listen: Option<SocketAddr>,
    /// What is logged to standard error, as in `serve` [default: info]
    #[arg(long, env = "MANXDB_MEMORY_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}
