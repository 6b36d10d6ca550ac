//! A damaged block that compactions meet stops nothing but what needs it.

use std::fs;
use std::path::{Path, PathBuf};

use manxdb_storage::{Durability, Engine, Options, RocksEngine, StorageError, Version, WriteBatch};

const ROWS: u16 = 2_000;

/// Buffers so small that flushes and compactions happen all the time.
fn open(directory: &Path) -> RocksEngine {
    let options = Options {
        block_cache_bytes: 1 << 20,
        write_buffer_bytes: 64 << 10,
        file_bytes: 1 << 20,
        log_segment_bytes: 128 << 10,
        ..Options::default()
    };
    RocksEngine::open(directory, &options).unwrap()
}

/// Bytes that do not compress, the same each time.
struct Noise(u64);

impl Noise {
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut byte = || {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            self.0.to_be_bytes()[0]
        };
        (0..length).map(|_| byte()).collect()
    }
}

fn write(engine: &RocksEngine, version: u64, step: usize, noise: &mut Noise) {
    let keys = (0..ROWS).step_by(step);
    let row = |key: u16| {
        let value = Some(noise.bytes(100));
        (Version(version), key.to_be_bytes().to_vec(), value)
    };
    let writes = keys.map(row).collect();
    engine
        .write(&WriteBatch { writes }, Durability::Async)
        .unwrap();
}

/// Flips a bit in the middle of the largest sorted file; its name.
fn damage(directory: &Path) -> String {
    let files = fs::read_dir(directory.join("rocksdb")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let tables = files.filter(|path| path.extension().is_some_and(|end| end == "sst"));
    let size = |path: &PathBuf| fs::metadata(path).unwrap().len();
    let file = tables.max_by_key(size).unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&file, bytes).unwrap();
    file.file_name().unwrap().to_str().unwrap().to_owned()
}

fn number(engine: &RocksEngine, name: &str) -> f64 {
    let numbers = engine.stats();
    numbers.iter().find(|(one, _)| *one == name).unwrap().1
}

/// Files on level 0 at which no memtable is written out any more.
const STOP: u64 = 36;

#[test]
fn a_damaged_file_that_compactions_meet_stops_no_writes_and_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut noise = Noise(1);
    let engine = open(directory.path());
    write(&engine, 1, 1, &mut noise);
    engine.compact().unwrap();
    drop(engine);
    let name = damage(directory.path());

    let engine = open(directory.path());
    let mut version = 1;
    let mut flush = |engine: &RocksEngine| {
        version += 1;
        write(engine, version, 100, &mut noise);
        engine.flush().unwrap();
    };
    let is_met = |engine: &RocksEngine| !engine.damaged_files().is_empty();
    let tries = (0..1_000).take_while(|_| {
        flush(&engine);
        !is_met(&engine)
    });
    assert!(tries.count() < 1_000, "no compaction met the damage");
    // Many more than there is place for on level 0 without compactions.
    (0..2 * STOP).for_each(|_| flush(&engine));

    let damaged = engine.damaged_files();
    assert_eq!(damaged.len(), 1, "{damaged:?}");
    assert_eq!(damaged[0].name, name);
    assert!(damaged[0].why.contains("checksum mismatch"), "{damaged:?}");
    assert!((number(&engine, "storage_damaged_files") - 1.0).abs() < 0.1);
    let mut errors = 0;
    for key in 0..ROWS {
        match engine.get(&key.to_be_bytes(), Version::MAX) {
            Ok(found) => assert!(found.is_some(), "row {key} is lost in silence"),
            Err(StorageError::Corrupt(why)) => {
                assert!(why.contains(&name), "{why}");
                errors += 1;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!((1..200).contains(&errors), "{errors}");
    // Nothing that waits for compactions waits for those that are held back.
    engine.compact().unwrap();
    flush(&engine);
    drop(engine);
    flush(&open(directory.path()));
}
