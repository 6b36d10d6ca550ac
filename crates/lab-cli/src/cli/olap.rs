//! The command line of `bench olap`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// What `bench olap --help` says behind its flags.
pub const OLAP_HELP: &str = "\
Nodes are processes of this machine, started here and ended, with one thread each. Every node makes\n\
its own rows, of a key and what goes with it; then all join or add up together, and what they find is\n\
compared with what is known. A join has two relations of --rows a node, each key once in each; an\n\
aggregation counts and sums --rows a node by keys drawn from --groups.\n\n\
ghj         hash join, rows travel over TCP\n\
ghj-bloom   the same, through Bloom filters of the other relation\n\
rdma-ghj    hash join, rows travel as writes into other nodes' memory, a buffer for each node\n\
rrj         radix join: writes from a buffer for each partition that fits a cache\n\
agg         each node adds its rows up, what it has then travels over TCP\n\
rdma-agg    adds up in a table that fits a cache, what it has no place for travels as writes";

/// How nodes join or add up.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Hash join over TCP
    Ghj,
    /// The same, through Bloom filters
    GhjBloom,
    /// Hash join by writes into other nodes' memory
    RdmaGhj,
    /// Radix join by writes into other nodes' memory
    Rrj,
    /// Aggregation over TCP
    Agg,
    /// Aggregation by writes into other nodes' memory
    RdmaAgg,
}

impl Algorithm {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ghj => "ghj",
            Self::GhjBloom => "ghj-bloom",
            Self::RdmaGhj => "rdma-ghj",
            Self::Rrj => "rrj",
            Self::Agg => "agg",
            Self::RdmaAgg => "rdma-agg",
        }
    }

    /// Whether it joins; the others add up.
    pub fn is_join(self) -> bool {
        !matches!(self, Self::Agg | Self::RdmaAgg)
    }
}

/// What decides a run.
#[derive(Debug, Clone, Copy, PartialEq, Args, Serialize, Deserialize)]
pub struct OlapShape {
    /// How nodes join or add up
    #[arg(long, value_enum, default_value = "rrj")]
    pub algorithm: Algorithm,
    /// Nodes, each a process
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=16))]
    pub nodes: u16,
    /// Rows of a node; of each relation, if they are joined
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=128_000_000))]
    pub rows: u32,
    /// Bytes of a row, of which the key has four: a multiple of 8
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = clap::value_parser!(u16).range(8..=1_024))]
    pub width: u16,
    /// Share of rows with a partner in the other relation, from 0 to 1; joins only [default: 1]
    #[arg(long, value_name = "SHARE")]
    pub selectivity: Option<f64>,
    /// Groups that keys are drawn from; aggregations only [default: 1000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub groups: Option<u32>,
    /// Equal seeds draw equal groups
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// Flags of `bench olap`.
#[derive(Debug, Args)]
pub struct OlapRun {
    /// What decides it.
    #[command(flatten)]
    pub shape: OlapShape,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of a node of a run.
#[derive(Debug, Args)]
pub struct OlapNode {
    /// Which
    pub number: u16,
    /// Where the nodes of the run meet
    #[arg(long)]
    pub directory: PathBuf,
    /// What decides the run, as JSON
    #[arg(long)]
    pub shape: String,
}
