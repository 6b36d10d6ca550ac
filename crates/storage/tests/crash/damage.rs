//! Damaged files: a clear error or nothing lost, and the rest is served.

use std::fs;
use std::path::{Path, PathBuf};

use manxdb_storage::{Durability, Engine, Options, RocksEngine, StorageError, Version, WriteBatch};

use super::history;

/// The only file of a data directory with this ending.
fn the_file(directory: &Path, ending: &str) -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir(directory.join("rocksdb"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == ending))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// A copy, as a crash would leave it, of a store with twelve batches in its log; the file that
/// holds them, and its bytes up to the end of the last.
fn store_with_a_log() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let engine = history::open(directory.path()).unwrap();
    for version in 1..=12 {
        history::write(&engine, version, Durability::Sync).unwrap();
    }
    let copy = copy_of(directory.path());
    let log = copy.path().join(LOG);
    let bytes = fs::read(&log).unwrap();
    // The last batch may end in some hundred zeros of its own.
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 400;
    (copy, log, bytes[..end].to_vec())
}

/// Bytes that do not compress, the same each time.
fn noise() -> impl FnMut() -> u8 {
    let mut random = 1u64;
    move || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        random.to_be_bytes()[0]
    }
}

const LOG: &str = "log/0000000000000001.log";
/// Where records begin in a file of the log.
const LOG_HEAD_BYTES: usize = 64;

fn copy_of(directory: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    fs::copy(directory.join("FORMAT"), copy.path().join("FORMAT")).unwrap();
    for folder in ["rocksdb", "log"] {
        fs::create_dir(copy.path().join(folder)).unwrap();
        for entry in fs::read_dir(directory.join(folder)).unwrap() {
            let from = entry.unwrap().path();
            let name = from.file_name().unwrap().to_string_lossy().into_owned();
            if !name.starts_with("spare-") {
                fs::copy(&from, copy.path().join(folder).join(name)).unwrap();
            }
        }
    }
    copy
}

#[test]
fn a_log_cut_anywhere_leaves_whole_batches() {
    let (directory, _, bytes) = store_with_a_log();
    let mut found = Vec::new();
    for cut in (LOG_HEAD_BYTES..=bytes.len())
        .step_by(97)
        .chain([bytes.len()])
    {
        let copy = copy_of(directory.path());
        fs::write(copy.path().join(LOG), &bytes[..cut]).unwrap();
        let engine = history::open(copy.path()).unwrap();
        found.push(history::check_whole(&engine, 0));
    }
    assert!(found.is_sorted(), "{found:?}");
    assert_eq!((found[0], found[found.len() - 1]), (0, 12));
}

#[test]
fn a_damaged_record_in_the_middle_of_the_log_is_an_error_not_a_loss() {
    let (directory, log, mut bytes) = store_with_a_log();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&log, bytes).unwrap();
    let Err(error) = history::open(directory.path()) else {
        panic!("opened over a damaged log");
    };
    assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
    assert!(error.to_string().contains(LOG), "{error}");
}

#[test]
fn a_lost_log_is_an_error_not_a_loss() {
    let (directory, log, _) = store_with_a_log();
    // Closing wrote all to sorted files, which then remember that there was a log.
    drop(history::open(directory.path()).unwrap());
    for entry in fs::read_dir(log.parent().unwrap()).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let error = history::open(directory.path()).err().unwrap();
    assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
    assert!(error.to_string().contains("holds no commit log"), "{error}");
}

#[test]
fn a_damaged_block_fails_its_keys_and_the_others_are_served() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        block_cache_bytes: 1 << 20,
        ..Options::default()
    };
    let engine = RocksEngine::open(directory.path(), &options).unwrap();
    let keys = 1u16..2000;
    // Bytes that do not compress, so that a flip hits a block of rows.
    let mut noise = noise();
    let writes = keys
        .clone()
        .map(|key| {
            let value = (0..100).map(|_| noise()).collect();
            (Version(1), key.to_be_bytes().to_vec(), Some(value))
        })
        .collect();
    engine
        .write(&WriteBatch { writes }, Durability::Sync)
        .unwrap();
    engine.compact().unwrap();
    drop(engine);
    let file = the_file(directory.path(), "sst");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&file, bytes).unwrap();

    let engine = RocksEngine::open(directory.path(), &options).unwrap();
    let mut damaged = Vec::new();
    for key in keys.clone() {
        match engine.get(&key.to_be_bytes(), Version::MAX) {
            Ok(found) => assert!(found.is_some(), "key {key} is lost in silence"),
            Err(StorageError::Corrupt(message)) => {
                assert!(message.contains("cannot read key"), "{message}");
                assert!(message.contains(".sst"), "names the file: {message}");
                damaged.push(key);
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!((1..200).contains(&damaged.len()), "{}", damaged.len());
    assert_scans_stop_at_the_damage(&engine, damaged.len());
    // The rest can still be written and read.
    let writes = vec![(Version(2), b"new".to_vec(), Some(b"row".to_vec()))];
    engine
        .write(&WriteBatch { writes }, Durability::Sync)
        .unwrap();
    assert!(engine.get(b"new", Version::MAX).unwrap().is_some());
}

/// A scan over damage must end in an error, never in a short answer.
fn assert_scans_stop_at_the_damage(engine: &RocksEngine, damaged: usize) {
    use manxdb_storage::{Direction, KeyRange};
    let mut rows = 0;
    for direction in [Direction::Forward, Direction::Reverse] {
        let range = KeyRange::prefix(b"");
        let mut cursor = engine.scan(&range, Version::MAX, direction).unwrap();
        let error = loop {
            match cursor.next() {
                Ok(Some(_)) => rows += 1,
                Ok(None) => panic!("{direction:?} scan passed the damage in silence"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
    }
    // The row next to the damage may be withheld: a newer version of it could be in there.
    assert!((1990..=1999).contains(&(rows + damaged)), "{rows} rows");
}

/// Walking back meets the versions of a key oldest first: one it cannot read must not leave an
/// older one as the answer, wherever in the chain the damage lies.
#[test]
fn a_reverse_scan_never_answers_an_old_version_for_a_damaged_newer_one() {
    use manxdb_storage::{Direction, KeyRange};
    let (mut errors, mut noise) = (0, noise());
    let options = Options {
        log_segment_bytes: 128 << 10,
        ..Options::default()
    };
    for versions in 10..=18 {
        let directory = tempfile::tempdir().unwrap();
        let engine = RocksEngine::open(directory.path(), &options).unwrap();
        for version in 1..=versions {
            // As long as a block, so that every version is in a block of its own.
            let value = (0..9_000).map(|_| noise()).collect();
            let writes = vec![(Version(version), b"key".to_vec(), Some(value))];
            let batch = WriteBatch { writes };
            engine.write(&batch, Durability::Async).unwrap();
        }
        engine.compact().unwrap();
        drop(engine);
        let file = the_file(directory.path(), "sst");
        let intact = fs::read(&file).unwrap();
        for place in (4_000..intact.len() - 4_000).step_by(4_000) {
            let mut bytes = intact.clone();
            bytes[place] ^= 0x10;
            fs::write(&file, bytes).unwrap();
            // The block of the store's own record is needed to open it at all.
            let Ok(engine) = RocksEngine::open(directory.path(), &options) else {
                continue;
            };
            let range = KeyRange::prefix(b"key");
            let mut cursor = engine
                .scan(&range, Version::MAX, Direction::Reverse)
                .unwrap();
            match cursor.next() {
                Ok(found) => assert_eq!(found.map(|entry| entry.version.0), Some(versions)),
                Err(error) => {
                    assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
                    errors += 1;
                }
            }
        }
    }
    assert!(errors > 9, "the damage was met: {errors}");
}

#[test]
fn a_store_in_use_and_a_store_from_the_future_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let engine = history::open(directory.path()).unwrap();
    let error = history::open(directory.path()).err().unwrap();
    assert!(matches!(error, StorageError::InUse(_)), "{error:?}");
    assert!(error.to_string().contains("in use by another process"));
    drop(engine);
    let place = directory.path().join("FORMAT");
    let text = fs::read_to_string(&place).unwrap();
    fs::write(&place, text.replace("format: 2", "format: 3")).unwrap();
    let error = history::open(directory.path()).err().unwrap();
    assert!(matches!(error, StorageError::Format(_)), "{error:?}");
}

#[test]
fn a_store_that_lost_its_catalogue_is_not_replaced_by_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    let engine = history::open(directory.path()).unwrap();
    history::write(&engine, 1, Durability::Sync).unwrap();
    engine.flush().unwrap();
    drop(engine);
    let current = directory.path().join("rocksdb/CURRENT");
    let text = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    let error = history::open(directory.path()).err().unwrap();
    assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
    assert!(error.to_string().contains("CURRENT"), "{error}");
    fs::write(&current, text).unwrap();
    let engine = history::open(directory.path()).unwrap();
    assert_eq!(history::check_whole(&engine, 0), 1);
}

#[test]
fn a_damaged_or_missing_file_is_named_when_the_store_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let engine = history::open(directory.path()).unwrap();
    history::write(&engine, 1, Durability::Sync).unwrap();
    engine.compact().unwrap();
    drop(engine);
    let file = the_file(directory.path(), "sst");
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    let intact = fs::read(&file).unwrap();
    fs::write(&file, &intact[..intact.len() - 10]).unwrap();
    let error = history::open(directory.path()).err().unwrap();
    assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
    assert!(error.to_string().contains(&name), "{error}");
    fs::remove_file(&file).unwrap();
    let error = history::open(directory.path()).err().unwrap();
    assert!(error.to_string().contains(&name), "{error}");
}

/// What the store at `directory` has under keys.
fn found(directory: &Path, keys: [&str; 3]) -> [bool; 3] {
    let engine = RocksEngine::open(directory, &Options::default()).unwrap();
    assert_eq!(engine.latest().unwrap(), Version(3));
    keys.map(|key| {
        let found = engine.get(key.as_bytes(), Version::MAX).unwrap();
        found.is_some()
    })
}

#[test]
fn salvage_brings_what_can_be_read_and_leaves_the_damaged_store_alone() {
    use manxdb_storage::rocks::salvage::salvage;
    let directory = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(directory.path(), &Options::default()).unwrap();
    let keys = ["kept", "destroyed", "in the log"];
    for (version, key) in (1..).zip(keys) {
        let writes = vec![(Version(version), key.into(), Some(b"value".to_vec()))];
        engine
            .write(&WriteBatch { writes }, Durability::Sync)
            .unwrap();
        if version < 3 {
            engine.flush().unwrap();
        }
    }
    let crashed = copy_of(directory.path());
    drop(engine);
    let parent = tempfile::tempdir().unwrap();
    let into = parent.path().join("new");
    let error = salvage(directory.path(), &into).unwrap_err();
    assert!(error.to_string().contains("opens: serve it"), "{error}");

    let tables = fs::read_dir(crashed.path().join("rocksdb")).unwrap();
    let holds_it = |path: &PathBuf| {
        let bytes = fs::read(path).unwrap();
        let mut parts = bytes.windows(9);
        path.extension().is_some_and(|end| end == "sst") && parts.any(|part| part == b"destroyed")
    };
    let table = tables
        .map(|entry| entry.unwrap().path())
        .find(holds_it)
        .unwrap();
    let bytes = fs::read(&table).unwrap();
    fs::write(&table, &bytes[..bytes.len() - 10]).unwrap();
    let name = table.file_name().unwrap().to_str().unwrap();
    let salvaged = salvage(crashed.path(), &into).unwrap();
    assert_eq!(salvaged.lost, [name]);
    assert_eq!(salvaged.latest, Version(3));
    assert_eq!(fs::read(&table).unwrap().len(), bytes.len() - 10);
    // The log still had what was destroyed.
    assert_eq!(found(&into, keys), [true, true, true]);
}

#[test]
fn salvage_does_without_a_log_and_without_destroyed_files() {
    use manxdb_storage::rocks::salvage::salvage;
    let (directory, log, mut bytes) = store_with_a_log();
    let intact = bytes.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&log, bytes).unwrap();
    assert!(history::open(directory.path()).is_err());
    let parent = tempfile::tempdir().unwrap();
    let into = parent.path().join("with a damaged log");
    let salvaged = salvage(directory.path(), &into).unwrap();
    assert_eq!((salvaged.lost.len(), salvaged.latest), (0, Version(12)));

    // Closing writes all to sorted files, which then remember that there was a log.
    fs::write(&log, intact).unwrap();
    drop(history::open(directory.path()).unwrap());
    fs::remove_dir_all(log.parent().unwrap()).unwrap();
    let into = parent.path().join("without a log");
    let salvaged = salvage(directory.path(), &into).unwrap();
    let [lost] = &salvaged.lost[..] else {
        panic!("{salvaged:?}")
    };
    assert!(lost.ends_with("/log"), "{lost}");
    assert_eq!(salvaged.latest, Version(12));
    assert_eq!(history::check_whole(&history::open(&into).unwrap(), 0), 12);
    history::write(&history::open(&into).unwrap(), 20, Durability::Sync).unwrap();
}

#[test]
fn a_damaged_log_stays_an_error_however_often_it_is_tried() {
    let (directory, log, mut bytes) = store_with_a_log();
    let intact = bytes.clone();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&log, bytes).unwrap();
    // What stands before the damage is replayed each time, and in sorted files when it is much.
    for _ in 0..3 {
        let error = history::open(directory.path()).err().unwrap();
        assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
    }
    fs::write(&log, intact).unwrap();
    let engine = history::open(directory.path()).unwrap();
    assert_eq!(history::check_whole(&engine, 0), 12);
}
