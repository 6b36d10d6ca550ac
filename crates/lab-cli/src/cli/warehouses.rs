//! The command line of `bench rack-tpcc`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use manxdb::cli::TpccScale;

/// What `bench rack-tpcc --help` says behind its flags.
pub const WAREHOUSES_HELP: &str = "\
The five transactions of TPC-C with the standard's parameters, on rows in one-sided memory; a\n\
terminal has a warehouse of its own as long as there are as many. Memory servers and terminals are\n\
processes of this machine, started here and ended; all data is in memory. When the load is over\n\
the consistency conditions of the standard are checked.";

/// What decides a run.
#[derive(Debug, Clone, Copy, PartialEq, Args, Serialize, Deserialize)]
pub struct WarehousesShape {
    /// Warehouses
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub warehouses: u32,
    /// How large each is
    #[arg(long, value_enum, default_value_t = TpccScale::Tiny, value_name = "SCALE")]
    pub tpcc_scale: TpccScale,
    /// Terminals, each a process that asks without a pause
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub clients: u16,
    /// Memory servers
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub servers: u16,
    /// Reads are not validated: snapshot isolation instead of serializable
    #[arg(long)]
    pub snapshot: bool,
    /// Versions that memory keeps of a row
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=16))]
    pub versions: u8,
    /// Servers that each commit is logged on before it is installed; 0: none
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub logs: u16,
    /// How long terminals ask
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=3_600))]
    pub seconds: u16,
    /// Rows that each terminal has room for; it ends early rather than run out of it
    #[arg(long, value_name = "COUNT", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    pub rows: u64,
    /// Equal seeds ask for the same
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Flags of `bench rack-tpcc`.
#[derive(Debug, Args)]
pub struct WarehousesRun {
    /// What decides it.
    #[command(flatten)]
    pub shape: WarehousesShape,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What a process of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WarehousesRole {
    /// A server of memory
    Memory,
    /// A terminal
    Terminal,
}

/// Flags of a process of a run.
#[derive(Debug, Args)]
pub struct WarehousesPart {
    /// What it is
    #[arg(value_enum)]
    pub role: WarehousesRole,
    /// Which of its kind
    pub number: u16,
    /// Where the processes of the run meet
    #[arg(long)]
    pub directory: PathBuf,
    /// What decides the run, as JSON
    #[arg(long)]
    pub shape: String,
}
