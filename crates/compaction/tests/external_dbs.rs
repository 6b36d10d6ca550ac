//! Databases of a program that knows nothing of the service but that it is there.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{content, fill, options};
use manxdb_compaction::control::server::ControlPlane;
use manxdb_compaction::control::store::StoreLocation;
use manxdb_compaction::edge::{
    JobInfo, STAGING, Service, Shaped, Waited, linked_tables, set_service,
};
use manxdb_compaction::external::{ExternalDbOptions, ExternalDbs};
use manxdb_compaction::object_store::volume::Volume;
use manxdb_compaction::transport::link::Route;
use manxdb_compaction::transport::security::Security;
use manxdb_compaction::worker::{RunningWorker, WorkerOptions};
use manxdb_core::Nanos;
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::Zone;
use manxdb_jobs::{Options, WorkerId};
use parking_lot::Mutex;
use rocksdb::DB;

static DRAWN: AtomicU64 = AtomicU64::new(1);

fn drawn() -> u64 {
    DRAWN.fetch_add(1, Ordering::Relaxed)
}

/// A control plane and a worker on a directory.
struct Pool {
    volume: tempfile::TempDir,
    control: ControlPlane,
    _worker: RunningWorker,
}

impl Pool {
    fn start() -> Self {
        let volume = tempfile::tempdir().unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        let store = StoreLocation::File(volume.path().join("control"));
        let security = Security::default();
        let options = Options::default();
        let control = ControlPlane::start(address, &store, options, &security, drawn()).unwrap();
        let worker = RunningWorker::start(WorkerOptions {
            route: route(&control),
            volumes: BTreeMap::from([("fast".to_owned(), directory(volume.path()))]),
            scratch: volume.path().join("scratch"),
            remember: 0,
            slots: 2,
            zone: Zone::default(),
            profiles: vec![Arc::new(Shaped)],
            id: WorkerId(drawn()),
        });
        Self {
            control,
            _worker: worker.unwrap(),
            volume,
        }
    }

    fn service(&self) -> Arc<ExternalDbs> {
        ExternalDbs::new(ExternalDbOptions {
            route: route(&self.control),
            volume: "fast".to_owned(),
            storage: directory(self.volume.path()),
            zone: Zone::default(),
            bytes_min: 0,
            has_one_path: false,
            client: ClientOptions {
                away: Nanos::from_secs(30),
                ..ClientOptions::default()
            },
            draw: || Ok(drawn()),
            tables: linked_tables(),
        })
    }

    fn open(&self, name: &str, service: Arc<dyn Service>) -> DB {
        let mut options = options();
        set_service(&mut options, service);
        DB::open(&options, self.volume.path().join(name)).unwrap()
    }

    /// What a database compacts to by itself.
    fn home(&self, seed: u64) -> Vec<Vec<u8>> {
        let db = DB::open(&options(), self.volume.path().join("home")).unwrap();
        fill(&db, seed);
        content(&db)
    }

    fn left(&self, name: &str) -> usize {
        let staging = self.volume.path().join(name).join(STAGING);
        std::fs::read_dir(staging).unwrap().count()
    }
}

fn route(control: &ControlPlane) -> Route {
    Route::new(&[control.address().to_string()], &Security::default()).unwrap()
}

fn directory(path: &Path) -> Volume {
    Volume::Directory(path.to_owned())
}

fn number(service: &ExternalDbs, name: &str) -> u64 {
    let numbers = service.numbers();
    let found = numbers.iter().find(|(one, _)| one == name);
    found.map_or(0, |(_, value)| *value)
}

fn installed(service: &ExternalDbs) -> u64 {
    number(service, "manxdb_compaction_remote_installed_total")
}

fn local(service: &ExternalDbs, reason: &str) -> u64 {
    let name = format!("manxdb_compaction_local_total{{reason=\"{reason}\"}}");
    number(service, &name)
}

#[test]
fn one_service_serves_many_databases_and_each_again_after_one_is_closed() {
    let pool = Pool::start();
    let expected = pool.home(5);
    let service = pool.service();
    let one = pool.open("one", service.clone());
    let two = pool.open("two", service.clone());
    fill(&one, 5);
    fill(&two, 5);
    assert_eq!(content(&one), expected);
    assert_eq!(content(&two), expected);
    let before = installed(&service);
    assert!(before >= 6, "{:?}", service.numbers());
    drop(one);
    fill(&two, 6);
    assert!(installed(&service) >= before + 3, "{:?}", service.numbers());
    let one = pool.open("one", service.clone());
    assert_eq!(content(&one), expected);
    fill(&one, 6);
    assert_eq!(content(&one), content(&two));
    assert!(installed(&service) >= before + 6, "{:?}", service.numbers());
    for reason in ["unfit", "refused", "closing", "attempts", "poison"] {
        assert_eq!(local(&service, reason), 0, "{reason}");
    }
    drop((one, two));
    assert_eq!((pool.left("one"), pool.left("two")), (0, 0));
}

/// Says that a database closes while a job's outputs are on their way into another one.
struct Interrupted {
    inner: Arc<ExternalDbs>,
    seen: Mutex<Vec<String>>,
}

impl Service for Interrupted {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        self.inner.schedule(info, input)
    }

    fn wait(&self, job: &str) -> Waited {
        let waited = self.inner.wait(job);
        if matches!(waited, Waited::Done(_)) {
            self.inner.cancel();
            // Another job of the same database would sweep what is about to be renamed.
            let info = JobInfo {
                database: "nowhere".to_owned(),
                ..JobInfo::default()
            };
            assert_eq!(self.inner.schedule(&info, b""), None);
            self.seen.lock().push(job.to_owned());
        }
        waited
    }

    fn cancel(&self) {
        self.inner.cancel();
    }

    fn installed(&self, job: &str, is_installed: bool) {
        assert!(is_installed);
        self.inner.installed(job, is_installed);
    }
}

#[test]
fn outputs_that_are_being_installed_survive_the_end_of_another_database() {
    let pool = Pool::start();
    let expected = pool.home(8);
    let service = Arc::new(Interrupted {
        inner: pool.service(),
        seen: Mutex::default(),
    });
    let db = pool.open("db", service.clone());
    fill(&db, 8);
    assert_eq!(content(&db), expected);
    let seen = service.seen.lock().len() as u64;
    assert!(seen >= 3, "{seen}");
    assert_eq!(installed(&service.inner), seen);
    drop(db);
    assert_eq!(pool.left("db"), 0);
}

#[test]
fn a_database_that_is_not_on_the_volume_is_refused_once_and_works() {
    let pool = Pool::start();
    let elsewhere = tempfile::tempdir().unwrap();
    let service = pool.service();
    let mut with_service = options();
    set_service(&mut with_service, service.clone());
    let db = DB::open(&with_service, elsewhere.path()).unwrap();
    fill(&db, 4);
    assert_eq!(content(&db), pool.home(4));
    assert_eq!(installed(&service), 0);
    assert!(local(&service, "unfit") >= 3, "{:?}", service.numbers());
    assert!(!elsewhere.path().join(STAGING).exists());
}
