//! Memory servers on a directory, their log archiver, and rows that come and go.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_core::{Nanos, Random};
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_rack::archiver::{ArchiverStats, LogArchiver};
use manxdb_rack::disk::Directory;
use manxdb_rack::memory::{
    Geometry, Memory, MemoryError, SharedTransport, Source, Superblock, first_words,
};
use manxdb_rack::path::RsiPath;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::{CommitPath, ReadSet};
use tempfile::TempDir;

use crate::common::{ready, submit};

pub const ALONE: Geometry = Geometry {
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

pub const REPLICATED: Geometry = Geometry {
    servers: 4,
    replicas: 3,
    bytes: 16 << 20,
    log_copies: 3,
    ..ALONE
};

pub type Rows = RsiPath<SharedMemory>;
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Memory servers, and a log archiver that works until this ends.
pub struct Rack {
    sockets: TempDir,
    servers: Vec<MemoryServer>,
    stop: Arc<AtomicBool>,
    archiver: Option<thread::JoinHandle<()>>,
    said: Arc<parking_lot::Mutex<Vec<String>>>,
    /// Of all its log archivers.
    pub tally: Arc<ArchiverStats>,
}

impl Rack {
    /// Starts them on a directory; each waits for rows if there are any.
    pub fn start(geometry: Geometry, disk: &Path, floor: u64) -> Self {
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
            let socket = SharedTransport::socket(sockets.path(), server);
            MemoryServer::start_filled(&socket, ServerId(server), geometry.bytes, &first).unwrap()
        });
        let mut rack = Self {
            servers: servers.collect(),
            sockets,
            stop: Arc::default(),
            archiver: None,
            said: Arc::default(),
            tally: Arc::default(),
        };
        rack.keep(disk, floor, 5);
        rack
    }

    pub fn keep(&mut self, disk: &Path, floor: u64, seed: u64) {
        let (way, directory) = (self.way(), Directory::open(disk).unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        self.stop = Arc::clone(&stop);
        let (said, tally) = (Arc::clone(&self.said), Arc::clone(&self.tally));
        let work = move || {
            let note = |what: &str| {
                println!("{what}");
                said.lock().push(what.to_owned());
            };
            let archiver = LogArchiver {
                way: &way,
                directory: &directory,
                floor,
                stop: &stop,
                note: &note,
                tally: &tally,
            };
            archiver.run(seed);
        };
        self.archiver = Some(thread::spawn(work));
    }

    pub fn way(&self) -> SharedTransport {
        SharedTransport::new(self.sockets.path())
    }

    pub fn path(&self, seed: u64) -> Rows {
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

    pub fn end_archiver(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(archiver) = self.archiver.take() {
            archiver.join().unwrap();
        }
    }

    pub fn has_said(&self, words: &str) -> bool {
        self.said.lock().iter().any(|said| said.contains(words))
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        self.end_archiver();
        self.servers.clear();
    }
}

pub fn all(path: &Rows) -> Model {
    let snapshot = ready(path.snapshot()).unwrap();
    let range = KeyRange::all();
    let found = path.scan(snapshot.version, &range, Direction::Forward, usize::MAX);
    ready(found).unwrap().into_iter().collect()
}

/// Writes, overwrites and deletes rows of all lengths, also of several pieces.
pub fn change(
    path: &Rows,
    model: &mut Model,
    random: &mut Random,
    times: u32,
    durability: Durability,
) {
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
