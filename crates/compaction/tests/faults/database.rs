//! A database that writes all the time, as a process.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use manxdb_compaction::database::service::{Remote, RemotePool};
use manxdb_compaction::edge::{
    CompactionProfile, DatabaseCallbacks, DatabaseService as _, Inputs, JobFiles, JobInfo, Level0,
    OpenDatabase, Service, TableFunctions, Waited, linked_tables, set_service,
};
use manxdb_compaction::object_store::volume::Volume;
use manxdb_compaction::order::STAGING;
use manxdb_core::Nanos;
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::{DatabaseId, LocalReason, SessionId, Zone};
use rocksdb::{DB, IteratorMode, Options, ReadOptions};
use rustix::process::{Signal, getpid, kill_process};

use crate::load::{COUNT_KEY, Load, Model, Shape, hash, hash_of};
use crate::roles::{Halting, Unheard, VOLUME, commands, drawn, route, say};
use crate::settings::Settings;

/// Small files, many compactions.
pub fn options() -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_write_buffer_size(128 << 10);
    options.set_target_file_size_base(64 << 10);
    options.set_max_bytes_for_level_base(512 << 10);
    options.set_level_zero_file_num_compaction_trigger(4);
    options.set_max_background_jobs(4);
    options
}

pub fn load_of(settings: &Settings) -> Load {
    Load {
        seed: settings.number("seed").unwrap_or(1),
        shape: Shape::of(settings.get("load").unwrap_or("mixed")),
    }
}

/// Batches that a database holds.
pub fn batches_in(db: &DB) -> u64 {
    let count = db.get(COUNT_KEY).unwrap();
    count.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

/// Ends this process at one moment of a job.
struct Deadly {
    inner: Arc<Remote>,
    staging: PathBuf,
    moment: String,
    /// In the so many-th job that gets there.
    nth: u64,
    seen: AtomicU64,
}

impl Deadly {
    fn is_time(&self, moment: &str) -> bool {
        self.moment == moment && self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.nth
    }

    fn pass(&self, moment: &str) {
        if self.is_time(moment) {
            die();
        }
    }

    /// Dies as soon as the first output of a job is where RocksDB renames it to.
    fn pass_renaming(&self, job: &str) {
        if self.is_time("renaming") {
            let (staging, prefix) = (self.staging.clone(), format!("{job}-"));
            let all = outputs_of(&staging, &prefix);
            std::thread::spawn(move || {
                while outputs_of(&staging, &prefix) == all {}
                die();
            });
        }
    }
}

fn die() {
    kill_process(getpid(), Signal::KILL).unwrap();
}

/// Files that attempts at a job have made.
fn outputs_of(staging: &Path, prefix: &str) -> usize {
    let attempts = std::fs::read_dir(staging).into_iter().flatten().flatten();
    let attempts = attempts.filter(|one| one.file_name().to_string_lossy().starts_with(prefix));
    let files = attempts.flat_map(|one| std::fs::read_dir(one.path()).into_iter().flatten());
    files.flatten().count()
}

impl Service for Deadly {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        self.pass("schedule");
        let name = self.inner.schedule(info, input)?;
        self.pass("scheduled");
        Some(name)
    }

    fn wait(&self, job: &str) -> Waited {
        let waited = self.inner.wait(job);
        if matches!(waited, Waited::Done(_)) {
            self.pass("answered");
            self.pass_renaming(job);
        }
        waited
    }

    fn cancel(&self) {
        self.inner.cancel();
    }

    fn installed(&self, job: &str, is_installed: bool) {
        if is_installed {
            self.pass("installed");
        }
        self.inner.installed(job, is_installed);
    }
}

thread_local! {
    /// Entries of the job that this thread is about to give away.
    static ENTRIES: Cell<u64> = const { Cell::new(0) };
}

/// What the database knows of files, for checks and for where workers stand still.
fn inputs_of(db: &Weak<DB>, names: &[String], counts: bool) -> Inputs {
    let Some(files) = db.upgrade().and_then(|db| db.live_files().ok()) else {
        return Inputs::default();
    };
    let is_input = |name: &str| names.iter().any(|one| one == name.trim_start_matches('/'));
    let inputs: Vec<_> = files.iter().filter(|file| is_input(&file.name)).collect();
    let entries = inputs.iter().map(|file| file.num_entries).sum();
    ENTRIES.set(entries);
    let smallest = inputs
        .iter()
        .filter_map(|file| file.start_key.clone())
        .min();
    let largest = inputs.iter().filter_map(|file| file.end_key.clone()).max();
    Inputs {
        keys: smallest.zip(largest),
        // Deleted ranges are entries of a file and none of a compaction.
        entries: counts.then_some(entries),
    }
}

/// The database while it is open.
struct Known {
    db: Weak<DB>,
    counts: bool,
}

impl OpenDatabase for Known {
    fn inputs(&self, names: &[String]) -> Result<Inputs, String> {
        Ok(inputs_of(&self.db, names, self.counts))
    }

    fn level0(&self) -> BTreeMap<String, Level0> {
        BTreeMap::new()
    }
}

/// Parameters of as many bytes, or the number of entries.
struct Parameters(Option<usize>);

impl DatabaseCallbacks for Parameters {
    fn parameters(&self, _: &JobInfo, _: &JobFiles<'_>) -> Result<Vec<u8>, String> {
        Ok(match self.0 {
            Some(bytes) => vec![0; bytes],
            None => ENTRIES.get().to_le_bytes().to_vec(),
        })
    }

    fn noted(&self, _: &[u8]) {}

    fn tables(&self) -> TableFunctions {
        linked_tables()
    }
}

pub fn service(settings: &Settings, database: &Path) -> Arc<Remote> {
    let parameters = Parameters(settings.number("parameters_bytes"));
    let profile: Arc<dyn CompactionProfile> = match settings.get("profile") {
        Some(_) => Arc::new(Unheard),
        None => Arc::new(Halting::default()),
    };
    let pool = RemotePool {
        route: route(settings),
        volume: VOLUME.to_owned(),
        storage: Volume::Directory(settings.path("volume")),
        database_id: DatabaseId(settings.number("id").unwrap()),
        session: SessionId(drawn()),
        zone: Zone::default(),
        bytes_min: 0,
        client: ClientOptions {
            beat: Nanos::from_millis(200),
            away: Nanos::from_millis(1_500),
            deadline: Nanos::from_millis(settings.number("deadline_ms").unwrap_or(30_000)),
            ..ClientOptions::default()
        },
    };
    Remote::start(&pool, database, profile, Arc::new(parameters)).unwrap()
}

fn status(db: &DB, remote: &Remote, written: u64) -> String {
    let counts = remote.counts();
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let all = LocalReason::ALL.into_iter();
    let local = all
        .clone()
        .map(|reason| format!(" {}={}", reason.word(), counts.local(reason)));
    let all_local: u64 = all.map(|reason| counts.local(reason)).sum();
    let errors = db.property_int_value("rocksdb.background-errors").unwrap();
    format!(
        "status written={written} asked={} installed={} local={all_local} errors={}{}",
        load(&counts.asked),
        load(&counts.installed),
        errors.unwrap_or(u64::MAX),
        local.collect::<String>()
    )
}

/// Writes until it is told to stop. A snapshot is held all the time, and what is read through it
/// must stay as it was.
struct Writer {
    db: Arc<DB>,
    load: Load,
    ledger: File,
    pause: Duration,
    ends: Arc<AtomicBool>,
    written: Arc<AtomicU64>,
}

/// Batches for which a snapshot is held.
const SNAPSHOT: u64 = 600;

impl Writer {
    fn run(&self) {
        let mut model: Model = pairs(&self.db, None).collect();
        while !self.ends.load(Ordering::Relaxed) {
            let snapshot = self.db.snapshot();
            let expected = hash_of(&model);
            for _ in 0..SNAPSHOT {
                if self.ends.load(Ordering::Relaxed) {
                    break;
                }
                self.write(&mut model);
            }
            let mut options = ReadOptions::default();
            options.set_snapshot(&snapshot);
            let found: Model = pairs(&self.db, Some(options)).collect();
            assert_eq!(hash_of(&found), expected, "what a snapshot shows changed");
        }
    }

    fn write(&self, model: &mut Model) {
        let number = self.written.load(Ordering::Relaxed) + 1;
        self.db.write(self.load.batch(number)).unwrap();
        // Acknowledged: from here on it must not get lost.
        self.ledger.write_all_at(&number.to_le_bytes(), 0).unwrap();
        self.written.store(number, Ordering::Relaxed);
        self.load.apply(number, model);
        std::thread::sleep(self.pause);
    }
}

/// All pairs but the count.
fn pairs(db: &DB, options: Option<ReadOptions>) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let all = db.iterator_opt(IteratorMode::Start, options.unwrap_or_default());
    all.map(|pair| pair.unwrap())
        .map(|(key, value)| (key.into_vec(), value.into_vec()))
        .filter(|(key, _)| key != COUNT_KEY)
}

/// One number for all that a database holds.
pub fn hash_in(db: &DB) -> (u64, u32) {
    let found: Model = pairs(db, None).collect();
    hash(found.iter().map(|(key, value)| (&key[..], &value[..])))
}

pub fn play(settings: &Settings) {
    let path = settings.path("database");
    std::fs::create_dir_all(&path).unwrap();
    let remote = service(settings, &path);
    let mut options = options();
    if let Some(parts) = settings.number("parts") {
        options.set_max_subcompactions(parts);
    }
    options.set_enable_blob_files(settings.get("blobs").is_some());
    let deadly = Deadly {
        inner: Arc::clone(&remote),
        staging: path.join(STAGING),
        moment: settings.get("die").unwrap_or_default().to_owned(),
        nth: settings.number("die_in").unwrap_or(1),
        seen: AtomicU64::new(0),
    };
    set_service(&mut options, Arc::new(deadly));
    let db = Arc::new(DB::open(&options, &path).unwrap());
    drop(options); // they hold the service too
    let load = load_of(settings);
    let (db_seen, counts) = (Arc::downgrade(&db), load.shape == Shape::Once);
    remote.opened(Box::new(Known {
        db: db_seen,
        counts,
    }));
    let ledger = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(settings.path("ledger"))
        .unwrap();
    let writer = Writer {
        load,
        ledger,
        pause: Duration::from_micros(settings.number("pause_us").unwrap_or(2_000)),
        ends: Arc::default(),
        written: Arc::new(AtomicU64::new(batches_in(&db))),
        db,
    };
    serve(writer, remote);
}

fn serve(writer: Writer, remote: Arc<Remote>) {
    let (ends, written) = (Arc::clone(&writer.ends), Arc::clone(&writer.written));
    let db = Arc::clone(&writer.db);
    let writing = std::thread::spawn(move || writer.run());
    let stop = || ends.store(true, Ordering::Relaxed);
    say("ready");
    let mut writing = Some(writing);
    for command in commands() {
        match command.as_str() {
            "status" => say(&status(&db, &remote, written.load(Ordering::Relaxed))),
            "stop" => {
                stop();
                if let Some(thread) = writing.take() {
                    thread.join().unwrap();
                }
                say("stop");
            }
            // With jobs waiting: closing cancels them.
            "close" => {
                stop();
                if let Some(thread) = writing.take() {
                    thread.join().unwrap();
                }
                let last = status(&db, &remote, written.load(Ordering::Relaxed));
                let began = Instant::now();
                drop(db);
                drop(remote);
                let millis = began.elapsed().as_millis();
                say(&format!("close millis={millis} {last}"));
                return;
            }
            other => panic!("a database does not know {other}"),
        }
    }
}
