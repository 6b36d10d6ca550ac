//! A whole pool in one process: databases, workers and a control plane that speak gRPC, and
//! RocksDB on both ends.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod common;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{content, fill, options};
use manxdb_compaction::control::server::ControlPlane;
use manxdb_compaction::control::store::StoreLocation;
use manxdb_compaction::database::service::{Remote, RemotePool};
use manxdb_compaction::edge::{
    DatabaseService as _, Inputs, Level0, NoCallbacks, OpenDatabase, Plain, set_service,
};
use manxdb_compaction::object_store::volume::Volume;
use manxdb_compaction::order::STAGING;
use manxdb_compaction::transport::link::Route;
use manxdb_compaction::transport::security::Security;
use manxdb_compaction::transport::wire::proto::pool_server::{Pool as PoolDoor, PoolServer};
use manxdb_compaction::transport::wire::proto::{ReportReply, ReportRequest, Word};
use manxdb_compaction::worker::{RunningWorker, WorkerOptions};
use manxdb_core::Nanos;
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{DatabaseId, LocalReason, SessionId, Zone};
use manxdb_jobs::{Options, WorkerId};
use rocksdb::DB;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// Against hanging: nothing is decided by how long something takes.
const HANGS: Duration = Duration::from_secs(120);

static DRAWN: AtomicU64 = AtomicU64::new(1);

fn drawn() -> u64 {
    DRAWN.fetch_add(1, Ordering::Relaxed)
}

fn control(directory: &Path, security: &Security) -> ControlPlane {
    let address = "127.0.0.1:0".parse().unwrap();
    let place = StoreLocation::File(directory.join("control"));
    ControlPlane::start(address, &place, Options::default(), security, drawn()).unwrap()
}

fn route(control: &ControlPlane, security: &Security) -> Route {
    Route::new(&[control.address().to_string()], security).unwrap()
}

fn worker(route: Route, volume: &Path) -> RunningWorker {
    let options = WorkerOptions {
        route,
        volumes: BTreeMap::from([("fast".to_owned(), Volume::Directory(volume.to_owned()))]),
        scratch: volume.join("scratch"),
        remember: 0,
        slots: 2,
        zone: Zone::default(),
        profiles: vec![Arc::new(Plain)],
        id: WorkerId(drawn()),
    };
    RunningWorker::start(options).unwrap()
}

fn service(route: Route, volume: &Path, database: &Path) -> Arc<Remote> {
    std::fs::create_dir_all(database).unwrap();
    try_service(route, volume, database).unwrap()
}

fn try_service(route: Route, volume: &Path, database: &Path) -> Result<Arc<Remote>, String> {
    let pool = RemotePool {
        route,
        volume: "fast".to_owned(),
        storage: Volume::Directory(volume.to_owned()),
        database_id: DatabaseId(drawn()),
        session: SessionId(drawn()),
        zone: Zone::default(),
        bytes_min: 0,
        client: ClientOptions {
            away: Nanos::from_secs(30),
            ..ClientOptions::default()
        },
    };
    Remote::start(&pool, database, Arc::new(Plain), Arc::new(NoCallbacks))
}

fn home(directory: &Path, seed: u64) -> Vec<Vec<u8>> {
    let db = DB::open(&options(), directory.join("home")).unwrap();
    fill(&db, seed);
    content(&db)
}

#[test]
fn databases_compact_through_a_pool_and_leave_nothing_behind() {
    let volume = tempfile::tempdir().unwrap();
    let security = Security {
        token: Some("a secret".to_owned()),
        tls: None,
    };
    let control = control(volume.path(), &security);
    let worker = worker(route(&control, &security), volume.path());
    let expected = home(volume.path(), 7);
    for name in ["one", "two"] {
        let path = volume.path().join(name);
        let remote = service(route(&control, &security), volume.path(), &path);
        let mut with_service = options();
        set_service(&mut with_service, remote.clone());
        let db = DB::open(&with_service, &path).unwrap();
        fill(&db, 7);
        assert_eq!(content(&db), expected);
        let installed = remote.counts().installed.load(Ordering::Relaxed);
        assert!(installed >= 3, "{installed} installed");
        drop(db);
        let left = std::fs::read_dir(path.join(STAGING)).unwrap().count();
        assert_eq!(left, 0, "directories of attempts");
    }
    assert!(worker.counts().finished.load(Ordering::Relaxed) >= 6);
    worker.drain();
    let report = control.report().unwrap();
    assert_eq!(report.jobs, []);
    assert_eq!(report.counts.done, report.counts.taken);
}

#[test]
fn who_does_not_know_the_token_is_not_let_in() {
    let volume = tempfile::tempdir().unwrap();
    let security = |token: &str| Security {
        token: Some(token.to_owned()),
        tls: None,
    };
    let control = control(volume.path(), &security("right"));
    let error = route(&control, &security("wrong")).report().unwrap_err();
    assert!(error.contains("asks for its token"), "{error}");
    let report = route(&control, &security("right")).report().unwrap();
    assert_eq!(report.taken, 0);
}

/// A control plane that takes every call and answers none.
struct Mute;

#[tonic::async_trait]
impl PoolDoor for Mute {
    type TalkStream = tokio_stream::Empty<Result<Word, Status>>;

    async fn talk(
        &self,
        _: Request<Streaming<Word>>,
    ) -> Result<Response<Self::TalkStream>, Status> {
        std::future::pending().await
    }

    async fn report(&self, _: Request<ReportRequest>) -> Result<Response<ReportReply>, Status> {
        std::future::pending().await
    }
}

/// Lets it listen; it ends with the runtime.
fn mute() -> (tokio::runtime::Runtime, SocketAddr) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::builder().add_service(PoolServer::new(Mute));
    runtime.spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    (runtime, address)
}

#[test]
fn a_control_plane_that_does_not_answer_is_left_for_another_one() {
    let volume = tempfile::tempdir().unwrap();
    let security = Security::default();
    let (_mute, mute) = mute();
    let control = control(volume.path(), &security);
    let both = [mute, control.address()].map(|address| address.to_string());
    let route = Route::new(&both, &security).unwrap();
    assert!(route.report().unwrap().leads);
    let _worker = worker(route, volume.path());
    // Whoever waits for the first one for ever never comes to the second one.
    let began = Instant::now();
    while control.report().unwrap().workers.is_empty() {
        assert!(began.elapsed() < HANGS, "no worker comes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_staging_directory_on_another_file_system_is_refused() {
    let volume = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir_in("/dev/shm").unwrap();
    let database = volume.path().join("db");
    std::fs::create_dir(&database).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), database.join(STAGING)).unwrap();
    let route = Route::new(&["127.0.0.1:9".to_owned()], &Security::default()).unwrap();
    let error = try_service(route, volume.path(), &database).err().unwrap();
    assert!(error.contains("on another file system"), "{error}");
}

/// A database without files.
struct Empty;

impl OpenDatabase for Empty {
    fn inputs(&self, _: &[String]) -> Result<Inputs, String> {
        Ok(Inputs::default())
    }

    fn level0(&self) -> BTreeMap<String, Level0> {
        BTreeMap::new()
    }
}

#[test]
fn what_attempts_of_earlier_times_left_is_removed() {
    let volume = tempfile::tempdir().unwrap();
    let staging = volume.path().join("db").join(STAGING);
    std::fs::create_dir_all(staging.join("an-attempt")).unwrap();
    std::fs::write(staging.join("an-attempt/000001.sst"), b"left").unwrap();
    let route = Route::new(&["127.0.0.1:9".to_owned()], &Security::default()).unwrap();
    let remote = service(route, volume.path(), &volume.path().join("db"));
    let left = || std::fs::read_dir(&staging).unwrap().count();
    assert_eq!(left(), 1, "another process may have it open");
    remote.opened(Box::new(Empty));
    assert_eq!(left(), 0);
    remote.closing();
}

#[test]
fn a_database_opens_while_a_worker_still_writes_for_its_former_life() {
    let volume = tempfile::tempdir().unwrap();
    let attempt = volume.path().join("db").join(STAGING).join("an-attempt");
    let route = Route::new(&["127.0.0.1:9".to_owned()], &Security::default()).unwrap();
    for _ in 0..20 {
        std::fs::create_dir_all(&attempt).unwrap();
        std::fs::write(attempt.join("0.sst"), b"first").unwrap();
        let writes = attempt.clone();
        let (begun, begins) = std::sync::mpsc::channel();
        let worker = std::thread::spawn(move || {
            let mut number = 0;
            let file = |number| writes.join(format!("{number}.sst"));
            while number < 20_000 && std::fs::write(file(number), b"output").is_ok() {
                number += 1;
                let _ = begun.send(()); // it is waited for once
            }
        });
        begins.recv().unwrap();
        let remote = service(route.clone(), volume.path(), &volume.path().join("db"));
        remote.opened(Box::new(Empty));
        let is_gone = !attempt.exists();
        worker.join().unwrap();
        assert!(is_gone);
        remote.closing();
        drop(remote);
    }
}

#[test]
fn a_pool_without_workers_sends_everything_home() {
    let volume = tempfile::tempdir().unwrap();
    let security = Security::default();
    let control = control(volume.path(), &security);
    let expected = home(volume.path(), 9);
    let path = volume.path().join("db");
    let remote = service(route(&control, &security), volume.path(), &path);
    let mut with_service = options();
    set_service(&mut with_service, remote.clone());
    let db = DB::open(&with_service, &path).unwrap();
    fill(&db, 9);
    assert_eq!(content(&db), expected);
    assert!(remote.counts().local(LocalReason::NoWorker) >= 3);
}
