//! The command line, with the text of `--help`.

mod checkout;
mod cluster;
mod fillrandom;
mod lab;
mod olap;
mod recovery;
mod sim;
mod warehouses;

use clap::{Args, Parser, Subcommand};

pub use self::checkout::{CHECKOUT_HELP, CheckoutPart, CheckoutRun, CheckoutShape, Part, System};
pub use self::cluster::{
    AppendRun, CLUSTER_LOAD_HELP, ClusterCommand, ClusterLoad, ClusterTarget, ClusterUp, CurpUp,
    DastUp, PaymentRun, TpcaRun, TpccIsolation, TpccOnError, TpccRun, TpccServer,
};
pub use self::fillrandom::{CompressionChoice, FILLRANDOM_HELP, FillRandomRun};
pub use self::lab::{EVERY, LabCommand, LabRun};
pub use self::olap::{Algorithm, OLAP_HELP, OlapNode, OlapRun, OlapShape};
pub use self::recovery::{
    Loss, RECOVERY_HELP, RecoveryPart, RecoveryRole, RecoveryRun, RecoveryShape, Victim,
};
pub use self::sim::{CpuChoice, LevelChoice, PaymentSumsChoice, SIM_HELP, SimRun, WorkloadChoice};
pub use self::warehouses::{
    WAREHOUSES_HELP, WarehousesPart, WarehousesRole, WarehousesRun, WarehousesShape,
};

/// ManxDB's laboratory: loads, clusters on one machine, experiments and simulations.
#[derive(Debug, Parser)]
#[command(
    name = "manxdb-lab",
    version,
    about,
    after_help = "\
`manxdb bench`, `lab`, `sim` and `cluster` run this program when it is in the directory of manxdb;\n\
nodes of clusters, memory servers and compaction workers are processes of manxdb."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the laboratory does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Put a server or a cluster under load and measure it
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Run a cluster over several regions, on this machine, with emulated distances
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Repeat published experiments in the simulator, and draw their figures
    #[command(subcommand)]
    Lab(LabCommand),
    /// Run a cluster over several regions in virtual time, and say where the time of calls went
    #[command(after_help = SIM_HELP, allow_negative_numbers = true)]
    Sim(Box<SimRun>),
}

/// Workloads: of SQL over the MySQL protocol, on any server; of procedures, on a cluster; of puts, on
/// RocksDB.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Lobsters, a link-sharing site: the statements of its pages, on a MySQL server
    #[command(subcommand)]
    Lobsters(LobstersCommand),
    /// Reads of lists and appends to them, on a cluster: --check proves the order serializable
    #[command(after_help = CLUSTER_LOAD_HELP)]
    Append(AppendRun),
    /// TPC-C on a cluster: the five transactions, one warehouse a shard
    #[command(after_help = CLUSTER_LOAD_HELP)]
    Tpcc(TpccRun),
    /// TPC-C's Payment alone, on a cluster, with a share of cross-region ones to be chosen
    #[command(after_help = CLUSTER_LOAD_HELP)]
    Payment(PaymentRun),
    /// TPC-A as in the DAST paper, on a cluster: three increments, keys of a Zipf distribution
    #[command(after_help = CLUSTER_LOAD_HELP)]
    Tpca(TpcaRun),
    /// Random puts on RocksDB as db_bench does them, with or without a pool that compacts
    #[command(after_help = FILLRANDOM_HELP)]
    Fillrandom(Box<FillRandomRun>),
    /// Checkouts of three products in a rack: one-sided memory, or what it is compared with
    #[command(after_help = CHECKOUT_HELP)]
    Checkout(CheckoutRun),
    /// TPC-C in a rack: the five transactions on rows in one-sided memory
    #[command(after_help = WAREHOUSES_HELP)]
    RackTpcc(WarehousesRun),
    /// Checkouts in a rack while a client and a memory server are killed, or what replicas cost
    #[command(after_help = RECOVERY_HELP)]
    RackRecovery(RecoveryRun),
    /// One process of a rack-recovery run, started by it
    #[command(hide = true)]
    RackRecoveryPart(RecoveryPart),
    /// One process of a rack-tpcc run, started by it
    #[command(hide = true)]
    RackTpccPart(WarehousesPart),
    /// One process of a checkout run, started by it
    #[command(hide = true)]
    CheckoutPart(CheckoutPart),
    /// Joins and aggregations over nodes: by messages, or by writes into each other's memory
    #[command(after_help = OLAP_HELP)]
    Olap(OlapRun),
    /// One node of an olap run, started by it
    #[command(hide = true)]
    OlapNode(OlapNode),
}

/// What to do with Lobsters.
#[derive(Debug, Subcommand)]
pub enum LobstersCommand {
    /// Make the database and fill it; it must not have these tables yet
    Fill {
        /// Which server, and how large the site is
        #[command(flatten)]
        site: SiteArgs,
        /// Name the owners of rows in the tables
        #[arg(long)]
        annotated: bool,
        /// Storage engine of the tables, for example ROCKSDB in MariaDB; the server's own if not given
        #[arg(long, value_name = "NAME")]
        engine: Option<String>,
        /// ManxDB: also make materialized views that answer statements which join and group
        #[arg(long)]
        views: bool,
        /// How many INSERTs are under way at once, on a connection each
        #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        inflight: u16,
    },
    /// Send pages and measure them
    #[command(after_help = "\
With --rate pages arrive on their own, whatever the server does (a Poisson process), and a\n\
page's time runs from its arrival: waiting for a connection counts. Without it every\n\
connection asks for its next page when it has the last one.")]
    Run(LobstersRun),
    /// Send the same pages to several servers, one statement at a time, and compare every answer
    Compare {
        /// The first server, and how large the site is
        #[command(flatten)]
        site: SiteArgs,
        /// A server whose answers are compared with the first one's; may be given several times
        #[arg(long, value_name = "URL", required = true)]
        against: Vec<String>,
        /// How many pages
        #[arg(long, default_value_t = 500)]
        pages: usize,
        /// Also ask for the reader's notifications, on the five kinds of pages that show them
        #[arg(long)]
        notifications: bool,
    },
}

/// Which server, and how large the site is.
#[derive(Debug, Args)]
pub struct SiteArgs {
    /// The server and the database, for example mysql://root@127.0.0.1:3306/lobsters
    #[arg(long)]
    pub url: String,
    /// Password, when the address has none
    #[arg(
        long,
        env = "MANXDB_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true
    )]
    pub password: Option<String>,
    /// Size of the site: 1 is 5,797 users, 40,650 stories, 121,270 comments
    #[arg(long, default_value_t = 0.1)]
    pub scale: f64,
    /// Equal seeds make equal rows and equal requests
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// A measurement.
#[derive(Debug, Args)]
pub struct LobstersRun {
    /// Which server, and how large the site is
    #[command(flatten)]
    pub site: SiteArgs,
    /// Pages that arrive each second
    #[arg(long, value_name = "PAGES")]
    pub rate: Option<f64>,
    /// Connections: at most so many pages are served at a time
    #[arg(long, default_value_t = 8)]
    pub connections: usize,
    /// How long to measure, in seconds
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// How long to run before measuring, in seconds
    #[arg(long, default_value_t = 1.0)]
    pub warm_up: f64,
    /// Also ask for the reader's notifications, on the five kinds of pages that show them
    #[arg(long)]
    pub notifications: bool,
    /// Only this kind of page, for example Frontpage
    #[arg(long, value_name = "KIND")]
    pub only: Option<String>,
    /// With --json: also each page's time, and what the server says of itself
    #[arg(long, requires = "json")]
    pub details: bool,
    /// With --json: also how many bytes a cache of all answers would hold; pages take longer
    #[arg(long, requires = "json")]
    pub answers: bool,
    /// Process of the server on this machine, to read its CPU time
    #[arg(long, value_name = "PID")]
    pub server_pid: Option<u32>,
    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,
}
