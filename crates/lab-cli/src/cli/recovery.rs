//! The command line of `bench rack-recovery`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// What `bench rack-recovery --help` says behind its flags.
pub const RECOVERY_HELP: &str = "\
A checkout reads three products, takes one of each out of stock, and inserts an order and three order\n\
lines, all of them rows under keys in the memory of servers that others would share (`manxdb memory`).\n\
Servers and clients are processes of this machine, started here and ended; clients have places with\n\
leases, and look after each other.\n\n\
For --seconds they buy. Then a client is killed with SIGKILL, with three products locked, which the\n\
starter tries to buy from then on: that it can is the recovery of the locks. After --seconds a memory\n\
server is killed with SIGKILL, and after --seconds more the run is over. Then the books are checked:\n\
each order that was acknowledged is there, whole, three products are sold for each, and nobody holds a\n\
lock. With --logs 0 nobody could go on for the dead: then nobody is killed.";

/// The client that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Victim {
    /// None
    None,
    /// One that looks after the others
    Leader,
    /// One that does not
    Other,
}

/// The memory server that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// None
    None,
    /// The first one, whose copies of the table of places and of the vector are those that count
    First,
    /// The last one
    Last,
}

/// What decides a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args, Serialize, Deserialize)]
pub struct RecoveryShape {
    /// Clients, each a process that buys without a pause
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=32))]
    pub clients: u16,
    /// Memory servers
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub servers: u16,
    /// Memory servers that have each row
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub replicas: u16,
    /// Memory servers that each commit is logged on; with replicas, as many. 0: none, with one
    /// replica and no leases
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=16))]
    pub logs: u16,
    /// Products
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(3..=10_000_000))]
    pub products: u64,
    /// Bytes of a product, and room of all other rows
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u16).range(128..=1_024))]
    pub row_bytes: u16,
    /// Who does not show for so many milliseconds that it lives is dead
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u16).range(100..=60_000))]
    pub lease_ms: u16,
    /// Fill a client's tables of pages before it buys, as cards have them from when memory is
    /// registered; it has its place by then, so the lease must be longer than that takes
    #[arg(long)]
    #[serde(default)]
    pub populate: bool,
    /// The client that is killed
    #[arg(long, value_enum, default_value_t = Victim::Other, value_name = "WHICH")]
    pub kill_client: Victim,
    /// The memory server that is killed
    #[arg(long, value_enum, default_value_t = Loss::First, value_name = "WHICH")]
    pub kill_server: Loss,
    /// How long all goes well before and after each kill; without kills at most, until all orders
    /// are placed
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=600))]
    pub seconds: u16,
    /// Orders that there is room for, of all clients; where somebody is killed, a client that has
    /// an eighth of its share left slows down
    #[arg(long, value_name = "COUNT", default_value_t = 400_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    pub orders: u64,
    /// Equal seeds draw equal products
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Flags of `bench rack-recovery`.
#[derive(Debug, Args)]
pub struct RecoveryRun {
    /// What decides it.
    #[command(flatten)]
    pub shape: RecoveryShape,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What a process of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecoveryRole {
    /// A server of memory
    Memory,
    /// A client
    Client,
}

/// Flags of a process of a run.
#[derive(Debug, Args)]
pub struct RecoveryPart {
    /// What it is
    #[arg(value_enum)]
    pub role: RecoveryRole,
    /// Which of its kind
    pub number: u16,
    /// Where the processes of the run meet
    #[arg(long)]
    pub directory: PathBuf,
    /// What decides the run, as JSON
    #[arg(long)]
    pub shape: String,
}
