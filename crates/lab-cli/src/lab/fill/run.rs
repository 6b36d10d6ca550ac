//! Runs a trial: control plane, workers and databases as processes of this program.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use manxdb_compaction::transport::link::Route;
use manxdb_compaction::transport::security::Security;
use serde::Deserialize;
use serde_json::Value;

use super::cgroup::Quotas;
use super::delay::Way;
use super::outcome::{Filled, Outcome};
use super::process::{Process, all_end};
use super::trial::{Database, Mode, Placement, Storage, Trial};

/// The volume that all share, by name; where there are several, before the number of its zone.
const VOLUME: &str = "lab";
/// A run that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(6 * 3_600);
/// Workers that are up say so within this time.
const HELLO_PATIENCE: Duration = Duration::from_secs(30);

/// Runs a trial in a directory of its own, which is gone afterwards.
///
/// # Errors
/// What failed, with the end of its log.
pub fn run(trial: &Trial) -> Result<Outcome, String> {
    let place = Place::make(trial)?;
    let quotas = Quotas::here();
    let pool = match trial.mode {
        Mode::Local => None,
        _ => Some(Pool::start(trial, &place, quotas)?),
    };
    let mut databases = Vec::new();
    for (number, database) in trial.databases.iter().enumerate() {
        let arguments = fill_arguments(trial, number, database, &place, pool.as_ref());
        let name = format!("database-{number}");
        let cpus = Some(database.placement.cpus);
        databases.push(Process::start(&name, &place.0, &arguments, quotas, cpus)?);
    }
    all_end(&mut databases, PATIENCE)?;
    let filled = databases.iter().map(filled).collect::<Result<_, _>>()?;
    let (worker_cpu, control_cpu) = pool.as_ref().map_or((0.0, 0.0), Pool::cpu);
    let worker_moved = pool.as_ref().map_or(Ok(0), Pool::moved)?;
    Ok(Outcome {
        quotas,
        databases: filled,
        worker_cpu,
        control_cpu,
        worker_moved,
    })
}

/// A directory for a run.
pub struct Place(PathBuf);

impl Place {
    /// Makes it, with the volumes of a trial.
    ///
    /// # Errors
    /// The system's.
    pub fn make(trial: &Trial) -> Result<Self, String> {
        let number = super::next_number();
        let name = format!("manxdb-lab-{}-{number}", std::process::id());
        let place = Self(std::env::temp_dir().join(name));
        for zone in trial.zones() {
            let volume = place.volume(trial, zone);
            std::fs::create_dir_all(&volume)
                .map_err(|error| format!("cannot make {}: {error}", volume.display()))?;
        }
        Ok(place)
    }

    /// The volume of a zone: everybody's, if all share a directory.
    pub fn volume(&self, trial: &Trial, zone: u16) -> PathBuf {
        self.0.join(volume_name(trial, zone))
    }

    /// That volume as it is named to somebody in zone `from`.
    fn volume_from(&self, trial: &Trial, zone: u16, from: u16) -> String {
        let (name, path) = (volume_name(trial, zone), self.volume(trial, zone));
        let path = path.display();
        let delay = if zone == from { 0 } else { trial.delay_ms };
        match trial.storage {
            Storage::Directory => format!("{name}={path}"),
            Storage::Objects => format!("{name}=file://{path}?delay_ms={delay}"),
        }
    }

    /// The data directory of a database.
    fn database(&self, trial: &Trial, number: usize) -> PathBuf {
        let name = format!("database-{number}");
        match trial.storage {
            Storage::Directory => self.0.join(VOLUME).join(name),
            Storage::Objects => self.0.join(name),
        }
    }
}

fn volume_name(trial: &Trial, zone: u16) -> String {
    match trial.storage {
        Storage::Directory => VOLUME.to_owned(),
        Storage::Objects => format!("{VOLUME}-{zone}"),
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // in the directory for temporary files
    }
}

/// Control plane and workers.
pub struct Pool {
    // Workers end first: they would look for their control plane.
    workers: Vec<Process>,
    control: Process,
    address: SocketAddr,
    /// The way of zones other than the control plane's.
    far: Option<Way>,
}

impl Pool {
    /// Starts them, and waits until all workers have reached the control plane.
    ///
    /// # Errors
    /// What failed, with the end of its log.
    pub fn start(trial: &Trial, place: &Place, quotas: Quotas) -> Result<Self, String> {
        let arguments = control_arguments(trial, &place.0);
        let mut control = Process::start("control", &place.0, &arguments, quotas, None)?;
        let said = control.logs("control plane up address=")?;
        let address = said.split_whitespace().next().unwrap_or_default();
        let address: SocketAddr = address
            .parse()
            .map_err(|error| format!("control plane at '{address}': {error}"))?;
        let delay = Duration::from_millis(u64::from(trial.delay_ms));
        let far = Way::start(address, delay).map_err(|error| format!("a way there: {error}"));
        let mut pool = Self {
            workers: Vec::new(),
            control,
            address,
            far: (!delay.is_zero()).then_some(far).transpose()?,
        };
        for (number, placement) in trial.workers.iter().enumerate() {
            let name = format!("worker-{number}");
            let arguments = pool.worker_arguments(trial, placement, place, &name);
            let cpus = Some(placement.cpus);
            let worker = Process::start(&name, &place.0, &arguments, quotas, cpus)?;
            pool.workers.push(worker);
            // One after the other: which worker is whose depends on nothing but the trial.
            pool.wait_for_workers()?;
        }
        pool.control.is_up();
        pool.workers.iter_mut().for_each(Process::is_up);
        Ok(pool)
    }

    /// Where the control plane is for somebody.
    fn control_for(&self, placement: &Placement) -> SocketAddr {
        let far = self.far.as_ref().filter(|_| placement.zone != 0);
        far.map_or(self.address, Way::address)
    }

    fn wait_for_workers(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let route = Route::new(&[self.address.to_string()], &Security::default())?;
        while route.report()?.workers.len() < self.workers.len() {
            for worker in &mut self.workers {
                if let Some(status) = worker.ended()? {
                    return Err(worker.failed(&format!("ended early, {status}")));
                }
            }
            if began.elapsed() > HELLO_PATIENCE {
                return Err("a worker does not reach the control plane".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn worker_arguments(
        &self,
        trial: &Trial,
        placement: &Placement,
        place: &Place,
        name: &str,
    ) -> Vec<String> {
        let slots = trial.mode.slots(trial.shape.background_jobs);
        let scratch = place.0.join(format!("{name}.scratch"));
        let mut arguments = words(&[
            ("compactor", "worker"),
            ("--control", &self.control_for(placement).to_string()),
            ("--slots", &slots.to_string()),
            ("--zone", &placement.zone.to_string()),
            ("--scratch", &scratch.to_string_lossy()),
        ]);
        let volumes = trial.zones().into_iter();
        let volumes = volumes.map(|zone| place.volume_from(trial, zone, placement.zone));
        for volume in volumes.collect::<BTreeSet<_>>() {
            arguments.extend(words(&[("--volume", &volume)]));
        }
        arguments
    }

    /// Flags of a database that hands its compactions out.
    pub fn flags(&self, trial: &Trial, place: &Place, placement: &Placement) -> Vec<String> {
        let published = trial.mode.is_published();
        let min_mb = if published { 0 } else { trial.shape.min_mb };
        words(&[
            ("--compaction", "remote"),
            ("--control", &self.control_for(placement).to_string()),
            (
                "--compaction-volume",
                &place.volume_from(trial, placement.zone, placement.zone),
            ),
            ("--compaction-zone", &placement.zone.to_string()),
            ("--compaction-min-mb", &min_mb.to_string()),
        ])
    }

    /// CPU seconds of workers and of the control plane.
    pub fn cpu(&self) -> (f64, f64) {
        (
            self.workers.iter().map(Process::cpu).sum(),
            self.control.cpu(),
        )
    }

    /// Bytes that workers moved to and from object stores.
    fn moved(&self) -> Result<u64, String> {
        let report = Route::new(&[self.address.to_string()], &Security::default())?.report()?;
        let totals = report.workers.iter().filter_map(|worker| worker.total);
        Ok(totals.map(|total| total.fetched + total.put).sum())
    }
}

fn words(pairs: &[(&str, &str)]) -> Vec<String> {
    let words = pairs.iter().flat_map(|(one, two)| [*one, *two]);
    words.map(ToOwned::to_owned).collect()
}

fn control_arguments(trial: &Trial, directory: &Path) -> Vec<String> {
    words(&[
        ("compactor", "control"),
        ("--listen", "127.0.0.1:0"),
        (
            "--store",
            &directory.join("control.store").to_string_lossy(),
        ),
        ("--policy", trial.mode.name()),
    ])
}

fn fill_arguments(
    trial: &Trial,
    number: usize,
    database: &Database,
    place: &Place,
    pool: Option<&Pool>,
) -> Vec<String> {
    let shape = &trial.shape;
    let data = place.database(trial, number);
    let seed = trial.seed.wrapping_add(number as u64);
    let mut arguments = words(&[
        ("bench", "fillrandom"),
        ("--data", &data.to_string_lossy()),
        ("--puts", &database.puts.to_string()),
        ("--seed", &seed.to_string()),
        ("--threads", &shape.threads.to_string()),
        ("--value-bytes", &shape.value_bytes.to_string()),
        ("--background-jobs", &shape.background_jobs.to_string()),
        ("--memtable-kb", &shape.memtable_kb.to_string()),
        ("--file-kb", &shape.file_kb.to_string()),
        ("--level1-kb", &shape.level1_kb.to_string()),
        ("--compression", shape.compression.name()),
    ]);
    arguments.extend(["--no-spin", "--json"].map(ToOwned::to_owned));
    let Some(pool) = pool else {
        return arguments;
    };
    arguments.extend(pool.flags(trial, place, &database.placement));
    if trial.mode.is_published() {
        arguments.extend(words(&[("--compaction-level0-files", "4")]));
        arguments.push("--patient".to_owned());
    }
    arguments
}

/// What `bench fillrandom --json` prints, as far as it is kept.
#[derive(Deserialize)]
struct Printed {
    puts: u64,
    seconds: f64,
    latency_us: Value,
    stall_seconds: f64,
    drain_seconds: f64,
    cpu_seconds: Value,
    flush_bytes: u64,
    compact_read_bytes: u64,
    compact_write_bytes: u64,
    pool: Option<Value>,
    entries: u64,
    content_hash: String,
}

fn filled(process: &Process) -> Result<Filled, String> {
    let printed: Printed = serde_json::from_str(&process.printed())
        .map_err(|error| process.failed(&format!("printed something else: {error}")))?;
    let float = |of: &Value, name: &str| of.get(name).and_then(Value::as_f64).unwrap_or(0.0);
    let pool = printed.pool.unwrap_or_default();
    let count = |name: &str| pool.get(name).and_then(Value::as_u64).unwrap_or(0);
    let home = pool.get("local").and_then(Value::as_object);
    let home = |wanted: &dyn Fn(&str) -> bool| {
        let reasons = home.into_iter().flatten();
        let counted = reasons.filter(|(reason, _)| wanted(reason));
        counted.filter_map(|(_, count)| count.as_u64()).sum()
    };
    Ok(Filled {
        puts: printed.puts,
        seconds: printed.seconds,
        mean_us: float(&printed.latency_us, "mean"),
        p50_us: float(&printed.latency_us, "p50"),
        p99_us: float(&printed.latency_us, "p99"),
        p999_us: float(&printed.latency_us, "p99.9"),
        max_us: float(&printed.latency_us, "max"),
        stall_seconds: printed.stall_seconds,
        drain_seconds: printed.drain_seconds,
        load_cpu: float(&printed.cpu_seconds, "load"),
        drain_cpu: float(&printed.cpu_seconds, "drain"),
        flush_bytes: printed.flush_bytes,
        compacted_bytes: printed.compact_read_bytes + printed.compact_write_bytes,
        installed: count("remote_installed_total"),
        moved_bytes: count("remote_input_bytes_total") + count("remote_output_bytes_total"),
        stored_bytes: count("remote_put_bytes_total") + count("remote_fetched_bytes_total"),
        small: home(&|reason| reason == "small"),
        came_home: home(&|reason| reason != "small"),
        entries: printed.entries,
        content_hash: printed.content_hash,
    })
}
