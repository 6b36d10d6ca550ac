//! Runs a trial: a server with its store on a volume, a control plane and a worker that have it too,
//! and redis-benchmark.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use manxdb_lab::experiment::Scale;

use super::super::run::{fill, measure, number, own_version};
use super::super::server::{Link, Server, free_port};
use super::super::trial::Work;
use super::trial::{Compactions, Outcome, Shares, Trial};
use crate::lab::fill::run::{Place, Pool};
use crate::lab::fill::trial::{Mode, Placement, Shape, Storage, Trial as Fill};
use crate::lab::fill::{Group, Quotas, shape};

/// Compactions that take longer hang.
const DRAIN_PATIENCE: Duration = Duration::from_secs(600);
/// Between two looks whether anything is left to compact,
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// and how often in a row nothing may be.
const QUIET_LOOKS: u32 = 5;
/// What redis-benchmark puts a number of as many digits for, drawn anew for each command.
const DRAWN: &str = "__rand_int__";

/// Runs a trial in a directory of its own, which is gone afterwards.
///
/// # Errors
/// What failed, with the end of its log.
pub fn run(trial: &Trial) -> Result<Outcome, String> {
    let pooled = pool_of(trial);
    let place = Place::make(&pooled)?;
    let quotas = trial.shares.map_or(Quotas::None, |_| Quotas::here());
    let pool = match trial.compactions {
        Compactions::Local => None,
        Compactions::Pooled => Some(Pool::start(&pooled, &place, quotas)?),
    };
    let admin = free_port().map_err(|error| format!("no free port: {error}"))?;
    let mut flags = flags(trial, admin);
    if let Some(pool) = &pool {
        flags.extend(pool.flags(&pooled, &place, &placement(trial, |shares| shares.server)));
    }
    let group = trial.shares.map(|shares| shares.server);
    let group = group.and_then(|cpus| Group::make(quotas, "server", cpus));
    let volume = place.volume(&pooled, 0);
    let server = Server::start_in(&trial.served(), &volume, &flags, group)?;
    let mut link = Link::open(server.port)?;
    if trial.is_filled {
        fill(&mut link, trial.keys, trial.value_bytes as usize)?;
    }
    let used = server.cpu()?;
    let (mut measures, mut errors) = (Vec::new(), 0);
    for work in &trial.works {
        let (measured, replied) = measure(&server, &mut link, *work, &trial.load(), &value(trial))?;
        measures.push(measured);
        errors += replied;
    }
    let drain_seconds = drain(admin)?;
    let (worker_cpu, control_cpu) = pool.as_ref().map_or((0.0, 0.0), Pool::cpu);
    let page = metrics(admin)?;
    Ok(Outcome {
        version: own_version(&mut link)?,
        quotas,
        measures,
        errors,
        found: match trial.works.as_slice() {
            [Work::Hset] => link.count(&["HLEN", "hash"])?,
            _ => link.count(&["DBSIZE"])?,
        },
        evicted: number(&mut link, "stats", "values_evicted")?,
        loaded: number(&mut link, "stats", "values_loaded")?,
        outside: number(&mut link, "types", "keys_not_in_memory")?,
        memory: number(&mut link, "memory", "used_memory")?,
        drain_seconds,
        server_cpu: server.cpu()? - used,
        pool_cpu: worker_cpu + control_cpu,
        installed: sum(&page, "manxdb_compaction_remote_installed_total"),
        came_home: sum(&page, "manxdb_compaction_local_total")
            - sum(&page, "manxdb_compaction_local_total{reason=\"small\"}"),
    })
}

/// The pool of a trial, as experiments without Redis start it.
fn pool_of(trial: &Trial) -> Fill {
    let shape = shape(Scale::Laptop);
    Fill {
        mode: Mode::Manxdb,
        databases: Vec::new(),
        workers: vec![placement(trial, |shares| shares.worker)],
        delay_ms: 0,
        storage: Storage::Directory,
        shape: Shape {
            min_mb: trial.min_mb,
            ..shape
        },
        seed: trial.seed,
    }
}

fn placement(trial: &Trial, share: fn(&Shares) -> f64) -> Placement {
    let cpus = trial.shares.as_ref().map_or(1.0, share);
    Placement { cpus, zone: 0 }
}

fn flags(trial: &Trial, admin: u16) -> Vec<String> {
    let numbers = [
        ("--redis-memory-mb", trial.memory_mb),
        ("--write-buffer-mb", trial.write_buffer_mb),
    ];
    let mut flags: Vec<String> = numbers
        .into_iter()
        .flat_map(|(flag, number)| [flag.to_owned(), number.to_string()])
        .collect();
    flags.extend(["--redis-engine", "rocksdb", "--admin-listen"].map(str::to_owned));
    flags.push(format!("127.0.0.1:{admin}"));
    flags
}

/// Numbers, another in each place: values that are all alike would be compressed to nothing.
fn value(trial: &Trial) -> String {
    let length = trial.value_bytes as usize;
    let mut value = DRAWN.repeat(length / DRAWN.len());
    value.push_str(&"x".repeat(length % DRAWN.len()));
    value
}

/// Waits until nothing is left to compact; how many seconds that took.
fn drain(admin: u16) -> Result<f64, String> {
    let (began, mut quiet) = (Instant::now(), 0);
    let mut drained = 0.0;
    while quiet < QUIET_LOOKS {
        let page = metrics(admin)?;
        let left = [
            "manxdb_storage_compaction_pending_bytes",
            "manxdb_storage_compactions_running",
            "manxdb_compaction_remote_waiting",
        ];
        if left.iter().any(|name| sum(&page, name) > 0) {
            quiet = 0;
        } else {
            if quiet == 0 {
                drained = began.elapsed().as_secs_f64();
            }
            quiet += 1;
        }
        if began.elapsed() > DRAIN_PATIENCE {
            return Err("compactions do not end".to_owned());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(drained)
}

/// The page `/metrics` of a server.
fn metrics(admin: u16) -> Result<String, String> {
    let cannot = |error: std::io::Error| format!("/metrics of port {admin}: {error}");
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, admin)).map_err(cannot)?;
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).map_err(cannot)?;
    let mut page = String::new();
    stream.read_to_string(&mut page).map_err(cannot)?;
    if page.contains("\nmanxdb_storage_compactions_running ") {
        Ok(page)
    } else {
        Err(format!(
            "/metrics of port {admin} tells nothing of compactions"
        ))
    }
}

/// What lines whose name begins so tell together; nothing when there are none.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // counts, as floats
fn sum(page: &str, name: &str) -> u64 {
    let lines = page.lines().filter(|line| line.starts_with(name));
    let numbers = lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    numbers.sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_page_are_added_up_over_their_labels() {
        let page =
            "# TYPE total counter\ntotal{reason=\"small\"} 2\ntotal{reason=\"away\"} 3\nother 4\n";
        assert_eq!(sum(page, "total"), 5);
        assert_eq!(sum(page, "total{reason=\"small\"}"), 2);
        assert_eq!(sum(page, "absent"), 0);
    }
}
