//! Rows in memory servers: the clients of this server, and the threads that keep their places and
//! look after the places of others.
//!
//! The data directory has keys and certificates then, and no rows.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use manxdb_core::Nanos;
use manxdb_gateway::admin::HealthReport;
use manxdb_rack::memory::{
    Memory, MemoryError, ServerProbe, SharedTransport, Source, Transport, Watched, watch,
};
use manxdb_rack::path::RsiPath;
use manxdb_txn::CommitPath;

use super::health::StoreHealth;
use super::lost::MemoryServers;
use crate::config::{MemoryAt, MemoryUse};
use crate::fault::Fault;
use crate::lock;
use crate::memory::remote;
use crate::process::random_u64;

/// Keeps a second server from using the same data directory.
const LOCK: &str = "memory-client.lock";
/// Looks at places while a lease lasts.
const LOOKS: u64 = 8;
/// Between two steps of collecting rows that are gone, at least, and at most where there are none.
const TIDY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));
/// Between two looks at which memory servers answer.
const LOOK: Duration = Duration::from_millis(500);
/// How long a start waits for memory servers to get their rows from disk.
const RESTORING: Duration = Duration::from_secs(120);
/// Leases that a start waits for places of servers that have died.
const PATIENCE: u64 = 4;

/// Rows in memory servers.
pub struct MemoryRows {
    /// For people.
    place: String,
    path: Arc<dyn CommitPath>,
    counts: Box<dyn Fn() -> (u64, u64) + Send + Sync>,
    leave: Box<dyn Fn() + Send + Sync>,
    servers: MemoryServers,
    /// Those that do not answer, as far as is known.
    missing: Arc<Mutex<Vec<u16>>>,
    watched: Arc<Watched>,
    threads: Threads,
    _lock: File,
}

/// Threads that run until they are told to end.
#[derive(Default)]
struct Threads {
    stop: Arc<AtomicBool>,
    running: Mutex<Vec<JoinHandle<()>>>,
}

impl Threads {
    fn start(
        &self,
        name: &str,
        work: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<(), Fault> {
        let stop = Arc::clone(&self.stop);
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || work(&stop));
        let thread = thread.map_err(|error| Fault::io("cannot start a thread", error))?;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.push(thread);
        Ok(())
    }

    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let running =
            std::mem::take(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in running {
            let _ = thread.join(); // one that panicked has nothing left to do
        }
    }
}

/// As when a start fails half way.
impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

impl MemoryRows {
    /// Takes places in memory servers, as many as clients.
    ///
    /// # Errors
    /// They are not there, do not belong together, or have no places.
    pub fn open(data: &Path, at: &MemoryAt, used: MemoryUse) -> Result<Self, Fault> {
        let lock = lock(data)?;
        match at {
            MemoryAt::Directory(directory) if directory.is_dir() => {
                let memory = open(&SharedTransport::new(directory))?;
                Self::on(memory, directory.display().to_string(), used, lock)
            }
            MemoryAt::Directory(directory) => Err(Fault::Other(format!(
                "{} is no directory of memory servers: start them with manxdb memory --directory {}",
                directory.display(),
                directory.display()
            ))),
            MemoryAt::Addresses(addresses, settings) => {
                let memory = open(&remote::way(addresses, settings)?)?;
                let (given, servers) = (addresses.len(), memory.geometry().servers);
                if given != usize::from(servers) {
                    return Err(Fault::Other(format!(
                        "memory has {given} addresses, but there are {servers} memory servers"
                    )));
                }
                Self::on(memory, addresses.join(","), used, lock)
            }
        }
    }

    fn on<W: Transport>(
        memory: Memory<W>,
        place: String,
        used: MemoryUse,
        lock: File,
    ) -> Result<Self, Fault> {
        let memory = Arc::new(memory);
        let (watched, threads) = (Arc::<Watched>::default(), Threads::default());
        let (watching, seen) = (Arc::clone(&memory), Arc::clone(&watched));
        threads.start("coordinator", move |stop| {
            let note = |what: &str| tracing::warn!("{what}");
            watch(&watching, &seen, stop, &note);
        })?;
        let missing = Arc::<Mutex<Vec<u16>>>::default();
        let (mut probe, found) = (ServerProbe::new(Arc::clone(&memory)), Arc::clone(&missing));
        threads.start("memory-health", move |stop| {
            while !stop.load(Ordering::Relaxed) {
                let now = probe.missing();
                *found.lock().unwrap_or_else(PoisonError::into_inner) = now;
                thread::sleep(LOOK);
            }
        })?;
        let servers = MemoryServers {
            count: memory.geometry().servers,
            is_replicated: memory.geometry().is_replicated(),
            is_kept: memory.is_kept(),
        };
        let path = join(&memory, used.clients).map_err(fault)?;
        let path = Arc::new(path.with_snapshot_age(used.snapshot));
        let (kept, Nanos(lease)) = (Arc::clone(&path), memory.geometry().lease);
        let (mut last, mut rest) = (Instant::now(), TIDY.1);
        threads.start("places", move |stop| {
            while !stop.load(Ordering::Relaxed) {
                kept.keep();
                if last.elapsed() > rest {
                    rest = match kept.collect_garbage() {
                        Ok(0) => TIDY.1.min(2 * rest),
                        Ok(_) => TIDY.0,
                        Err(error) => {
                            tracing::debug!(%error, "rows that are gone stay for now");
                            TIDY.1
                        }
                    };
                    last = Instant::now();
                }
                thread::sleep(Duration::from_nanos(lease / LOOKS).min(Duration::from_millis(100)));
            }
        })?;
        let (name, count) = (memory.name(), servers.count);
        let (counted, left) = (Arc::clone(&path), Arc::clone(&path));
        Ok(Self {
            place: format!("'{name}' in the memory of {count} servers at {place}"),
            path,
            counts: Box::new(move || counted.counts()),
            leave: Box::new(move || left.leave()),
            servers,
            missing,
            watched,
            threads,
            _lock: lock,
        })
    }

    /// The commit path on them.
    pub fn path(&self) -> Arc<dyn CommitPath> {
        self.path.clone()
    }

    /// How they are: which memory servers are lost, and what that means.
    pub fn health(&self, known: &StoreHealth) -> HealthReport {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        self.servers.health(&missing, known)
    }

    /// Numbers for metrics.
    pub fn numbers(&self) -> [(&'static str, u64); 4] {
        let reaped = self.watched.reaped.load(Ordering::Relaxed);
        let lost = self.watched.epoch.load(Ordering::Relaxed);
        let (clients, faults) = (self.counts)();
        [
            ("manxdb_memory_own_places", clients),
            ("manxdb_memory_own_faults_total", faults),
            ("manxdb_memory_recovered_total", reaped),
            ("manxdb_memory_lost_servers", lost),
        ]
    }

    /// Leaves all places.
    pub fn close(&self) {
        self.threads.end();
        (self.leave)();
    }
}

impl fmt::Display for MemoryRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

/// Opens memory; waits a while for servers that were started again to have their rows.
fn open<W: Transport + Clone>(way: &W) -> Result<Memory<W>, Fault> {
    let began = Instant::now();
    let mut is_told = false;
    loop {
        match Memory::open(way.clone(), random_u64()?) {
            Err(why @ MemoryError::Waiting) if began.elapsed() < RESTORING => {
                if !is_told {
                    tracing::info!("{why}");
                    is_told = true;
                }
                thread::sleep(TIDY.0);
            }
            opened => return opened.map_err(fault),
        }
    }
}

/// Takes places; those of servers that died become free a little later.
fn join<W: Transport>(
    memory: &Arc<Memory<W>>,
    clients: u16,
) -> Result<RsiPath<W::Fabric>, MemoryError> {
    let geometry = memory.geometry();
    let patience = Duration::from_nanos(geometry.lease.0 * PATIENCE);
    let began = Instant::now();
    loop {
        let source: Arc<dyn Source<W::Fabric>> = memory.clone();
        match RsiPath::open(source, clients, geometry.value) {
            Err(MemoryError::Full(_)) if began.elapsed() < patience => {
                thread::sleep(Duration::from_nanos(geometry.lease.0 / LOOKS));
            }
            other => return other,
        }
    }
}

/// What a start says that fails.
fn fault(error: MemoryError) -> Fault {
    Fault::Other(error.to_string())
}

/// Takes a data directory, made when missing.
fn lock(data: &Path) -> Result<File, Fault> {
    let path = data.join(LOCK);
    let io = |error| Fault::io(format!("cannot open {}", path.display()), error);
    std::fs::create_dir_all(data).map_err(io)?;
    lock::take(&path, || {
        format!(
            "another server uses {}: give this one another --data",
            data.display()
        )
    })
}
