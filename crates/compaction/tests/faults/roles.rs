//! What a process of a test is: reads settings, says `ready`, then does as it is told.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use manxdb_compaction::control::server::ControlPlane;
use manxdb_compaction::control::store::StoreLocation;
use manxdb_compaction::control::store::etcd::EtcdSettings;
use manxdb_compaction::edge::{CompactionProfile, Plain, Prepared};
use manxdb_compaction::object_store::volume::Volume;
use manxdb_compaction::transport::link::Route;
use manxdb_compaction::transport::security::{Security, Tls};
use manxdb_compaction::worker::{RunningWorker, WorkerOptions};
use manxdb_core::Nanos;
use manxdb_etcd::EtcdAddress;
use manxdb_jobs::job::Zone;
use manxdb_jobs::{Options, WorkerId};
use rocksdb::CompactionDecision;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::process::MARK;
use crate::settings::Settings;
use crate::{bad_worker, database};

/// Plays the role that the environment says, if any; does not come back then.
pub fn play() {
    let Some(settings) = Settings::given() else {
        return;
    };
    let filter = tracing_subscriber::EnvFilter::new("info,manxdb_compaction=debug");
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        std::process::exit(101); // also when it is another thread's
    }));
    if let Some(bytes) = settings.number("largest_file") {
        limit_files(Some(bytes));
    }
    match settings.string("role").as_str() {
        "control" => control(&settings),
        "worker" => worker(&settings),
        "bad_worker" => bad_worker::play(&settings),
        "database" => database::play(&settings),
        role => panic!("nothing is called {role}"),
    }
    std::process::exit(0);
}

pub fn say(line: &str) {
    println!("{MARK}{line}");
}

/// A disk that is full, for this process alone: nothing is written behind so many bytes of a file.
fn limit_files(bytes: Option<u64>) {
    // Without a handler the system ends the process instead of failing the write.
    let seen = Arc::new(std::sync::atomic::AtomicBool::new(false));
    const SIGXFSZ: i32 = 25;
    signal_hook::flag::register(SIGXFSZ, seen).unwrap();
    let limit = rustix::process::Rlimit {
        current: bytes,
        maximum: None,
    };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
}

/// Lines from the test, until it ends.
pub fn commands() -> impl Iterator<Item = String> {
    std::io::stdin().lock().lines().map_while(Result::ok)
}

/// A number that no other process draws.
pub fn drawn() -> u64 {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let nanos = u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap();
    nanos ^ u64::from(std::process::id()) << 40
}

pub fn security(settings: &Settings) -> Security {
    let tls = settings.get("tls").map(|prefix| {
        let read = |end: &str| std::fs::read_to_string(format!("{prefix}.{end}")).unwrap();
        Tls {
            authority: read("ca"),
            certificate: read("cert"),
            key: read("key"),
            server_name: settings.get("tls_name").unwrap_or("localhost").to_owned(),
        }
    });
    Security {
        token: settings.get("token").map(ToOwned::to_owned),
        tls,
    }
}

pub fn route(settings: &Settings) -> Route {
    let planes = settings.string("control");
    let planes: Vec<String> = planes.split(',').map(ToOwned::to_owned).collect();
    Route::new(&planes, &security(settings)).unwrap()
}

/// Seconds of a lease in etcd.
pub const LEASE: u64 = 3;

/// What is in etcd of a test.
pub fn etcd(settings: &Settings) -> EtcdSettings {
    let user = settings.get("user").and_then(|user| user.split_once(':'));
    let members = settings.string("etcd");
    EtcdSettings {
        address: EtcdAddress {
            members: members.split(',').map(ToOwned::to_owned).collect(),
            user: user.map(|(name, password)| (name.to_owned(), password.to_owned())),
            tls: None,
        },
        prefix: "/manxdb/test/".to_owned(),
        lease: Duration::from_secs(LEASE),
        name: String::new(),
    }
}

fn place(settings: &Settings) -> StoreLocation {
    match settings.get("etcd") {
        Some(_) => StoreLocation::Etcd(Box::new(etcd(settings))),
        None => StoreLocation::File(settings.path("store")),
    }
}

fn control(settings: &Settings) {
    let address = settings.get("listen").unwrap_or("127.0.0.1:0");
    let address: SocketAddr = address.parse().unwrap();
    let options = Options {
        lease: Nanos::from_secs(2),
        session: Nanos::from_secs(4),
        patience: Nanos::from_millis(1_500),
        ..Options::default()
    };
    let (place, security) = (place(settings), security(settings));
    match ControlPlane::start(address, &place, options, &security, drawn()) {
        Ok(plane) => {
            say(&format!("ready {}", plane.address()));
            for command in commands() {
                match command.as_str() {
                    // Enough for the log's first lines.
                    "full" => limit_files(Some(32 << 10)),
                    "space" => limit_files(None),
                    "status" => {
                        let standing = plane.report().unwrap().standing;
                        let (leads, term) = (u8::from(standing.leads), standing.term.0);
                        say(&format!("status leads={leads} term={term}"));
                        continue;
                    }
                    "end" => plane.end(),
                    other => panic!("a control plane does not know {other}"),
                }
                say(&command);
            }
        }
        Err(error) => say(&format!("ready refused: {error}")),
    }
}

/// Where the volume is that all of a test are on.
pub const VOLUME: &str = "shared";

pub fn volumes(settings: &Settings) -> BTreeMap<String, PathBuf> {
    let root: &Path = &settings.path("volume");
    BTreeMap::from([(VOLUME.to_owned(), root.to_owned())])
}

/// Stands still once, at a certain entry of a certain attempt, until it may go on. An attempt may end
/// before: it is withdrawn, or its compaction keeps fewer entries. Then it is one of those behind it.
#[derive(Default)]
pub struct Stop {
    /// At this part of the entries, in percent,
    percent: u64,
    /// of this attempt, counted from 1; 0: of none,
    attempt: u64,
    begun: AtomicU64,
    has_stood: AtomicBool,
    /// until this is true.
    goes_on: (Mutex<bool>, Condvar),
}

impl Stop {
    fn of(settings: &Settings) -> Self {
        Self {
            percent: settings.number("stop_at").unwrap_or(0),
            attempt: settings.number("stop_in").unwrap_or(0),
            begun: AtomicU64::new(0),
            has_stood: AtomicBool::new(false),
            goes_on: (Mutex::new(false), Condvar::new()),
        }
    }

    /// Whether an attempt that begins now may be the one.
    fn may_stand(&self) -> bool {
        let attempt = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let has_stood = self.has_stood.load(Ordering::Relaxed);
        self.attempt > 0 && attempt >= self.attempt && !has_stood
    }

    fn stand_still(&self) {
        if self.has_stood.swap(true, Ordering::Relaxed) {
            return;
        }
        say("stopped");
        let goes_on = self.goes_on.0.lock().unwrap();
        drop(self.goes_on.1.wait_while(goes_on, |goes_on| !*goes_on));
    }

    fn go_on(&self) {
        *self.goes_on.0.lock().unwrap() = true;
        self.goes_on.1.notify_all();
    }
}

/// Compacts as [`Plain`] does, and stands still where it is told to. Its parameters are the number
/// of entries of a job.
#[derive(Default)]
pub struct Halting(Arc<Stop>);

/// A profile that no worker knows.
pub struct Unheard;

impl CompactionProfile for Unheard {
    fn name(&self) -> &'static str {
        "unheard-of.1"
    }

    fn parts(&self) -> &'static [&'static str] {
        &[]
    }

    fn prepare(&self, _: &[u8]) -> Result<Prepared, String> {
        Err("nobody knows it".to_owned())
    }
}

impl CompactionProfile for Halting {
    fn name(&self) -> &'static str {
        "halting.1"
    }

    fn parts(&self) -> &'static [&'static str] {
        &[]
    }

    fn prepare(&self, parameters: &[u8]) -> Result<Prepared, String> {
        let entries = u64::from_le_bytes(parameters.try_into().map_err(|_| "no number")?);
        let mut prepared = Plain.prepare(&[])?;
        let stop = Arc::clone(&self.0);
        if !stop.may_stand() {
            return Ok(prepared);
        }
        let at = entries * stop.percent / 100;
        if at == 0 {
            stop.stand_still();
            return Ok(prepared);
        }
        let mut seen = 0;
        prepared
            .options
            .set_compaction_filter("halting", move |_, _, _| {
                seen += 1;
                if seen == at {
                    stop.stand_still();
                }
                CompactionDecision::Keep
            });
        Ok(prepared)
    }
}

fn worker(settings: &Settings) {
    let stop = Arc::new(Stop::of(settings));
    let id = WorkerId(drawn());
    let options = WorkerOptions {
        route: route(settings),
        volumes: volumes(settings)
            .into_iter()
            .map(|(name, path)| (name, Volume::Directory(path)))
            .collect(),
        scratch: PathBuf::new(), // only object stores need one
        remember: 0,
        slots: settings.number("slots").unwrap_or(2),
        zone: Zone::default(),
        profiles: vec![Arc::new(Halting(Arc::clone(&stop)))],
        id,
    };
    let worker = RunningWorker::start(options).unwrap();
    say(&format!("ready {}", id.0));
    for command in commands() {
        match command.as_str() {
            "go" => stop.go_on(),
            "drain" => {
                worker.drain();
                say("drain");
                return;
            }
            "status" => {
                let counts = worker.counts();
                let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
                let (finished, failed) = (load(&counts.finished), load(&counts.failed));
                let stopped = load(&counts.stopped);
                say(&format!(
                    "status finished={finished} failed={failed} stopped={stopped}"
                ));
            }
            other => panic!("a worker does not know {other}"),
        }
    }
}
