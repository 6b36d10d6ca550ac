//! The command line of clusters.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use manxdb::cli::{CarrierChoice, ClusterNode, DEFAULT_CLUSTER, TpccScale};
use manxdb_curp::slots::SlotRange;
use manxdb_dast::{Crossing, Survive};

/// Below the flags of each load.
pub const CLUSTER_LOAD_HELP: &str = "\
Every client has one call under way and makes the next when it is answered. The clients are\n\
spread evenly over the shards and live in one process with the emulated distance of their\n\
shard's region. The exit code is 1 when a call was not answered or a check failed.";

/// A load on a cluster.
#[derive(Debug, Args)]
pub struct ClusterLoad {
    /// The cluster: its file, or the data directory that holds it
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
    pub cluster: PathBuf,
    /// Clients, each with one call under way
    #[arg(long, default_value_t = 8)]
    pub clients: u32,
    /// How long to measure, in seconds
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// How long to run before measuring, in seconds
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub warm_up: f64,
    /// How long to wait for the last answers, in seconds
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS")]
    pub patience: f64,
    /// Seed of what is asked; each run has clients of its own, so equal seeds make alike runs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Judge the run: every call ends, replicas of a shard are equal in the end; of `append`
    /// also that nothing acknowledged is lost and the order is serializable, of `tpca` that each
    /// table has one increment for each call
    #[arg(long)]
    pub check: bool,
    /// Write the measurement to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Run the same in the simulator too, and write a figure, data and report of both here
    #[arg(long, value_name = "DIR")]
    pub against_sim: Option<PathBuf>,
}

/// Flags of `bench append`.
#[derive(Debug, Args)]
pub struct AppendRun {
    /// The load
    #[command(flatten)]
    pub load: ClusterLoad,
    /// Share of calls that touch several regions, in percent
    #[arg(long, default_value_t = 10.0, value_name = "PERCENT")]
    pub crt_percent: f64,
    /// Share of calls of which a part waits for values that other parts find, in percent
    #[arg(long, default_value_t = 20.0, value_name = "PERCENT")]
    pub deferred_percent: f64,
    /// Lists of each shard: the fewer, the more conflicts. They grow, and each read gives a
    /// whole one
    #[arg(long, default_value_t = 32)]
    pub lists: u32,
}

/// Flags of `bench tpca`.
#[derive(Debug, Args)]
pub struct TpcaRun {
    /// The load
    #[command(flatten)]
    pub load: ClusterLoad,
    /// Share of calls that touch several regions, in percent
    #[arg(long, default_value_t = 10.0, value_name = "PERCENT")]
    pub crt_percent: f64,
    /// Exponent of the Zipf distribution, 0 (uniform) to 4: the larger, the more conflicts
    #[arg(long, default_value_t = 0.5)]
    pub theta: f64,
}

/// Flags of `bench tpcc`.
#[derive(Debug, Args)]
pub struct TpccRun {
    /// The load
    #[command(flatten)]
    pub load: ClusterLoad,
    /// With the parameters of the TPC-C standard; without it those of the DAST paper
    #[arg(long)]
    pub standard: bool,
    /// Share of payments by customers of another warehouse, in percent [default: 15]
    #[arg(long, value_name = "PERCENT")]
    pub remote_payments: Option<f64>,
    /// A server instead of a cluster
    #[command(flatten)]
    pub server: TpccServer,
}

/// Flags of `bench tpcc` for a MySQL server.
#[derive(Debug, Args)]
#[command(next_help_heading = "On a MySQL server")]
pub struct TpccServer {
    /// Run on this MySQL server instead of a cluster: the nine tables are made and filled, the five
    /// transactions run over its protocol with the standard's parameters, the conditions of
    /// consistency are checked. The exit code is 1 when a worker ended early or one does not hold
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["cluster", "clients", "against_sim", "remote_payments"])]
    pub mysql: Option<String>,
    /// Who logs in
    #[arg(long, default_value = "root", requires = "mysql")]
    pub user: String,
    /// The password
    #[arg(long, env = "MANXDB_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// The database: made when missing, its tables of these names replaced
    #[arg(long, default_value = "tpcc", requires = "mysql")]
    pub database: String,
    /// Warehouses
    #[arg(long, default_value_t = 1, requires = "mysql")]
    pub warehouses: u32,
    /// Workers, each with a connection
    #[arg(long, default_value_t = 8, requires = "mysql")]
    pub threads: u32,
    /// Level of the workers' transactions
    #[arg(long, value_enum, default_value_t = TpccIsolation::Default, requires = "mysql")]
    pub isolation: TpccIsolation,
    /// What a worker does about an error
    #[arg(long, value_enum, default_value_t = TpccOnError::End, requires = "mysql")]
    pub on_error: TpccOnError,
    /// Run on the rows of an earlier run
    #[arg(long, requires = "mysql")]
    pub no_fill: bool,
    /// How large a warehouse is
    #[arg(long, value_enum, default_value_t = TpccScale::Full, value_name = "SCALE", requires = "mysql")]
    pub tpcc_scale: TpccScale,
}

/// The level of transactions on a MySQL server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TpccIsolation {
    /// The server's own
    Default,
    /// READ COMMITTED
    ReadCommitted,
    /// REPEATABLE READ
    RepeatableRead,
    /// SERIALIZABLE
    Serializable,
}

impl TpccIsolation {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "the server's default",
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// What a worker does about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TpccOnError {
    /// Ends at its first error, as programs do that never heard of 1213
    End,
    /// Tries the transaction again after 1213 and 1205
    Retry,
}

/// Flags of `bench payment`.
#[derive(Debug, Args)]
pub struct PaymentRun {
    /// The load
    #[command(flatten)]
    pub load: ClusterLoad,
    /// Share of calls that touch several regions, in percent
    #[arg(long, default_value_t = 10.0, value_name = "PERCENT")]
    pub crt_percent: f64,
}

/// Clusters.
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Start a cluster, one process a node, and stay until it is stopped
    #[command(subcommand)]
    Up(ClusterUp),
    /// Run one node of a cluster: what `up` does for each, and a way to start a dead one again
    Node(ClusterNode),
    /// Say how every node of a cluster is; the exit code is 1 when one does not answer
    Status {
        /// The cluster: its file, or the data directory that holds it
        #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
        cluster: PathBuf,
        /// Print JSON, with everything the nodes count
        #[arg(long)]
        json: bool,
    },
    /// Start one more witness of a running cluster of `up curp`, in its --room or in the place of one that is
    /// gone; it is a spare until the coordinator needs it. `down` ends it with the others
    AddWitness {
        /// The cluster: its file, or the data directory that holds it
        #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
        cluster: PathBuf,
        /// End this witness when the new one is there (SIGTERM), and wait until another one is in use
        #[arg(long, value_name = "NUMBER")]
        replaces: Option<u32>,
    },
    /// Say which hash slots of Redis's keys a cluster of `up curp` owns, and which cluster owns the others
    Slots {
        /// The cluster: its file, or the data directory that holds it
        #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
        cluster: PathBuf,
    },
    /// Move hash slots with their keys from one cluster of `up curp` to another one, while clients write; the
    /// same command goes on with a move that stands still. Until it is over, commands on these keys are
    /// answered MOVED or TRYAGAIN, and those that look at all keys TRYAGAIN: move few slots at a time
    MoveSlots {
        /// The slots: FIRST-LAST, from 0 to 16383, or one
        slots: SlotRange,
        /// The cluster that owns them: its file, or the data directory that holds it
        #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
        cluster: PathBuf,
        /// The cluster that is to own them; MOVED names its first proxy, as its cluster file has it
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
    /// Cancel a move of hash slots that stands still half-way, because its target is full or gone: the cluster that
    /// gives them owns them again, with their keys, and the other one forgets what it has of them. The same
    /// command goes on with it. Refused once the target has all keys: then go on, and move the slots back
    CancelMove {
        /// The slots, as move-slots named them
        slots: SlotRange,
        /// The cluster that gives them: its file, or the data directory that holds it
        #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
        cluster: PathBuf,
        /// The cluster that was to own them [default: it is not asked, as it is gone; should it come back, give
        /// the command again with it]
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Let a cluster of `up curp` without keys in these hash slots say that another one owns them: every
    /// cluster owns all slots in the beginning, and a second one has to give up those that it is to be given
    GiveUpSlots {
        /// The slots: FIRST-LAST, from 0 to 16383, or one
        slots: SlotRange,
        /// The cluster that gives them up: its file, or the data directory that holds it
        #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
        cluster: PathBuf,
        /// The cluster that owns them
        #[arg(long, value_name = "FILE")]
        owner: PathBuf,
    },
    /// End a process of a cluster at once, as a crash does (SIGKILL)
    Kill(ClusterTarget),
    /// Stop a process of a cluster where it stands (SIGSTOP), for a while or until it is resumed
    Pause {
        /// Which
        #[command(flatten)]
        target: ClusterTarget,
        /// Resume it after so long, in milliseconds [default: it stays stopped]
        #[arg(long, value_name = "MS")]
        for_ms: Option<u64>,
    },
    /// Let a process go on that was stopped (SIGCONT); it answers nobody, so it is named by its number
    Resume {
        /// The cluster: its file, or the data directory that holds it
        #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
        cluster: PathBuf,
        /// The node's number
        number: u32,
    },
    /// Stop a cluster and wait until its last process is gone
    Down {
        /// The cluster: its file, or the data directory that holds it
        #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
        cluster: PathBuf,
    },
}

/// A process of a cluster.
#[derive(Debug, Args)]
pub struct ClusterTarget {
    /// The cluster: its file, or the data directory that holds it
    #[arg(long, value_name = "FILE", default_value = DEFAULT_CLUSTER)]
    pub cluster: PathBuf,
    /// The node's number, or what it does at the moment: master, backup, witness, coordinator or proxy,
    /// the first that does
    pub node: String,
}

/// Kinds of clusters.
#[derive(Debug, Subcommand)]
pub enum ClusterUp {
    /// Transactions over several regions, local ones without waiting for others (EuroSys 2021)
    #[command(after_help = "\
Each shard has three replicas, each region three managers. Distances between regions are\n\
emulated: every message is held for half the round trip before it is sent. All nodes listen on\n\
127.0.0.1 without authentication.\n\n\
A replica's rows live in its memory: one node of each shard and of each region's managers may\n\
die and come back, but a cluster that was stopped begins empty. SIGINT, SIGTERM and\n\
`manxdb cluster down` end it.")]
    Dast(DastUp),
    /// Redis's keys, or SQL's rows, replicated in one round trip (CURP, NSDI 2019)
    #[command(after_help = "\
One coordinator, f + 1 servers (a master and f backups), f witnesses, spares of both, and a proxy for\n\
Redis clients. All nodes listen on 127.0.0.1 without authentication. The coordinator is a single point\n\
of failure.\n\n\
Durability: with --durability memory, what is acknowledged is in the memory of f + 1 processes and\n\
survives f crashes; servers write it to disk behind that. With fsync it is on the disks of the master and\n\
of all f backups when it is acknowledged, which takes two round trips and a write to disk, and survives\n\
the end of all processes and the loss of f disks. A cluster that was stopped goes on where it was, with\n\
the shape and ports of its cluster file, when it is started again with the same --data. After Ctrl-C,\n\
SIGTERM or `manxdb cluster down` nothing acknowledged is missing in either mode; after the end of all\n\
processes at once, memory lacks what was on no disk yet.\n\n\
Ports: nodes from --base-port on, Redis clients from --redis-port on, the proxies first, then the\n\
servers. With --sql the servers have the rows of one SQL database instead, and there is no proxy: MySQL\n\
clients connect to any server, from --mysql-port on, as root without a password. The master serves\n\
them, the others pass them on to it; a failover ends connections. SIGINT, SIGTERM and\n\
`manxdb cluster down` end it, and take away what witnesses have in the kernel.")]
    Curp(CurpUp),
}

/// Flags of `cluster up curp`.
#[derive(Debug, Args)]
pub struct CurpUp {
    /// Crashes survived: so many backups, and so many witnesses; 0 replicates nothing, to compare with
    #[arg(long = "f", value_name = "F", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=3))]
    pub faults: u32,
    /// Servers and witnesses of each kind more than needed: they replace those that die
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=8))]
    pub spares: u32,
    /// Places for more witnesses, which `manxdb cluster add-witness` starts while the cluster runs
    #[arg(long, default_value_t = 0, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=8))]
    pub room: u32,
    /// Proxies for Redis clients
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=16))]
    pub proxies: u32,
    /// Way from one process to another, in microseconds; a proxy stands as far from the others as they
    /// from each other
    #[arg(long, default_value_t = 0, value_name = "US", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub lan_us: u64,
    /// A process that is silent for so long is replaced, in milliseconds: above the longest pause that
    /// a busy machine gives a process
    #[arg(long, default_value_t = 1000.0, value_name = "MS")]
    pub suspect_ms: f64,
    /// Data directory, made when missing; cluster.toml in it describes the cluster. One that a stopped
    /// cluster has left goes on
    #[arg(long, value_name = "DIR", default_value = "./manxdb-cluster")]
    pub data: PathBuf,
    /// The first node listens here, the others on the ports behind it
    #[arg(long, default_value_t = 7400, value_name = "PORT")]
    pub base_port: u16,
    /// Redis clients connect here to the first proxy, and on the ports behind it to the others
    #[arg(long, default_value_t = 6379, value_name = "PORT")]
    pub redis_port: u16,
    /// What an acknowledgement says of disks: memory or fsync [default: memory, or as the cluster in --data
    /// has it]
    #[arg(long, value_name = "MODE", value_parser = ["memory", "fsync"])]
    pub durability: Option<String>,
    /// Begin with nothing: the keys or rows of the cluster in --data are removed
    #[arg(long)]
    pub new: bool,
    /// Replicate the rows of SQL, for MySQL clients, instead of Redis's keys
    #[arg(long)]
    pub sql: bool,
    /// With --sql: MySQL clients connect here to the first server, and on the ports behind it to the
    /// others
    #[arg(long, default_value_t = 3306, value_name = "PORT")]
    pub mysql_port: u16,
    /// Who answers the datagrams of witnesses: a process, or an XDP program at --interface, before any
    /// process runs. Needs what `manxdb witness --help` says
    #[arg(long, value_enum, default_value_t = CarrierChoice::User)]
    pub carrier: CarrierChoice,
    /// The network interface at which datagrams of 127.0.0.1 come in, for --carrier xdp and xdp-generic
    #[arg(long, value_name = "IF", default_value = "lo")]
    pub interface: String,
    /// Take the next best carrier when that one cannot be had: xdp, xdp-generic, user
    #[arg(long)]
    pub fallback: bool,
    /// Start nodes that die again
    #[arg(long)]
    pub supervise: bool,
}

/// Flags of `cluster up dast`.
#[derive(Debug, Args)]
pub struct DastUp {
    /// Regions
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub regions: u32,
    /// Shards of each region
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub shards: u32,
    /// Round trip within a region, in milliseconds
    #[arg(long, default_value_t = 5.0, value_name = "MS")]
    pub lan_ms: f64,
    /// Round trip between regions, in milliseconds
    #[arg(long, default_value_t = 100.0, value_name = "MS")]
    pub wan_ms: f64,
    /// Up to so much more or less for a message between regions, as in `manxdb sim`, in milliseconds
    #[arg(long, default_value_t = 0.0, value_name = "MS")]
    pub wan_jitter_ms: f64,
    /// A replica that is silent for so long is put out, in milliseconds: above the longest pause
    /// that a busy machine gives a process
    #[arg(long, default_value_t = 1000.0, value_name = "MS")]
    pub suspect_ms: f64,
    /// How cross-region transactions get their places: anticipated (two round trips between
    /// regions), or ahead (one)
    #[arg(long, default_value = "anticipated", value_name = "MODE", value_parser = Crossing::of_name)]
    pub crossing: Crossing,
    /// What the loss of leaves everything else going: zone (a node of each shard and of each region's
    /// managers), or region, which the others fence when it is silent for 1.5 s (three regions or
    /// more, --crossing ahead)
    #[arg(long, default_value = "zone", value_name = "WHAT", value_parser = Survive::of_name)]
    pub survive: Survive,
    /// How far ahead of its clock a region tells another one marks, until it has measured the way,
    /// in milliseconds (--crossing ahead) [default: half of --wan-ms and 7.5]
    #[arg(long, value_name = "MS")]
    pub lead_ms: Option<f64>,
    /// The warehouse of TPC-C that every shard begins with; its replicas have it in memory
    #[arg(long, value_enum, default_value_t = TpccScale::Full, value_name = "SCALE")]
    pub tpcc_scale: TpccScale,
    /// Data directory, made when missing; cluster.toml in it describes the cluster
    #[arg(long, value_name = "DIR", default_value = "./manxdb-cluster")]
    pub data: PathBuf,
    /// The first node listens here, the others on the ports behind it
    #[arg(long, default_value_t = 7400, value_name = "PORT")]
    pub base_port: u16,
    /// The page of the cluster, health and metrics of the first node are here, those of the others on the
    /// ports behind it [default: behind the ports of the nodes]
    #[arg(long, value_name = "PORT")]
    pub admin_port: Option<u16>,
    /// Start nodes that die again
    #[arg(long)]
    pub supervise: bool,
}
