//! On what an experiment ran, and how long it took: the only part of its results that differs from
//! run to run.

use std::fmt;
use std::fs;
use std::process::Command;
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

/// What was taken over from an earlier run.
#[derive(Default)]
pub struct Resumed {
    /// Trials of it.
    pub records: usize,
    /// The commit it was of, if that was recorded.
    pub commit: Option<String>,
    /// Whether an optimized program made them, if that was recorded.
    pub optimized: Option<bool>,
}

/// What is known of a run when it begins.
pub struct Began {
    commit: Option<String>,
    load: Option<f64>,
}

impl Began {
    /// Looks at the sources and at what runs beside it.
    pub fn now() -> Self {
        Self {
            commit: commit(),
            load: load(),
        }
    }
}

/// The commit of the sources that this program was built from: as it was built to say, or of the
/// directory of its sources if that is there; with `-dirty` if they were changed since.
fn commit() -> Option<String> {
    if let Some(built) = option_env!("MANXDB_COMMIT") {
        return Some(built.to_owned());
    }
    let mut git = Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR")]);
    git.args([
        "describe",
        "--always",
        "--dirty",
        "--exclude",
        "*",
        "--abbrev=12",
    ]);
    let said = git.output().ok().filter(|output| output.status.success())?;
    let commit = String::from_utf8(said.stdout).ok()?.trim().to_owned();
    (!commit.is_empty()).then_some(commit)
}

/// Processes that could run, of the last minute.
fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// `run.json`, when an experiment begins and when it has ended.
pub fn run_file(
    args: &LabRun,
    (threads, resumed, began): (usize, &Resumed, &Began),
    took: Option<&Took>,
) -> String {
    let ended = took.and_then(|_| load());
    let load: Vec<f64> = began.load.into_iter().chain(ended).collect();
    let value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": began.commit,
        "load": load,
        "resumed": {"records": resumed.records, "commit": resumed.commit, "optimized": resumed.optimized},
        "optimized": !cfg!(debug_assertions),
        "experiment": args.experiment,
        "scale": args.scale,
        "seed": args.seed,
        "seeds": args.seeds,
        "regions": args.regions,
        "shards": args.shards,
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
