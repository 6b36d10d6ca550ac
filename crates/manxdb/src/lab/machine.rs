//! On what an experiment ran, and how long it took: the only part of its results that differs from
//! run to run.

use std::fmt;
use std::fs;
use std::time::Duration;

use serde_json::json;

use super::fill::Quotas;
use crate::cli::LabRun;

/// How long an experiment took.
pub struct Took {
    /// On a clock.
    pub wall: Duration,
    /// Simulated events.
    pub events: u64,
}

impl Took {
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    fn rate(&self) -> f64 {
        self.events as f64 / self.wall.as_secs_f64().max(1e-9)
    }
}

impl fmt::Display for Took {
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = peak_memory_mib().map(|mib| format!(", {mib} MiB at most"));
        write!(
            formatter,
            "{:.1} million events in {:.1} s, {:.2} million a second{}",
            self.events as f64 / 1e6,
            self.wall.as_secs_f64(),
            self.rate() / 1e6,
            memory.unwrap_or_default()
        )
    }
}

/// Cores of this machine.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The first value of a name in one of the kernel's tables.
fn kernel_says(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

fn mebibytes(file: &str, name: &str) -> Option<u64> {
    let value = kernel_says(file, name)?;
    let kibibytes: u64 = value.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes / 1_024)
}

/// The most memory that this process has had.
fn peak_memory_mib() -> Option<u64> {
    mebibytes("/proc/self/status", "VmHWM")
}

/// `run.json`, when an experiment begins and when it has ended.
pub fn run_file(args: &LabRun, threads: usize, took: Option<&Took>) -> String {
    let value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "optimized": !cfg!(debug_assertions),
        "experiment": args.experiment,
        "scale": args.scale,
        "seed": args.seed,
        "seeds": args.seeds,
        "at": args.at,
        "threads": threads,
        "machine": {
            "processor": kernel_says("/proc/cpuinfo", "model name"),
            "cores": cores(),
            "memory_mib": mebibytes("/proc/meminfo", "MemTotal"),
            "system": format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            "cpu_quotas": Quotas::here().name(),
        },
        "finished": took.is_some(),
        "wall_seconds": took.map(|took| took.wall.as_secs_f64()),
        "events": took.map(|took| took.events),
        "events_per_second": took.map(|took| took.rate().round()),
        "peak_memory_mib": took.and_then(|_| peak_memory_mib()),
    });
    format!("{value:#}\n")
}
