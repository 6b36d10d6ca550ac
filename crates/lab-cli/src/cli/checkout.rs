//! The command line of `bench checkout`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// What `bench checkout --help` says behind its flags.
pub const CHECKOUT_HELP: &str = "\
A checkout reads three products of 1 KiB, takes one of each out of stock, and inserts an order and\n\
three order lines. Servers and clients are processes of this machine, started here and ended; all\n\
data is in memory. When the load is over the books are checked: products sold against orders.\n\n\
rsi                one-sided memory: a vector of timestamps, snapshot isolation\n\
rsi-serializable   the same, where reads are validated\n\
rsi-published      as it was published: a bit vector of timestamps, one version\n\
two-sided          two-phase commit, messages through memory\n\
trad-si            two-phase commit, messages over TCP";

/// A system that sells.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// One-sided memory, snapshot isolation
    Rsi,
    /// One-sided memory, serializable
    RsiSerializable,
    /// One-sided memory as it was published: a bit vector, one version
    RsiPublished,
    /// Two-phase commit, messages through memory
    TwoSided,
    /// Two-phase commit, messages over TCP
    TradSi,
}

/// What decides a run.
#[derive(Debug, Clone, Copy, PartialEq, Args, Serialize, Deserialize)]
pub struct CheckoutShape {
    /// System that sells
    #[arg(long, value_enum, default_value = "rsi")]
    pub system: System,
    /// Clients, each a process that buys without a pause
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=200))]
    pub clients: u16,
    /// Memory servers or resource managers
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub servers: u16,
    /// Products in all
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(3..=100_000_000))]
    pub products: u64,
    /// Products that are bought: the first so many [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(3..))]
    pub hot: Option<u64>,
    /// Versions that one-sided memory keeps of a product
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=16))]
    pub versions: u8,
    /// Servers that each one-sided commit is logged on before it is installed; 0: none
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub logs: u16,
    /// How long clients buy
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=3_600))]
    pub seconds: u16,
    /// Orders that there is room for; a client that has none left has bought enough
    #[arg(long, value_name = "COUNT", default_value_t = 1_500_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub orders: u64,
    /// Equal seeds draw equal products
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl CheckoutShape {
    /// Orders that each client has room for.
    pub fn orders_each(&self) -> u64 {
        self.orders.div_ceil(u64::from(self.clients.max(1)))
    }
}

/// Flags of `bench checkout`.
#[derive(Debug, Args)]
pub struct CheckoutRun {
    /// What decides it.
    #[command(flatten)]
    pub shape: CheckoutShape,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What a process of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// A server of memory
    Memory,
    /// A resource manager
    Resource,
    /// The transaction manager
    Manager,
    /// A client
    Client,
}

/// Flags of a process of a run.
#[derive(Debug, Args)]
pub struct CheckoutPart {
    /// What it is
    #[arg(value_enum)]
    pub part: Part,
    /// Which of its kind
    pub number: u16,
    /// Where the processes of the run meet
    #[arg(long)]
    pub directory: PathBuf,
    /// What decides the run.
    #[command(flatten)]
    pub shape: CheckoutShape,
}
