//! A pool whose volume is an object store.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use manxdb_compaction::control::server::ControlPlane;
use manxdb_compaction::control::store::StoreLocation;
use manxdb_compaction::database::service::{Remote, RemotePool};
use manxdb_compaction::edge::set_service;
use manxdb_compaction::edge::{DatabaseCallbacks, NoCallbacks, Plain};
use manxdb_compaction::object_store::objects::{Objects, Stop};
use manxdb_compaction::object_store::volume::Volume;
use manxdb_compaction::transport::link::Route;
use manxdb_compaction::transport::security::Security;
use manxdb_compaction::worker::{RunningWorker, WorkerOptions};
use manxdb_core::Nanos;
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{DatabaseId, LocalReason, SessionId, Zone};
use manxdb_jobs::{Options, WorkerId};
use object_store::ObjectStore;
use rocksdb::DB;

use crate::common::{content, fill, options};

static DRAWN: AtomicU64 = AtomicU64::new(1_000);

fn drawn() -> u64 {
    DRAWN.fetch_add(1, Ordering::Relaxed)
}

/// Against hanging: nothing is decided by how long something takes.
const HANGS: Duration = Duration::from_secs(120);

/// A database that is about to be opened.
pub struct Served {
    pub remote: Arc<Remote>,
    pub path: PathBuf,
    /// Where its objects are.
    pub base: String,
}

/// A control plane and a worker.
pub struct Pool {
    objects: Arc<Objects>,
    directory: tempfile::TempDir,
    control: ControlPlane,
    worker: Option<RunningWorker>,
}

impl Pool {
    pub fn start(store: Arc<dyn ObjectStore>) -> Self {
        Self::over(Arc::new(Objects::new(store, "volume").unwrap()))
    }

    pub fn over(objects: Arc<Objects>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        let file = StoreLocation::File(directory.path().join("control"));
        let security = Security::default();
        let control =
            ControlPlane::start(address, &file, Options::default(), &security, drawn()).unwrap();
        let mut pool = Self {
            objects,
            directory,
            control,
            worker: None,
        };
        let options = WorkerOptions {
            route: pool.route(),
            volumes: BTreeMap::from([("far".to_owned(), pool.volume())]),
            scratch: pool.directory.path().join("scratch"),
            remember: 1 << 20,
            slots: 2,
            zone: Zone::default(),
            profiles: vec![Arc::new(Plain)],
            id: WorkerId(drawn()),
        };
        pool.worker = Some(RunningWorker::start(options).unwrap());
        pool
    }

    fn route(&self) -> Route {
        let address = self.control.address().to_string();
        Route::new(&[address], &Security::default()).unwrap()
    }

    fn volume(&self) -> Volume {
        Volume::Objects(Arc::clone(&self.objects))
    }

    pub fn worker(&self) -> &RunningWorker {
        self.worker.as_ref().unwrap()
    }

    /// A new database.
    pub fn service(&self) -> Served {
        self.service_with(Arc::new(NoCallbacks))
    }

    /// A database by its names in the store.
    pub fn service_as(&self, path: PathBuf, database: u64, session: u64) -> Served {
        self.service_of(path, database, session, Arc::new(NoCallbacks))
    }

    /// A database with parameters of its own.
    pub fn service_with(&self, callbacks: Arc<dyn DatabaseCallbacks>) -> Served {
        let database = drawn();
        let path = self.directory.path().join(database.to_string());
        self.service_of(path, database, drawn(), callbacks)
    }

    fn service_of(
        &self,
        path: PathBuf,
        database: u64,
        session: u64,
        callbacks: Arc<dyn DatabaseCallbacks>,
    ) -> Served {
        std::fs::create_dir_all(&path).unwrap();
        let pool = RemotePool {
            route: self.route(),
            volume: "far".to_owned(),
            storage: self.volume(),
            database_id: DatabaseId(database),
            session: SessionId(session),
            zone: Zone::default(),
            bytes_min: 0,
            client: ClientOptions {
                away: Nanos::from_secs(30),
                deadline: Nanos::from_secs(120),
                ..ClientOptions::default()
            },
        };
        Served {
            remote: Remote::start(&pool, &path, Arc::new(Plain), callbacks).unwrap(),
            path,
            base: format!("volume/{database:x}/{session:x}/"),
        }
    }

    /// Fills a database, which must come out as at home; how jobs ended, and how many were
    /// installed.
    pub fn fill_as_at_home(&self, seed: u64) -> (impl Fn(LocalReason) -> u64 + use<>, u64) {
        let Served { remote, path, .. } = self.service();
        let mut with_service = options();
        set_service(&mut with_service, remote.clone());
        let db = DB::open(&with_service, &path).unwrap();
        fill(&db, seed);
        assert_eq!(content(&db), home(seed));
        db.put(b"it", b"writes").unwrap();
        db.flush().unwrap();
        let installed = remote.counts().installed.load(Ordering::Relaxed);
        let local = move |reason: LocalReason| remote.counts().local(reason);
        (local, installed)
    }

    /// Names of all objects.
    pub fn keys(&self) -> Vec<String> {
        let transfer = self.objects.transfer("", &Arc::<Stop>::default()).unwrap();
        let keys = transfer.list("").unwrap();
        keys.into_iter()
            .map(|key| format!("volume/{key}"))
            .collect()
    }

    /// Waits until the objects are as they should be.
    pub fn until(&self, are_right: impl Fn(&[String]) -> bool) {
        let began = Instant::now();
        loop {
            let keys = self.keys();
            if are_right(&keys) {
                return;
            }
            assert!(began.elapsed() < HANGS, "the store is left with {keys:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What a database holds that compacts at home.
pub fn home(seed: u64) -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let db = DB::open(&options(), directory.path()).unwrap();
    fill(&db, seed);
    content(&db)
}
