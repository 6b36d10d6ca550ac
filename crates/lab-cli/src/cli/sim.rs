//! The command line of simulated clusters.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use manxdb::cli::TpccScale;
use manxdb_dast::{Crossing, Survive};
use manxdb_lab::systems::SystemName;

/// Below the flags.
pub const SIM_HELP: &str = "\
Time is virtual: a run takes as long as its events do, and equal flags make equal output, byte\n\
for byte, when that is no terminal. Every run is judged: all calls end, replicas of a shard are\n\
equal, and what must be true of the workload's rows or answers is true. The exit code is 1 when\n\
it is not.\n\n\
The latency of every call is split along the messages and waits that led to its answer; the\n\
parts add up to it exactly. A call is drawn with --timeline: CLIENT.NUMBER, or the one at a place\n\
of its class, such as slowest-local, p99-cross, median-local, fastest-cross.\n\n\
Faults are written WHEN+HOW-LONG WHAT, for example:\n  \
--fault '2s+500ms crash n3'           its memory is lost\n  \
--fault '2s+1s part r0 r1'            no message between two regions\n  \
--fault '2s+1s delay r0>* 80ms'       messages from a region take longer\n  \
--fault '2s+0s step n3 -500ms'        a clock is set back\n  \
--fault '2s+1s slow n3 x10'           a CPU is slow\n\
Nodes of the systems beside dast keep their memory: crash and wipe are for dast.\n\
Others: wipe, pause, drift n3 200ppm, freeze n3, cut n1,n2 r0, loss r0>r1 20000ppm,\n\
duplicate, reorder *>* 5000ppm 20ms.";

/// Flags of `sim`.
#[derive(Debug, Args)]
pub struct SimRun {
    /// What orders the transactions: dast, or what it is compared with: janus, slog,
    /// slog-by-piece, tapir, detock
    #[arg(default_value = "dast", value_parser = system)]
    pub system: SystemName,
    /// How cross-region transactions get their places: anticipated (two round trips between
    /// regions), or ahead (one) (dast)
    #[arg(long, default_value = "anticipated", value_name = "MODE", value_parser = Crossing::of_name)]
    pub crossing: Crossing,
    /// How far ahead of its clock a region tells another one marks, until it has measured the way,
    /// in milliseconds (--crossing ahead) [default: half of --wan-ms and 7.5]
    #[arg(long, value_name = "MS")]
    pub lead_ms: Option<f64>,
    /// What the loss of leaves everything else going: zone (a node of each shard and of each region's
    /// managers), or region, which the others fence when it is silent (three regions or more,
    /// --crossing ahead) (dast)
    #[arg(long, default_value = "zone", value_name = "WHAT", value_parser = Survive::of_name)]
    pub survive: Survive,
    /// What is asked
    #[arg(long, value_enum, default_value_t = WorkloadChoice::Payment)]
    pub workload: WorkloadChoice,
    /// Regions
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=32))]
    pub regions: u32,
    /// Shards of each region, with three replicas each
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub shards: u32,
    /// Clients of each shard, in its region
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub clients: u32,
    /// Calls that each client has under way
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub outstanding: u32,
    /// Share of calls that touch several regions, in percent (payment, tpca, append) [default: 10]
    #[arg(long, value_name = "PERCENT")]
    pub crt_percent: Option<f64>,
    /// Exponent of the Zipf distribution of keys, 0 (uniform) to 4 (tpca) [default: 0.5]
    #[arg(long)]
    pub theta: Option<f64>,
    /// Lists of each shard: the fewer, the more conflicts (append) [default: 32]
    #[arg(long)]
    pub lists: Option<u32>,
    /// Share of calls of which a part waits for values that others find, in percent (append)
    /// [default: 20]
    #[arg(long, value_name = "PERCENT")]
    pub deferred_percent: Option<f64>,
    /// The parameters of TPC-C's standard instead of the DAST paper's (tpcc)
    #[arg(long)]
    pub standard: bool,
    /// Share of payments by customers of another warehouse, in percent (tpcc) [default: 15]
    #[arg(long, value_name = "PERCENT")]
    pub remote_payments: Option<f64>,
    /// Sums that payments add to (tpcc, payment): tpcc, or published, which leaves the warehouse's
    /// alone as DAST's artifact does [default: tpcc]
    #[arg(long, value_enum, value_name = "SUMS")]
    pub payment_sums: Option<PaymentSumsChoice>,
    /// The warehouse of every shard (tpcc, payment) [default: full]
    #[arg(long, value_enum, value_name = "SCALE")]
    pub tpcc_scale: Option<TpccScale>,
    /// Round trip within a region, in milliseconds
    #[arg(long, default_value_t = 5.0, value_name = "MS")]
    pub lan_ms: f64,
    /// Round trip between regions, in milliseconds
    #[arg(long, default_value_t = 100.0, value_name = "MS")]
    pub wan_ms: f64,
    /// Up to so much more or less for a message within a region, in milliseconds
    #[arg(long, default_value_t = 0.0, value_name = "MS")]
    pub lan_jitter_ms: f64,
    /// Up to so much more or less for a message between regions, as in `manxdb cluster up`, in
    /// milliseconds
    #[arg(long, default_value_t = 0.0, value_name = "MS")]
    pub wan_jitter_ms: f64,
    /// How wrong clocks are at the start, at most, either way, in milliseconds
    #[arg(long, default_value_t = 0.0, value_name = "MS")]
    pub clock_offset_ms: f64,
    /// How much clocks gain or lose, at most, in millionths
    #[arg(long, default_value_t = 0, value_name = "PPM", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub clock_drift_ppm: u32,
    /// What work costs the servers
    #[arg(long, value_enum, default_value_t = CpuChoice::Modelled)]
    pub cpu: CpuChoice,
    /// What clients are promised
    #[arg(long, value_enum, default_value_t = LevelChoice::Serializable)]
    pub level: LevelChoice,
    /// Decides everything random
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// How long to measure, in virtual seconds
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// How long to run before measuring, in virtual seconds
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    pub warm_up: f64,
    /// Something that goes wrong; may be given several times
    #[arg(long, value_name = "FAULT")]
    pub fault: Vec<String>,
    /// Draw one call's messages, and what its latency consists of
    #[arg(long, value_name = "CALL")]
    pub timeline: Option<String>,
    /// Write parameters and measurement to this file, as JSON, times in microseconds
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write every measured call and the parts of its latency to this file, as CSV, times in
    /// microseconds
    #[arg(long, value_name = "FILE")]
    pub calls: Option<PathBuf>,
}

/// A system by its name.
fn system(name: &str) -> Result<SystemName, String> {
    SystemName::ALL
        .into_iter()
        .find(|system| system.name() == name)
        .ok_or_else(|| format!("no such system; there are {}", SystemName::names()))
}

/// Workloads of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadChoice {
    /// TPC-C's Payment alone
    Payment,
    /// The five transactions of TPC-C, one warehouse a shard
    Tpcc,
    /// Three increments, keys of a Zipf distribution
    Tpca,
    /// Reads of lists and appends to them, whose order is proved
    Append,
}

/// Sums that payments add to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PaymentSumsChoice {
    /// Those of warehouse and district
    Tpcc,
    /// That of the district
    Published,
}

/// What work costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CpuChoice {
    /// What published systems take: servers have a line, and a throughput they cannot exceed
    Modelled,
    /// Nothing: what is left are message delays
    Free,
}

/// What a client is promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LevelChoice {
    /// Some serial order
    Serializable,
    /// And sessions keep their own order
    Session,
    /// And the order agrees with real time
    Strict,
}
