//! The roles of the compaction service as processes.

mod etcd;
mod top;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use manxdb_compaction::control::server::{ControlPlane, StartError};
use manxdb_compaction::control::store::StoreLocation;
use manxdb_compaction::metrics::scrape::{self, Scraped};
use manxdb_compaction::object_store::volume::Volume;
use manxdb_compaction::order::{Plain, Shaped};
use manxdb_compaction::transport::link::Route;
use manxdb_compaction::transport::secrets::Secrets;
use manxdb_compaction::transport::security::Security;
use manxdb_compaction::transport::wire::proto::job_line::Phase;
use manxdb_compaction::worker::{RunningWorker, WorkerOptions};
use manxdb_compaction::{control::metrics::of_control, worker::metrics::of_worker};
use manxdb_jobs::job::Zone;
use manxdb_jobs::{Options, Policy, WorkerId};
use manxdb_storage::Versions;

use crate::cli::{CompactorCommand, ControlArgs, PolicyChoice, SecurityArgs, WorkerArgs};
use crate::fault::Fault;
use crate::process::{random_u64, start_log_of_environment, stop_signal};

/// Runs one of the roles.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run(command: &CompactorCommand) -> Result<ExitCode, Fault> {
    match command {
        CompactorCommand::Control(args) => control(args),
        CompactorCommand::Worker(args) => worker(args),
        CompactorCommand::Top(args) => top::run(args),
    }
}

fn control(args: &ControlArgs) -> Result<ExitCode, Fault> {
    start_log_of_environment("info")?;
    let stop = stop_signal()?;
    let security = security(&args.security)?;
    let is_open = security.token.is_none() && security.tls.is_none();
    if is_open && !args.listen.ip().is_loopback() {
        return Err(Fault::Other(format!(
            "{} can be reached from elsewhere: give --token-file or --tls-ca, --tls-cert and \
             --tls-key, so that not everybody can have databases compacted",
            args.listen
        )));
    }
    let options = Options {
        policy: policy(args.policy),
        ..Options::default()
    };
    let place = etcd::place(args)?;
    let plane = ControlPlane::start(args.listen, &place, options, &security, random_u64()?);
    let plane = Arc::new(plane.map_err(|error| start_fault(&place, error))?);
    let shown = Arc::clone(&plane);
    let text = move || of_control(&shown.report().unwrap_or_default());
    let _metrics = metrics(args.metrics, text)?;
    tracing::info!(address = %plane.address(), store = etcd::name(&place), "control plane up");
    wait(stop)?;
    plane.end();
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

fn start_fault(place: &StoreLocation, error: StartError) -> Fault {
    match error {
        StartError::Listen(address, reason) => Fault::Listen {
            address,
            listener: "the compaction service",
            flag: "listen",
            reason: reason.to_string(),
        },
        StartError::Store(error) => Fault::Other(format!("{}: {error}", etcd::name(place))),
        StartError::Tls(error) => Fault::Other(error),
    }
}

fn worker(args: &WorkerArgs) -> Result<ExitCode, Fault> {
    start_log_of_environment("info")?;
    let stop = stop_signal()?;
    let security = security(&args.security)?;
    let options = WorkerOptions {
        route: Route::new(&args.control, &security).map_err(Fault::Other)?,
        volumes: volumes(&args.volumes)?,
        scratch: scratch(args),
        remember: u64::from(args.remember_mb) << 20,
        slots: args.slots,
        zone: Zone(args.zone),
        profiles: vec![
            Arc::new(Plain),
            Arc::new(Shaped),
            Arc::new(Versions::with_expiry(
                manxdb_redis::keyspace::rows::expiry_of,
            )),
        ],
        id: WorkerId(random_u64()?),
    };
    let worker =
        RunningWorker::start(options).map_err(|error| Fault::io("cannot start a worker", error))?;
    let worker = Arc::new(worker);
    let shown = Arc::clone(&worker);
    let _metrics = metrics(args.metrics, move || of_worker(shown.counts()))?;
    tracing::info!(slots = args.slots, "worker up");
    wait(
        stop.try_clone()
            .map_err(|error| Fault::io("cannot watch signals", error))?,
    )?;
    tracing::info!("taking nothing more; a second signal ends it at once");
    // A second signal does not wait for what runs.
    std::thread::spawn(move || {
        let _ = wait(stop); // either way it ends
        std::process::exit(1);
    });
    worker.drain();
    tracing::info!("stopped");
    // What the slots hold is nothing: it has drained.
    std::process::exit(0);
}

/// Serves what `text` says, if an address was given.
fn metrics(
    address: Option<SocketAddr>,
    text: impl Fn() -> String + Send + 'static,
) -> Result<Option<Scraped>, Fault> {
    let serve = |address| {
        let listen = |reason| Fault::Listen {
            address,
            listener: "metrics",
            flag: "metrics",
            reason,
        };
        scrape::serve(address, text).map_err(listen)
    };
    address.map(serve).transpose()
}

/// Where a worker puts what it fetches and makes.
fn scratch(args: &WorkerArgs) -> PathBuf {
    let default = || std::env::temp_dir().join("manxdb-compactor");
    args.scratch.clone().unwrap_or_else(default)
}

/// Blocks until a signal comes.
fn wait(mut stop: UnixStream) -> Result<(), Fault> {
    let mut byte = [0];
    stop.read_exact(&mut byte)
        .map_err(|error| Fault::io("cannot watch signals", error))
}

fn policy(choice: PolicyChoice) -> Policy {
    match choice {
        PolicyChoice::Manxdb => Policy::Manxdb,
        PolicyChoice::CaasLevel => Policy::CaasLevel,
        PolicyChoice::Random => Policy::Random,
        PolicyChoice::Static => Policy::Static,
    }
}

fn volumes(given: &[String]) -> Result<BTreeMap<String, Volume>, Fault> {
    let mut volumes = BTreeMap::new();
    for volume in given {
        let (name, place) = self::volume("--volume", volume)?;
        check(&name, &place)?;
        if volumes.insert(name.clone(), place).is_some() {
            return Err(Fault::Other(format!("volume {name} is given twice")));
        }
    }
    Ok(volumes)
}

/// A volume by its name, and what it is here; `what` says who names it.
///
/// # Errors
/// It is not NAME=PLACE.
pub fn volume(what: &str, given: &str) -> Result<(String, Volume), Fault> {
    Volume::named(what, given).map_err(Fault::Config)
}

/// Looks whether a volume can be used.
///
/// # Errors
/// There is no such place, or it does not let us in.
pub fn check(name: &str, volume: &Volume) -> Result<(), Fault> {
    volume.check(name).map_err(Fault::Config)
}

impl From<&SecurityArgs> for Secrets {
    fn from(args: &SecurityArgs) -> Self {
        Self {
            token: args.token_file.clone(),
            authority: args.tls_ca.clone(),
            certificate: args.tls_cert.clone(),
            key: args.tls_key.clone(),
            server_name: args.tls_name.clone(),
        }
    }
}

/// The secrets in the files that are named.
///
/// # Errors
/// One of them cannot be read.
pub fn security(args: &SecurityArgs) -> Result<Security, Fault> {
    Secrets::from(args).read().map_err(Fault::Other)
}

/// A worker or a database, as operators are shown it.
pub fn name_of(identity: u64) -> String {
    format!("{identity:016x}")
}

/// How far a job is, as operators are told.
pub fn phase_name(phase: Option<&Phase>) -> &'static str {
    match phase {
        Some(Phase::Running(_)) => "runs",
        Some(Phase::Done(_)) => "waits to be installed",
        Some(Phase::Waiting(_)) | None => "waits",
    }
}

/// How to reach a pool.
fn route(control: &[String], args: &SecurityArgs) -> Result<Route, Fault> {
    Route::new(control, &security(args)?).map_err(Fault::Other)
}
