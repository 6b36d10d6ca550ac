//! Rows that come back: memory servers that are all gone are started again, and a keeper brings what
//! was committed. Deaths of processes are in `tests/memory`; here a death is a copy of the directory,
//! as it is at a moment that nobody has chosen.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods)] // threads, clocks and files, and tests

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_core::{Nanos, Random};
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_rack::disk::{Directory, Kind};
use manxdb_rack::keeper::{Keeper, Tally};
use manxdb_rack::memory::{
    Geometry, Memory, MemoryError, SharedWay, Source, Superblock, first_words,
};
use manxdb_rack::path::RsiPath;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::{CommitPath, Intent, IsolationLevel, ReadSet, Reply, TxnError, TxnId};
use tempfile::TempDir;

const ALONE: Geometry = Geometry {
    servers: 2,
    replicas: 1,
    bytes: 8 << 20,
    places: 8,
    log_copies: 2,
    log_bytes: 32 << 10,
    log_slots: 4,
    versions: 3,
    value: 64,
    node: 1_000,
    // Long beside what a busy machine makes a thread wait.
    lease: Nanos::from_secs(20),
};

const REPLICATED: Geometry = Geometry {
    servers: 4,
    replicas: 3,
    bytes: 16 << 20,
    log_copies: 3,
    ..ALONE
};

type Rows = RsiPath<SharedMemory>;
type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Memory servers, and a keeper that works until this ends.
struct Rack {
    sockets: TempDir,
    servers: Vec<MemoryServer>,
    stop: Arc<AtomicBool>,
    keeper: Option<thread::JoinHandle<()>>,
    said: Arc<parking_lot::Mutex<Vec<String>>>,
    /// Of all its keepers.
    tally: Arc<Tally>,
}

impl Rack {
    /// Starts them on a directory; each waits for rows if there are any.
    fn start(geometry: Geometry, disk: &Path, floor: u64) -> Self {
        let sockets = tempfile::tempdir().unwrap();
        let directory = Directory::open(disk).unwrap();
        let servers = (0..geometry.servers).map(|server| {
            let superblock = Superblock {
                name: "test".into(),
                server,
                directory: directory.identity(7).unwrap(),
                geometry,
            };
            let waiting = directory.has_rows().unwrap().then_some(server.into());
            let first = first_words(&superblock, waiting);
            let socket = SharedWay::socket(sockets.path(), server);
            MemoryServer::start_filled(&socket, ServerId(server), geometry.bytes, &first).unwrap()
        });
        let mut rack = Self {
            servers: servers.collect(),
            sockets,
            stop: Arc::default(),
            keeper: None,
            said: Arc::default(),
            tally: Arc::default(),
        };
        rack.keep(disk, floor, 5);
        rack
    }

    fn keep(&mut self, disk: &Path, floor: u64, seed: u64) {
        let (way, directory) = (self.way(), Directory::open(disk).unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        self.stop = Arc::clone(&stop);
        let (said, tally) = (Arc::clone(&self.said), Arc::clone(&self.tally));
        let work = move || {
            let note = |what: &str| {
                println!("{what}");
                said.lock().push(what.to_owned());
            };
            let keeper = Keeper {
                way: &way,
                directory: &directory,
                floor,
                stop: &stop,
                note: &note,
                tally: &tally,
            };
            keeper.run(seed);
        };
        self.keeper = Some(thread::spawn(work));
    }

    fn way(&self) -> SharedWay {
        SharedWay::new(self.sockets.path())
    }

    fn path(&self, seed: u64) -> Rows {
        let began = Instant::now();
        let mut random = Random::stream(seed, &[9]);
        loop {
            // Each time as somebody else: the servers may not have noticed that the one before is gone.
            match Memory::open(self.way(), random.next_bits()) {
                Ok(memory) => {
                    let value = memory.geometry().value;
                    let source: Arc<dyn Source<SharedMemory>> = Arc::new(memory);
                    return RsiPath::open(source, 2, value).unwrap();
                }
                Err(MemoryError::Waiting) if began.elapsed() < Duration::from_secs(120) => {
                    thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn end_keeper(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(keeper) = self.keeper.take() {
            keeper.join().unwrap();
        }
    }

    fn has_said(&self, words: &str) -> bool {
        self.said.lock().iter().any(|said| said.contains(words))
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        self.end_keeper();
        self.servers.clear();
    }
}

fn ready<T>(reply: Reply<T>) -> T {
    match reply {
        Reply::Ready(answer) => answer,
        Reply::Pending(_) => panic!("it answers at once"),
    }
}

fn submit(
    path: &Rows,
    reads: ReadSet,
    writes: &[(Vec<u8>, Option<Vec<u8>>)],
    durability: Durability,
) -> Result<(), TxnError> {
    let mut writes = writes.to_vec();
    writes.sort();
    let intent = Intent {
        txn: TxnId(1),
        isolation: IsolationLevel::Serializable,
        reads,
        writes,
        durability,
    };
    ready(path.submit(intent)).map(drop)
}

fn all(path: &Rows) -> Model {
    let snapshot = ready(path.snapshot()).unwrap();
    let range = KeyRange::all();
    let found = path.scan(snapshot.version, &range, Direction::Forward, usize::MAX);
    ready(found).unwrap().into_iter().collect()
}

/// Writes, overwrites and deletes rows of all lengths, also of several pieces.
fn change(path: &Rows, model: &mut Model, random: &mut Random, times: u32, durability: Durability) {
    for _ in 0..times {
        let mut writes = BTreeMap::new();
        for _ in 0..=random.below(6) {
            let key = format!("row {:04}", random.below(600)).into_bytes();
            let length = usize::try_from(random.below(200)).unwrap();
            let row = vec![u8::try_from(random.below(256)).unwrap(); length];
            writes.insert(key, (random.below(4) > 0).then_some(row));
        }
        let list: Vec<_> = writes.clone().into_iter().collect();
        submit(path, ReadSet::default(), &list, durability).unwrap();
        for (key, row) in writes {
            match row {
                Some(row) => model.insert(key, row),
                None => model.remove(&key),
            };
        }
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn rows_come_back(geometry: Geometry) {
    let disk = tempfile::tempdir().unwrap();
    let mut model = Model::new();
    let mut random = Random::stream(1, &[2]);
    for life in 0..4 {
        let mut rack = Rack::start(geometry, disk.path(), 100 << 10);
        let path = rack.path(life + 10);
        assert_eq!(all(&path), model, "life {life}");
        let durability = if life % 2 == 0 {
            Durability::Async
        } else {
            Durability::Sync
        };
        change(&path, &mut model, &mut random, 250, durability);
        assert_eq!(all(&path), model, "life {life}");
        if life == 0 {
            until("a checkpoint", || rack.has_said("in a checkpoint"));
        }
        path.leave();
        // In order: all that is published is on disk.
        rack.end_keeper();
    }
}

#[test]
fn rows_come_back_when_all_memory_servers_were_gone() {
    rows_come_back(ALONE);
}

#[test]
fn rows_with_replicas_come_back() {
    rows_come_back(REPLICATED);
}

#[test]
fn another_keeper_goes_on_behind_the_last_batch_and_commits_wait_for_it() {
    let disk = tempfile::tempdir().unwrap();
    let mut rack = Rack::start(ALONE, disk.path(), u64::MAX);
    let path = rack.path(10);
    let (mut model, mut random) = (Model::new(), Random::stream(3, &[4]));
    for keeper in 0..4 {
        change(&path, &mut model, &mut random, 30, Durability::Sync);
        rack.end_keeper();
        thread::scope(|scope| {
            // More than a ring has slots: without a keeper they wait.
            let working = scope.spawn(|| {
                change(&path, &mut model, &mut random, 30, Durability::Async);
            });
            thread::sleep(Duration::from_millis(50));
            rack.keep(disk.path(), u64::MAX, 20 + keeper);
            working.join().unwrap();
        });
    }
    change(&path, &mut model, &mut random, 1, Durability::Sync);
    path.leave();
    rack.end_keeper();
    drop(rack);
    let rack = Rack::start(ALONE, disk.path(), u64::MAX);
    assert_eq!(all(&rack.path(11)), model);
}

const ACCOUNTS: u64 = 6;
const START: u64 = 1_000;

fn account(number: u64) -> Vec<u8> {
    format!("account {number:02}").into_bytes()
}

fn balance(row: &[u8]) -> u64 {
    u64::from_le_bytes(*row.first_chunk().unwrap())
}

/// Moves money and notes it; how many are acknowledged is in `done`.
fn work(path: &Rows, own: u64, done: &AtomicU64, stop: &AtomicBool) {
    let mut random = Random::stream(own, &[1]);
    while !stop.load(Ordering::Relaxed) {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let snapshot = ready(path.snapshot()).unwrap();
        let mut reads = ReadSet::default();
        let count = done.load(Ordering::Relaxed);
        let note = format!("note {own} {count:06}").into_bytes();
        let mut writes = vec![(note, Some(vec![1]))];
        for (number, change) in [(from, u64::MAX), (to, 1)] {
            let key = account(number);
            let row = ready(path.get(snapshot.version, &key)).unwrap().unwrap();
            let after = balance(&row).wrapping_add(change);
            reads.points.push((key.clone(), snapshot.version));
            writes.push((key, Some(after.to_le_bytes().to_vec())));
        }
        match submit(path, reads, &writes, Durability::Sync) {
            Ok(()) => done.store(count + 1, Ordering::Relaxed),
            Err(TxnError::Conflict { .. }) => {}
            Err(error) => panic!("worker {own} after {count}: {error}"),
        }
    }
}

/// What was acknowledged is there, at most one transaction more of each, and no money came or went.
fn judge(path: &Rows, counts: &[u64]) {
    let rows = all(path);
    let of_accounts = rows.iter().filter(|(key, _)| key.starts_with(b"account"));
    let money: u64 = of_accounts.map(|(_, row)| balance(row)).sum();
    assert_eq!(money, ACCOUNTS * START);
    for (own, count) in counts.iter().enumerate() {
        let prefix = format!("note {own} ").into_bytes();
        let notes = rows.keys().filter(|key| key.starts_with(&prefix)).count() as u64;
        assert!(notes >= *count, "worker {own}: {notes} of {count}");
        let expected = (0..notes).map(|number| format!("note {own} {number:06}").into_bytes());
        let found = rows.keys().filter(|key| key.starts_with(&prefix));
        assert!(found.cloned().eq(expected), "worker {own}");
    }
}

/// A disk that has lost what was written last, behind the back of a keeper that has died: files are as
/// they were before.
fn lose(disk: &Path, before: &Path) {
    for entry in fs::read_dir(disk).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    copy(before, disk);
}

/// Copies files in their order, each as it is then.
fn copy(from: &Path, to: &Path) {
    let mut names: Vec<_> = fs::read_dir(from)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    names.sort_by_key(fs::DirEntry::file_name);
    for entry in names {
        let name = entry.file_name();
        let name = name.to_str().unwrap();
        if entry.path().extension().is_none() {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

#[test]
fn whatever_moment_memory_is_gone_at_what_was_acknowledged_is_there() {
    let disk = tempfile::tempdir().unwrap();
    let rack = Rack::start(ALONE, disk.path(), u64::MAX);
    let path = rack.path(10);
    let rows = (0..ACCOUNTS).map(|number| (account(number), Some(START.to_le_bytes().to_vec())));
    let rows: Vec<_> = rows.collect();
    submit(&path, ReadSet::default(), &rows, Durability::Sync).unwrap();
    let stop = AtomicBool::new(false);
    let done: Vec<AtomicU64> = (0..2).map(|_| AtomicU64::new(0)).collect();
    let mut deaths = Vec::new();
    thread::scope(|scope| {
        for (own, done) in (0..).zip(&done) {
            let (path, stop) = (&path, &stop);
            scope.spawn(move || work(path, own, done, stop));
        }
        for death in 1..=4 {
            let busy = || {
                done.iter()
                    .all(|one| one.load(Ordering::Relaxed) > 15 * death)
            };
            until("all work", busy);
            let counts: Vec<u64> = done.iter().map(|one| one.load(Ordering::Relaxed)).collect();
            let left = tempfile::tempdir().unwrap();
            copy(disk.path(), left.path());
            deaths.push((counts, left));
        }
        stop.store(true, Ordering::Relaxed);
    });
    for (counts, left) in deaths {
        for life in 0..2 {
            let rack = Rack::start(ALONE, left.path(), u64::MAX);
            let path = rack.path(20 + life);
            judge(&path, &counts);
            let row = [(format!("note 9 {life:06}").into_bytes(), Some(vec![1]))];
            submit(&path, ReadSet::default(), &row, Durability::Sync).unwrap();
        }
    }
}

/// Commits go on without what a disk has lost; until all of memory is on disk in its place nothing more
/// counts as synced, and what had been on disk comes back.
fn a_gap_is_closed(geometry: Geometry) {
    let (disk, before, during) = (
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
        tempfile::tempdir().unwrap(),
    );
    let (mut model, mut random) = (Model::new(), Random::stream(7, &[8]));
    let mut rack = Rack::start(geometry, disk.path(), u64::MAX);
    let path = rack.path(10);
    change(&path, &mut model, &mut random, 40, Durability::Sync);
    rack.end_keeper();
    copy(disk.path(), before.path());
    let lasting = model.clone();
    rack.keep(disk.path(), u64::MAX, 20);
    change(&path, &mut model, &mut random, 100, Durability::Async);
    rack.end_keeper();
    lose(disk.path(), before.path());
    // No checkpoint can be made for now.
    let directory = Directory::open(disk.path()).unwrap();
    let name = |number| format!("{}.new", Directory::name(Kind::Checkpoint, number));
    let in_the_way: Vec<_> = (2..40)
        .map(|number| disk.path().join(name(number)))
        .collect();
    for path in &in_the_way {
        fs::create_dir(path).unwrap();
    }
    // One keeper after the other finds the gap, the second one with what the first had written behind it.
    for (keeper, gaps) in [(21, 1), (22, 2)] {
        rack.keep(disk.path(), u64::MAX, keeper);
        until("the gap is found", || rack.tally.gaps.get() == gaps);
        change(&path, &mut model, &mut random, 60, Durability::Async);
        if gaps == 1 {
            rack.end_keeper();
        }
    }
    let row = [(b"synced".to_vec(), Some(vec![1]))];
    thread::scope(|scope| {
        let waiting = scope.spawn(|| submit(&path, ReadSet::default(), &row, Durability::Sync));
        thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished(), "nothing is promised over a gap");
        copy(disk.path(), during.path());
        for path in &in_the_way {
            fs::remove_dir(path).unwrap();
        }
        waiting.join().unwrap().unwrap();
    });
    assert!(rack.has_said("no checkpoint for now"));
    model.insert(b"synced".to_vec(), vec![1]);
    assert_eq!(
        (rack.tally.gaps.get(), rack.tally.checkpoints.get()),
        (2, 1)
    );
    assert_eq!(directory.files(Kind::Checkpoint).unwrap().len(), 1);
    change(&path, &mut model, &mut random, 30, Durability::Sync);
    path.leave();
    rack.end_keeper();
    drop(rack);
    for (left, model) in [(disk, model), (during, lasting)] {
        let rack = Rack::start(geometry, left.path(), u64::MAX);
        assert_eq!(all(&rack.path(11)), model);
    }
}

#[test]
fn what_a_disk_has_lost_under_a_keeper_that_died_is_copied_from_memory() {
    a_gap_is_closed(ALONE);
}

#[test]
fn what_a_disk_has_lost_is_copied_from_memory_with_replicas() {
    a_gap_is_closed(REPLICATED);
}

#[test]
fn who_is_stopped_half_way_begins_anew() {
    let disk = tempfile::tempdir().unwrap();
    let (mut model, mut random) = (Model::new(), Random::stream(5, &[6]));
    let mut rack = Rack::start(ALONE, disk.path(), 50 << 10);
    let path = rack.path(10);
    change(&path, &mut model, &mut random, 200, Durability::Sync);
    until("a checkpoint", || rack.has_said("in a checkpoint"));
    path.leave();
    rack.end_keeper();
    drop(rack);
    let mut rack = Rack::start(ALONE, disk.path(), u64::MAX);
    let path = rack.path(11);
    change(&path, &mut model, &mut random, 30, Durability::Sync);
    path.leave();
    rack.end_keeper();
    drop(rack);
    // A batch behind the checkpoint is damaged: the checkpoint is in memory by then.
    let directory = Directory::open(disk.path()).unwrap();
    let (_, last) = directory.files(Kind::Batches).unwrap().pop().unwrap();
    let whole = fs::read(&last).unwrap();
    let mut damaged = whole.clone();
    damaged[600] ^= 1;
    fs::write(&last, damaged).unwrap();
    let rack = Rack::start(ALONE, disk.path(), u64::MAX);
    until("it is refused", || {
        rack.has_said("is damaged at offset 512")
    });
    assert!(matches!(
        Memory::open(rack.way(), 30),
        Err(MemoryError::Waiting)
    ));
    fs::write(&last, whole).unwrap();
    assert_eq!(all(&rack.path(31)), model);
}
