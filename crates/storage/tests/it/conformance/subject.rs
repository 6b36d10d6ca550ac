//! The engines under test behind one face.

use std::ops::Bound;

use manxdb_storage::{
    Direction, Durability, Engine, KeyRange, MemoryEngine, Options, RocksEngine, Version,
    WriteBatch,
};

/// An engine that can be compacted and, where it is durable, closed and opened again.
pub trait Subject {
    fn new() -> Self;
    fn engine(&self) -> &dyn Engine;
    fn compact(&self);
    fn compact_range(&self, range: &KeyRange);
    fn flush(&self);
    fn reopen(self) -> Self;
}

pub struct Memory(MemoryEngine);

impl Subject for Memory {
    fn new() -> Self {
        Self(MemoryEngine::new())
    }

    fn engine(&self) -> &dyn Engine {
        &self.0
    }

    fn compact(&self) {
        self.0.compact();
    }

    fn compact_range(&self, _range: &KeyRange) {}

    fn flush(&self) {}

    fn reopen(self) -> Self {
        self
    }
}

pub struct Rocks {
    engine: Option<RocksEngine>,
    directory: tempfile::TempDir,
}

/// Small enough that tests meet flushes and several files.
pub fn small() -> Options {
    Options {
        block_cache_bytes: 1 << 20,
        write_buffer_bytes: 64 << 10,
        file_bytes: 64 << 10,
        ..Options::default()
    }
}

impl Rocks {
    fn rocks(&self) -> &RocksEngine {
        self.engine.as_ref().unwrap()
    }
}

impl Subject for Rocks {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self {
            engine: Some(RocksEngine::open(directory.path(), &small()).unwrap()),
            directory,
        }
    }

    fn engine(&self) -> &dyn Engine {
        self.rocks()
    }

    fn compact(&self) {
        self.rocks().compact().unwrap();
    }

    fn compact_range(&self, range: &KeyRange) {
        self.rocks().compact_range(range).unwrap();
    }

    fn flush(&self) {
        self.rocks().flush().unwrap();
    }

    fn reopen(mut self) -> Self {
        drop(self.engine.take());
        self.engine = Some(RocksEngine::open(self.directory.path(), &small()).unwrap());
        self
    }
}

pub fn everything() -> KeyRange {
    KeyRange {
        start: Bound::Unbounded,
        end: Bound::Unbounded,
    }
}

/// Writes one key at one version.
pub fn put(engine: &dyn Engine, version: u64, key: &[u8], value: Option<&[u8]>) {
    let writes = vec![(Version(version), key.to_vec(), value.map(<[u8]>::to_vec))];
    engine
        .write(&WriteBatch { writes }, Durability::Async)
        .unwrap();
}

/// Key, version and value of every entry a cursor shows.
pub fn walk(
    engine: &dyn Engine,
    range: &KeyRange,
    at: u64,
    direction: Direction,
) -> Vec<(Vec<u8>, u64, Vec<u8>)> {
    let mut cursor = engine.scan(range, Version(at), direction).unwrap();
    let mut rows = Vec::new();
    while let Some(entry) = cursor.next().unwrap() {
        rows.push((entry.key.to_vec(), entry.version.0, entry.value.to_vec()));
    }
    assert!(cursor.next().unwrap().is_none(), "a cursor ends for good");
    rows
}

/// Version and value of one key.
pub fn read(engine: &dyn Engine, key: &[u8], at: u64) -> Option<(u64, Vec<u8>)> {
    let found = engine.get(key, Version(at)).unwrap();
    found.map(|found| (found.version.0, found.value))
}

/// As [`read`] for many keys at once.
pub fn read_many(engine: &dyn Engine, keys: &[&[u8]], at: u64) -> Vec<Option<(u64, Vec<u8>)>> {
    let found = engine.get_many(keys, Version(at)).unwrap();
    let found = found.into_iter();
    found
        .map(|found| found.map(|found| (found.version.0, found.value)))
        .collect()
}
