//! A store whose compactions are done by a pool, beside one that does them itself.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_compaction::control::server::ControlPlane;
use manxdb_compaction::control::store::StoreLocation;
use manxdb_compaction::database::service::RemotePool;
use manxdb_compaction::object_store::volume::Volume;
use manxdb_compaction::order::{CompactionProfile, Plain};
use manxdb_compaction::transport::link::Route;
use manxdb_compaction::transport::security::Security;
use manxdb_compaction::worker::{RunningWorker, WorkerOptions};
use manxdb_core::Nanos;
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{DatabaseId, SessionId, Zone};
use manxdb_jobs::{Options as Jobs, WorkerId};
use manxdb_storage::{
    DeadRows, Direction, DroppedPrefix, Durability, Engine, ExpiredRows, KeyRange, Options,
    RocksEngine, StorageError, Version, Versions, WriteBatch,
};

static DRAWN: AtomicU64 = AtomicU64::new(1);

fn drawn() -> u64 {
    DRAWN.fetch_add(1, Ordering::Relaxed)
}

/// Volume, control plane and worker, in this process.
struct Fixture {
    volume: tempfile::TempDir,
    control: ControlPlane,
    worker: Option<RunningWorker>,
}

impl Fixture {
    fn new(profile: Arc<dyn CompactionProfile>) -> Self {
        let volume = tempfile::tempdir().unwrap();
        let address = "127.0.0.1:0".parse().unwrap();
        let place = StoreLocation::File(volume.path().join("control"));
        let security = Security::default();
        let control = ControlPlane::start(address, &place, Jobs::default(), &security, drawn());
        let mut fixture = Self {
            volume,
            control: control.unwrap(),
            worker: None,
        };
        let options = WorkerOptions {
            route: fixture.route(),
            volumes: BTreeMap::from([(
                "fast".to_owned(),
                Volume::Directory(fixture.volume.path().to_owned()),
            )]),
            scratch: fixture.volume.path().join("scratch"),
            remember: 0,
            slots: 2,
            zone: Zone::default(),
            profiles: vec![profile],
            id: WorkerId(drawn()),
        };
        fixture.worker = Some(RunningWorker::start(options).unwrap());
        fixture
    }

    fn route(&self) -> Route {
        let address = self.control.address().to_string();
        Route::new(&[address], &Security::default()).unwrap()
    }

    fn pool(&self) -> RemotePool {
        RemotePool {
            route: self.route(),
            volume: "fast".to_owned(),
            storage: Volume::Directory(self.volume.path().to_owned()),
            database_id: DatabaseId(drawn()),
            session: SessionId(drawn()),
            zone: Zone::default(),
            bytes_min: 0,
            client: ClientOptions {
                away: Nanos::from_secs(60),
                deadline: Nanos::from_secs(300),
                ..ClientOptions::default()
            },
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.volume.path().join(name)
    }

    fn open(&self, name: &str, options: &Options) -> RocksEngine {
        let pool = self.pool();
        RocksEngine::open_with(&self.path(name), options, Some(&pool)).unwrap()
    }
}

/// Small files, so that there are many, made only when they are asked for.
fn options() -> Options {
    Options {
        file_bytes: 64 << 10,
        ..Options::default()
    }
}

/// Files are made all the time, so that compactions begin by themselves.
fn busy_options() -> Options {
    Options {
        write_buffer_bytes: 128 << 10,
        ..options()
    }
}

fn number(engine: &RocksEngine, name: &str) -> u64 {
    let numbers = engine.compaction_numbers();
    let name = format!("manxdb_compaction_{name}");
    numbers.iter().find(|(one, _)| *one == name).unwrap().1
}

fn stat(engine: &RocksEngine, name: &str) -> f64 {
    let stats = engine.stats();
    stats.iter().find(|(one, _)| *one == name).unwrap().1
}

/// A pool that is slow may be helped, but nothing goes wrong.
fn expect_nothing_wrong(engine: &RocksEngine) {
    for reason in ["refused", "unfit", "attempts", "poison"] {
        let name = format!("local_total{{reason=\"{reason}\"}}");
        assert_eq!(number(engine, &name), 0, "{reason}");
    }
}

/// Random numbers that are the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.0 ^ (self.0 >> 29)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 33) % end
    }
}

/// Writes the same to all engines: few keys, so that there are many versions of each.
struct Writers<'a> {
    engines: [&'a RocksEngine; 2],
    random: Random,
    version: u64,
    watermark: u64,
}

const KEYS: u64 = 3_000;

impl<'a> Writers<'a> {
    fn new(engines: [&'a RocksEngine; 2], seed: u64) -> Self {
        Self {
            engines,
            random: Random(seed),
            version: 0,
            watermark: 0,
        }
    }

    /// Writes fewer files than start a compaction by themselves, and compacts all of them.
    fn round(&mut self, kept: u64) {
        for _ in 0..2 {
            self.write(1_500);
            self.each(RocksEngine::flush);
        }
        self.forget_before(kept);
        self.each(RocksEngine::compact);
        self.compare();
    }

    /// Nobody reads old versions any more; compacts the files with the upper half of the keys.
    fn compact_part(&mut self) {
        self.forget_before(0);
        let upper = KeyRange {
            start: Bound::Included((KEYS / 2).to_be_bytes().to_vec()),
            end: Bound::Unbounded,
        };
        self.each(|engine| engine.compact_range(&upper));
        self.compare();
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count {
            self.version += 1;
            let key = self.random.below(KEYS).to_be_bytes().to_vec();
            let words = self.random.below(25);
            let value = (self.random.below(4) > 0).then(|| {
                (0..words)
                    .flat_map(|_| self.random.next().to_be_bytes())
                    .collect()
            });
            self.put(key, value);
        }
    }

    fn put(&self, key: Vec<u8>, value: Option<Vec<u8>>) {
        let writes = vec![(Version(self.version), key, value)];
        for engine in self.engines {
            let batch = WriteBatch {
                writes: writes.clone(),
            };
            engine.write(&batch, Durability::Async).unwrap();
        }
    }

    /// Gives up the rows of a few keys, and those whose first byte is small, which are deleted.
    fn give_up(&mut self) {
        let until = self.random.below(60);
        let expired = content(self.engines[0], Version::MAX);
        let expired = expired.into_iter().filter(|(_, _, value)| {
            let time = value.first().copied();
            time.is_some_and(|time| u64::from(time) <= until)
        });
        for (key, _, _) in expired {
            self.version += 1;
            self.put(key, None);
        }
        let high = self.random.below(KEYS) / 256;
        let version = Version(self.version);
        // All of the key but its last byte.
        let prefix = high.to_be_bytes()[1..].to_vec();
        let dead = DeadRows {
            dropped: vec![DroppedPrefix { prefix, version }],
            expired: Some(ExpiredRows {
                prefix: vec![0],
                until,
                version,
                expiry_of: first_byte,
            }),
        };
        for engine in self.engines {
            assert!(engine.set_dead_rows(dead.clone()));
        }
    }

    /// Readers have gone: all but the last `kept` versions may be forgotten.
    fn forget_before(&mut self, kept: u64) {
        self.watermark = self.watermark.max(self.version.saturating_sub(kept));
        for engine in self.engines {
            engine.set_watermark(Version(self.watermark));
        }
    }

    fn each(&self, what: impl Fn(&RocksEngine) -> Result<(), StorageError>) {
        for engine in self.engines {
            what(engine).unwrap();
        }
    }

    /// What any snapshot that may still be read sees is equal.
    fn compare(&self) {
        let span = self.version - self.watermark;
        for step in 0..=4 {
            let at = Version(self.watermark + span * step / 4);
            let [away, home] = self.engines.map(|engine| content(engine, at));
            assert_eq!(away.len(), home.len(), "rows at {at:?}");
            assert!(away == home, "rows at {at:?} differ");
        }
    }
}

fn first_byte(value: &[u8]) -> Option<u64> {
    value.first().copied().map(u64::from)
}

fn content(engine: &RocksEngine, at: Version) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
    let mut cursor = engine
        .scan(&KeyRange::all(), at, Direction::Forward)
        .unwrap();
    let mut rows = Vec::new();
    while let Some(row) = cursor.next().unwrap() {
        rows.push((row.key.to_vec(), row.version.0, row.value.to_vec()));
    }
    rows
}

/// A physical key and a stored value.
type Record = (Box<[u8]>, Box<[u8]>);

/// Every record of a store that is closed, with versions and deletes that no reader sees.
fn records(directory: &Path) -> Vec<Record> {
    let data = directory.join("rocksdb");
    let db = rocksdb::DB::open_for_read_only(&rocksdb::Options::default(), data, false).unwrap();
    let all = db.iterator(rocksdb::IteratorMode::Start);
    all.map(Result::unwrap).collect()
}

/// Two stores that are closed hold the same records; how many.
fn same_records(directories: [PathBuf; 2]) -> usize {
    let [away, home] = directories.map(|directory| records(&directory));
    assert!(
        away == home,
        "records differ: {} and {}",
        away.len(),
        home.len()
    );
    away.len()
}

#[test]
fn workers_write_what_the_store_would_have_written() {
    let fixture = Fixture::new(Arc::new(Versions::with_expiry(first_byte)));
    for seed in 1..=2 {
        let names = [format!("away-{seed}"), format!("home-{seed}")];
        let away = fixture.open(&names[0], &options());
        let home = RocksEngine::open(&fixture.path(&names[1]), &options()).unwrap();
        let mut writers = Writers::new([&away, &home], seed);
        writers.round(0);
        let before = content(&away, Version::MAX).len();
        writers.give_up();
        let deleted = content(&away, Version::MAX).len();
        writers.each(RocksEngine::flush);
        writers.forget_before(0);
        writers.each(RocksEngine::compact);
        writers.compare();
        let after = content(&away, Version::MAX).len();
        assert!(
            after < deleted && deleted < before,
            "{before} {deleted} {after}"
        );
        for kept in [0, 500, 1_000] {
            writers.round(kept);
        }
        // A compaction of everything drops deletes that nobody needs; that of a part notes them,
        // and the next file buries them.
        let is_part = seed % 2 == 0;
        if is_part {
            writers.compact_part();
        }
        let to_purge = [&away, &home].map(|engine| stat(engine, "storage_tombstones_to_purge"));
        assert!(to_purge[0].eq(&to_purge[1]), "{to_purge:?}");
        assert_eq!(to_purge[0] > 100.0, is_part, "{to_purge:?}");
        if is_part {
            writers.write(10);
            writers.each(RocksEngine::flush);
        }
        assert!(number(&away, "remote_installed_total") >= 4);
        expect_nothing_wrong(&away);
        assert!(home.compaction_numbers().is_empty());
        drop((away, home));
        let all = same_records(names.map(|name| fixture.path(&name)));
        assert!(all > 1_000);
    }
}

#[test]
fn readers_see_no_difference_while_compactions_come_and_go() {
    let fixture = Fixture::new(Arc::new(Versions::default()));
    let away = fixture.open("away", &busy_options());
    let home = RocksEngine::open(&fixture.path("home"), &busy_options()).unwrap();
    let mut writers = Writers::new([&away, &home], 11);
    let installed = || number(&away, "remote_installed_total");
    let mut round = 0;
    while round < 40 || installed() < 3 {
        round += 1;
        assert!(round < 10_000, "{:?}", away.compaction_numbers());
        writers.write(500);
        writers.forget_before(3_000);
        if round % 10 == 0 {
            writers.compare();
        }
    }
    expect_nothing_wrong(&away);
    // One compaction of everything at one watermark leaves one possible content.
    writers.each(RocksEngine::compact);
    drop((away, home));
    same_records(["away", "home"].map(|name| fixture.path(name)));
}

#[test]
fn a_worker_that_knows_no_versions_is_never_asked() {
    let fixture = Fixture::new(Arc::new(Plain));
    let engine = fixture.open("away", &options());
    for version in 1..=2_000_u64 {
        let writes = vec![(Version(version), vec![7], Some(vec![1; 100]))];
        engine
            .write(&WriteBatch { writes }, Durability::Async)
            .unwrap();
        if version.is_multiple_of(1_000) {
            engine.flush().unwrap();
        }
    }
    engine.set_watermark(Version(2_000));
    engine.compact().unwrap();
    assert_eq!(number(&engine, "remote_installed_total"), 0);
    assert!(number(&engine, "local_total{reason=\"no_worker\"}") > 0);
    let row = engine.get(&[7], Version(2_000)).unwrap().unwrap();
    assert_eq!(row.version, Version(2_000));
}

#[test]
fn a_store_outside_of_the_volume_is_refused_by_name() {
    let fixture = Fixture::new(Arc::new(Plain));
    let remote = tempfile::tempdir().unwrap();
    let opened = RocksEngine::open_with(remote.path(), &options(), Some(&fixture.pool()));
    let error = opened.err().unwrap();
    assert!(
        matches!(error, StorageError::RemoteCompaction(_)),
        "{error}"
    );
    assert!(
        error.to_string().contains("is not on the volume"),
        "{error}"
    );
}

#[test]
fn what_workers_left_goes_when_the_store_is_opened_without_them() {
    let directory = tempfile::tempdir().unwrap();
    drop(RocksEngine::open(directory.path(), &options()).unwrap());
    let staging = directory.path().join("rocksdb/compactions-elsewhere");
    std::fs::create_dir_all(staging.join("1-2-3")).unwrap();
    drop(RocksEngine::open(directory.path(), &options()).unwrap());
    assert!(!staging.exists());
}
