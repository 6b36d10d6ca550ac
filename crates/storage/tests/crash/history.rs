//! Batches whose content follows from their version, so that half a batch cannot hide.

use std::ops::Bound;
use std::path::Path;

use manxdb_storage::{
    Direction, Durability, Engine, KeyRange, Options, RocksEngine, StorageError, Version,
    WriteBatch,
};

/// Rows that batches overwrite in turn.
const ROWS: u64 = 20;

/// Buffers so small that flushes and compactions happen all the time.
pub fn open(directory: &Path) -> Result<RocksEngine, StorageError> {
    let options = Options {
        block_cache_bytes: 1 << 20,
        write_buffer_bytes: 64 << 10,
        file_bytes: 64 << 10,
        log_segment_bytes: 128 << 10,
        ..Options::default()
    };
    RocksEngine::open(directory, &options)
}

fn log_key(version: u64, part: u64) -> Vec<u8> {
    [&b"log"[..], &version.to_be_bytes(), &part.to_be_bytes()].concat()
}

fn row_key(version: u64) -> Vec<u8> {
    [&b"row"[..], &(version % ROWS).to_be_bytes()].concat()
}

fn parts(version: u64) -> u64 {
    1 + version % 7
}

/// One to seven keys of its own, and one row shared with others.
pub fn batch(version: u64) -> WriteBatch {
    let value = |part: u64| {
        let length = 20 + usize::try_from((version * 31 + part * 17) % 300).unwrap();
        let mut value = version.to_be_bytes().to_vec();
        value.resize(length, u8::try_from(part).unwrap());
        Some(value)
    };
    let mut writes: Vec<_> = (0..parts(version))
        .map(|part| (Version(version), log_key(version, part), value(part)))
        .collect();
    writes.push((Version(version), row_key(version), value(0)));
    WriteBatch { writes }
}

pub fn write(
    engine: &RocksEngine,
    version: u64,
    durability: Durability,
) -> Result<(), StorageError> {
    engine.write(&batch(version), durability)
}

/// Checks that the store holds every batch after `from` up to its latest version whole, nothing
/// beyond, and in every row the newest batch; the latest version.
pub fn check_whole(engine: &RocksEngine, from: u64) -> u64 {
    let latest = engine.latest().unwrap().0;
    for version in from + 1..=latest {
        for (_, key, value) in batch(version).writes {
            if key.starts_with(b"log") {
                let found = engine.get(&key, Version::MAX).unwrap();
                let found = found.unwrap_or_else(|| panic!("batch {version} is not whole"));
                assert_eq!((found.version.0, Some(found.value)), (version, value));
            }
        }
    }
    for version in latest.saturating_sub(ROWS - 1).max(1)..=latest {
        let found = engine.get(&row_key(version), Version::MAX).unwrap();
        assert_eq!(found.unwrap().version.0, version, "row of the newest batch");
    }
    let beyond = KeyRange {
        start: Bound::Included(log_key(latest + 1, 0)),
        end: Bound::Excluded(b"row".to_vec()),
    };
    let mut cursor = engine
        .scan(&beyond, Version::MAX, Direction::Forward)
        .unwrap();
    assert!(
        cursor.next().unwrap().is_none(),
        "a batch beyond the latest"
    );
    latest
}
