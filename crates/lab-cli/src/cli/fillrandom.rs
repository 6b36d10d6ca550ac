//! The command line of `bench fillrandom`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use manxdb::cli::CompactionArgs;

/// What `bench fillrandom --help` says behind its flags.
pub const FILLRANDOM_HELP: &str = "\
As db_bench's fillrandom: every thread puts so many values under keys drawn at random, of 16 bytes,\n\
out of as many keys as there are puts, so that some are replaced and some never written. When the\n\
load is over the memtable is written out and all compactions end (the drain); then every entry is\n\
read and compared with what was put. --threads 16 --puts 4000000 is the load of CaaS-LSM's paper.\n\n\
Times and CPU are of the load and the drain, without opening and comparing.";

/// How blocks of sorted files are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompressionChoice {
    /// Not at all
    None,
    /// LZ4: little CPU
    Lz4,
    /// Zstandard: much CPU, small files
    Zstd,
}

/// Flags of `bench fillrandom`.
#[derive(Debug, Args)]
pub struct FillRandomRun {
    /// Directory for the database; there must be nothing yet
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Puts of each thread
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub puts: u32,
    /// Threads that put
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub threads: u32,
    /// Size of a value in bytes, half of them random
    #[arg(long, value_name = "BYTES", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub value_bytes: u32,
    /// Equal seeds put equal values under equal keys
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Flushes and compactions of the database at a time, those that are elsewhere too
    #[arg(long, value_name = "COUNT", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub background_jobs: u32,
    /// Size of a memtable in KiB
    #[arg(long, value_name = "KIB", default_value_t = 64 << 10, value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    pub memtable_kb: u32,
    /// Size of a sorted file in KiB
    #[arg(long, value_name = "KIB", default_value_t = 64 << 10, value_parser = clap::value_parser!(u32).range(64..=4_194_304))]
    pub file_kb: u32,
    /// Size of level 1 in KiB, for four files on level 0: it grows with --compaction-level0-files
    #[arg(long, value_name = "KIB", default_value_t = 256 << 10, value_parser = clap::value_parser!(u32).range(64..=67_108_864))]
    pub level1_kb: u32,
    /// How sorted files are compressed
    #[arg(long, value_enum, default_value = "none")]
    pub compression: CompressionChoice,
    /// Write no log: what is in the memtable would be lost with the process
    #[arg(long)]
    pub no_wal: bool,
    /// Let threads that wait for another's put sleep at once: RocksDB lets them spin a while, which
    /// takes CPU that does nothing
    #[arg(long)]
    pub no_spin: bool,
    /// Where compactions are done.
    #[command(flatten)]
    pub compaction: CompactionArgs,
    /// Wait for the pool whatever it takes, as published systems do: nothing that it has taken is
    /// compacted here because writes are about to stop, or because it takes long
    #[arg(long)]
    pub patient: bool,
    /// Print JSON instead of db_bench's line
    #[arg(long)]
    pub json: bool,
}
