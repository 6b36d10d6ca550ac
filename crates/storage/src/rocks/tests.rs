//! Memtables that are frozen, written out, or cannot be.
//!
//! A folder where the flusher wants to make its file keeps it from doing so: memtables then wait,
//! as on a disk that is full.

mod in_parts;

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::ops::Bound;

use rocksdb::checkpoint::Checkpoint;

use super::*;
use crate::memory::MemoryEngine;
use crate::model::Durability;
use crate::{files, format};

/// A store whose memtables are small and whose log has many files.
struct Subject {
    engine: Option<RocksEngine>,
    directory: tempfile::TempDir,
}

fn small() -> Options {
    Options {
        block_cache_bytes: 1 << 20,
        write_buffer_bytes: 32 << 10,
        file_bytes: 64 << 10,
        log_segment_bytes: 16 << 10,
        ..Options::default()
    }
}

impl Subject {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let engine = RocksEngine::open(directory.path(), &small()).unwrap();
        Self {
            engine: Some(engine),
            directory,
        }
    }

    fn engine(&self) -> &RocksEngine {
        self.engine.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        drop(self.engine.take());
        self.engine = Some(RocksEngine::open(self.directory.path(), &small()).unwrap());
    }

    /// From now on no memtable is written out.
    fn block(&self) {
        let place = self.engine().store.flushing();
        if !place.exists() {
            fs::create_dir(place).unwrap();
        }
    }

    fn unblock(&self) {
        let _ = fs::remove_dir(self.engine().store.flushing());
    }

    /// Begins a new memtable without waiting for the last one.
    fn freeze(&self) {
        let engine = self.engine();
        let layers = engine.store.layers();
        if layers.frozen.len() < store::FROZEN_MAX && !layers.active.is_empty() {
            engine.freeze(&mut engine.writer.lock()).unwrap();
        }
    }

    fn frozen(&self) -> usize {
        self.engine().store.layers().frozen.len()
    }

    /// What a killed process leaves: the sorted files of one moment, and the log of a later one.
    fn crashed(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        let data = copy.path().join(DATA_FOLDER);
        let checkpoint = Checkpoint::new(&self.engine().store.db).unwrap();
        checkpoint.create_checkpoint(&data).unwrap();
        let copy_file = |path: &Path| {
            fs::copy(self.directory.path().join(path), copy.path().join(path)).unwrap();
        };
        copy_file(Path::new(format::FILE_NAME));
        fs::create_dir(copy.path().join(log::FOLDER)).unwrap();
        for name in files::below(&self.directory.path().join(log::FOLDER)).unwrap() {
            if name.extension().is_some_and(|end| end == "log") {
                copy_file(&Path::new(log::FOLDER).join(name));
            }
        }
        copy
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        if self.engine.is_some() {
            self.unblock();
        }
    }
}

fn put(
    engine: &dyn Engine,
    version: u64,
    key: &[u8],
    value: Option<&[u8]>,
) -> Result<(), StorageError> {
    let writes = vec![(Version(version), key.to_vec(), value.map(<[u8]>::to_vec))];
    engine.write(&WriteBatch { writes }, Durability::Async)
}

fn version_of(engine: &RocksEngine, key: &[u8]) -> Option<u64> {
    let found = engine.get(key, Version::MAX).unwrap();
    found.map(|found| found.version.0)
}

/// Writes rows of a kilobyte until there is no room; how many.
fn fill(engine: &RocksEngine) -> (u64, StorageError) {
    for version in 1.. {
        if let Err(error) = put(engine, version, &version.to_be_bytes(), Some(&[7; 1000])) {
            return (version - 1, error);
        }
    }
    unreachable!("memory is bounded");
}

#[test]
fn memory_is_bounded_while_nothing_can_be_written_out_and_nothing_is_lost() {
    let subject = Subject::new();
    subject.block();
    let engine = subject.engine();
    let (written, error) = fill(engine);
    assert!(matches!(error, StorageError::Behind(_)), "{error:?}");
    assert!(
        error.to_string().contains("cannot be written out"),
        "{error}"
    );
    assert_eq!(subject.frozen(), store::FROZEN_MAX);
    // Three memtables of 32 KiB, each of which may be over by a row.
    assert!((60..100).contains(&written), "{written} rows of a kilobyte");
    assert_eq!(engine.latest().unwrap(), Version(written));
    for version in 1..=written {
        assert_eq!(version_of(engine, &version.to_be_bytes()), Some(version));
    }
    assert_eq!(
        version_of(engine, &(written + 1).to_be_bytes()),
        None,
        "refused"
    );

    // Killed now, the log has what the memtables held: none of its files was given up.
    let crashed = subject.crashed();
    let again = RocksEngine::open(crashed.path(), &small()).unwrap();
    assert_eq!(again.latest().unwrap(), Version(written));
    for version in 1..=written {
        assert_eq!(version_of(&again, &version.to_be_bytes()), Some(version));
    }

    subject.unblock();
    engine.flush().unwrap();
    assert_eq!(subject.frozen(), 0);
    put(engine, written + 1, b"next", Some(b"row")).unwrap();
}

#[test]
fn a_flush_that_cannot_be_says_so_and_one_after_it_succeeds() {
    let subject = Subject::new();
    let engine = subject.engine();
    put(engine, 1, b"row", Some(b"value")).unwrap();
    subject.block();
    for _ in 0..2 {
        let error = engine.flush().unwrap_err();
        assert!(matches!(error, StorageError::Behind(_)), "{error:?}");
        assert_eq!(version_of(engine, b"row"), Some(1));
    }
    subject.unblock();
    engine.flush().unwrap();
    assert_eq!(version_of(engine, b"row"), Some(1));
    assert!(!engine.store.flushing().exists());
    assert!(engine.store.layers().active.is_empty());
}

/// RocksDB gives the file a number of its own: a folder of that name is in the way.
#[test]
fn a_file_that_is_not_taken_over_leaves_the_memtable_in_place() {
    let mut subject = Subject::new();
    let engine = subject.engine();
    put(engine, 1, b"row", Some(b"value")).unwrap();
    let data = subject.directory.path().join(DATA_FOLDER);
    let in_the_way: Vec<PathBuf> = (1..200)
        .map(|number| data.join(format!("{number:06}.sst")))
        .collect();
    for place in &in_the_way {
        fs::create_dir(place).unwrap();
    }
    let error = engine.flush().unwrap_err();
    assert!(matches!(error, StorageError::Behind(_)), "{error:?}");
    assert_eq!((version_of(engine, b"row"), subject.frozen()), (Some(1), 1));
    let flushing = engine.store.flushing();
    drop(subject.engine.take());
    assert!(!flushing.exists(), "half a file takes space");
    for place in &in_the_way {
        let _ = fs::remove_dir(place);
    }
    // The log still has it.
    subject.reopen();
    let engine = subject.engine();
    assert_eq!(version_of(engine, b"row"), Some(1));
    engine.flush().unwrap();
    assert_eq!((version_of(engine, b"row"), subject.frozen()), (Some(1), 0));
}

#[test]
fn what_a_crash_left_of_a_memtable_half_written_out_is_removed() {
    let mut subject = Subject::new();
    put(subject.engine(), 1, b"row", Some(b"value")).unwrap();
    let flushing = subject.engine().store.flushing();
    drop(subject.engine.take());
    fs::write(&flushing, b"half a file").unwrap();
    subject.reopen();
    assert!(!flushing.exists());
    assert_eq!(version_of(subject.engine(), b"row"), Some(1));
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "counts of a test, far below 2^53"
)]
fn stat(engine: &RocksEngine, name: &str) -> i64 {
    let stats = engine.stats();
    stats.iter().find(|(found, _)| *found == name).unwrap().1 as i64
}

#[test]
fn a_row_written_again_and_again_fills_neither_memory_nor_the_log_nor_files() {
    let subject = Subject::new();
    let engine = subject.engine();
    let rounds = 3_000;
    for version in 1..=rounds {
        engine.set_watermark(Version(version - 1));
        put(engine, version, b"hot", Some(&[7; 500])).unwrap();
    }
    engine.flush().unwrap();
    // A megabyte and a half of log: written out each 64 KiB of it, one version at a time.
    let flushes = stat(engine, "storage_flushes_total");
    assert!((15..30).contains(&flushes), "{flushes}");
    assert!(stat(engine, "storage_versions_collapsed_total") > 2_900);
    assert!(stat(engine, "storage_flush_written_bytes_total") < 50_000);
    // The next files of the log find out that the ones before are done with.
    for version in rounds + 1..=rounds + 100 {
        put(engine, version, b"hot", Some(&[7; 500])).unwrap();
    }
    let files = stat(engine, "storage_log_files");
    assert!(files < 10, "{files}");
}

/// The files that say which sorted files there are, and the bytes of all of them.
fn manifests(subject: &Subject) -> (Vec<OsString>, u64) {
    let files = fs::read_dir(subject.directory.path().join(DATA_FOLDER)).unwrap();
    let is_one = |name: &OsString| name.as_encoded_bytes().starts_with(b"MANIFEST");
    let named = files.map(|file| file.unwrap().file_name()).filter(is_one);
    let names: Vec<OsString> = named.collect();
    let folder = subject.directory.path().join(DATA_FOLDER);
    // One that is not needed any more may go at any moment.
    let sizes = names
        .iter()
        .filter_map(|name| fs::metadata(folder.join(name)).ok());
    let bytes = sizes.map(|file| file.len()).sum();
    (names, bytes)
}

#[test]
fn the_manifest_is_written_anew_before_flushes_and_compactions_make_it_large() {
    let mut subject = Subject::new();
    let (mut seen, mut version) = (BTreeSet::new(), 0);
    while seen.len() < 3 {
        assert!(
            version < 2_000 * 10,
            "after 2,000 flushes there were {seen:?}"
        );
        for key in 0..10u64 {
            version += 1;
            put(
                subject.engine(),
                version,
                &key.to_be_bytes(),
                Some(&[7; 100]),
            )
            .unwrap();
        }
        subject.engine().flush().unwrap();
        let (names, bytes) = manifests(&subject);
        assert!(
            bytes < 2 * options::MANIFEST_BYTES as u64,
            "{bytes} bytes in {names:?}"
        );
        seen.extend(names);
    }
    subject.reopen();
    assert_eq!(
        version_of(subject.engine(), &7u64.to_be_bytes()),
        Some(version - 2)
    );
}

#[test]
fn what_is_replayed_after_a_crash_is_collapsed_too() {
    let subject = Subject::new();
    for version in 1..=60 {
        put(subject.engine(), version, b"hot", Some(&[7; 400])).unwrap();
    }
    assert_eq!(
        stat(subject.engine(), "storage_versions_collapsed_total"),
        0
    );
    let crashed = subject.crashed();
    let again = RocksEngine::open(crashed.path(), &small()).unwrap();
    assert_eq!(stat(&again, "storage_versions_collapsed_total"), 59);
    assert_eq!(version_of(&again, b"hot"), Some(60));
}

#[test]
fn a_snapshot_keeps_its_version_through_writes_flushes_and_compactions() {
    let subject = Subject::new();
    let engine = subject.engine();
    for version in 1..=40_u64 {
        // A snapshot at 13 stays; others follow the newest version.
        engine.set_watermark(Version((version - 1).min(13)));
        put(engine, version, b"row", Some(&version.to_be_bytes())).unwrap();
        match version % 10 {
            3 => subject.freeze(),
            6 => engine.flush().unwrap(),
            9 => engine.compact().unwrap(),
            _ => {}
        }
        if version >= 13 {
            let found = engine.get(b"row", Version(13)).unwrap().unwrap();
            assert_eq!(found.value, 13_u64.to_be_bytes());
        }
        assert_eq!(version_of(engine, b"row"), Some(version));
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write(Vec<(Vec<u8>, Option<Vec<u8>>)>),
    /// To some versions back from the newest.
    Watermark(u64),
    Read(KeyRange, u64),
    Freeze,
    Flush,
    Compact,
    Reopen,
    Crash,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(2), Just(0xFF)], 0..3)
}

fn range() -> impl Strategy<Value = KeyRange> {
    let bound = || {
        prop_oneof![
            key().prop_map(Bound::Included),
            key().prop_map(Bound::Excluded),
            Just(Bound::Unbounded),
        ]
    };
    (bound(), bound()).prop_map(|(start, end)| KeyRange { start, end })
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop::option::weighted(0.6, prop::collection::vec(any::<u8>(), 0..9));
    let writes = prop::collection::vec((key(), value), 1..4);
    prop_oneof![
        12 => writes.prop_map(Step::Write),
        4 => (0..8_u64).prop_map(Step::Watermark),
        8 => (range(), 0..8_u64).prop_map(|(range, back)| Step::Read(range, back)),
        4 => Just(Step::Freeze),
        3 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
    ]
}

fn rows(
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
    rows
}

fn assert_equal(engine: &RocksEngine, model: &MemoryEngine, range: &KeyRange, at: u64) {
    for direction in [Direction::Forward, Direction::Reverse] {
        let expected = rows(model, range, at, direction);
        assert_eq!(
            rows(engine, range, at, direction),
            expected,
            "{range:?} {direction:?} at {at}"
        );
    }
    let digits = [0, 1, 2, 0xFF];
    let mut keys: Vec<Vec<u8>> = digits.iter().map(|one| vec![*one]).collect();
    keys.extend(
        digits
            .iter()
            .flat_map(|one| digits.map(|two| vec![*one, two])),
    );
    keys.sort();
    let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let expected = model.get_many(&borrowed, Version(at)).unwrap();
    assert_eq!(engine.get_many(&borrowed, Version(at)).unwrap(), expected);
    for (key, expected) in borrowed.iter().zip(&expected) {
        assert_eq!(&engine.get(key, Version(at)).unwrap(), expected);
    }
    let ranges: Vec<KeyRange> = digits.iter().map(|one| KeyRange::prefix(&[*one])).collect();
    for limit in [1, 9] {
        let expected = model.scan_many(&ranges, Version(at), limit).unwrap();
        let found = engine.scan_many(&ranges, Version(at), limit).unwrap();
        assert_eq!(found, expected);
    }
}

fn run(steps: Vec<Step>) {
    let mut subject = Subject::new();
    let model = MemoryEngine::new();
    let (mut latest, mut watermark) = (0_u64, 0_u64);
    for step in steps {
        match step {
            Step::Write(writes) => {
                latest += 1;
                let writes = writes.into_iter();
                let writes = writes.map(|(key, value)| (Version(latest), key, value));
                let batch = WriteBatch {
                    writes: writes.collect(),
                };
                model.append(&batch).unwrap();
                subject.engine().append(&batch).unwrap();
            }
            Step::Watermark(back) => {
                watermark = watermark.max(latest.saturating_sub(back));
                model.set_watermark(Version(watermark));
                subject.engine().set_watermark(Version(watermark));
            }
            Step::Read(range, back) => {
                let at = latest.saturating_sub(back).max(watermark);
                assert_equal(subject.engine(), &model, &range, at);
            }
            Step::Freeze => {
                subject.block();
                subject.freeze();
            }
            Step::Flush => {
                subject.unblock();
                subject.engine().flush().unwrap();
            }
            Step::Compact => {
                subject.unblock();
                subject.engine().compact().unwrap();
            }
            Step::Reopen => {
                subject.unblock();
                subject.reopen();
            }
            Step::Crash => {
                let crashed = subject.crashed();
                subject.unblock();
                drop(subject);
                let engine = RocksEngine::open(crashed.path(), &small()).unwrap();
                subject = Subject {
                    engine: Some(engine),
                    directory: crashed,
                };
                // Who read before the crash is gone.
                watermark = latest;
                model.set_watermark(Version(watermark));
            }
        }
    }
    assert_equal(subject.engine(), &model, &KeyRange::all(), watermark);
    assert_equal(subject.engine(), &model, &KeyRange::all(), latest);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]
    #[test]
    fn layers_read_like_the_engine_in_memory(steps in prop::collection::vec(step(), 1..60)) {
        run(steps);
    }
}

fn batch(versions: &[u64]) -> WriteBatch {
    let write = |version: &u64| (Version(*version), b"key".to_vec(), None);
    WriteBatch {
        writes: versions.iter().map(write).collect(),
    }
}

#[test]
#[should_panic(expected = "a batch is newer than all before it")]
fn a_batch_that_is_older_than_the_store_never_reaches_the_log() {
    let subject = Subject::new();
    subject.engine().append(&batch(&[7])).unwrap();
    let _ = subject.engine().append(&batch(&[6]));
}

#[test]
#[should_panic(expected = "a batch is newer than all before it")]
fn a_batch_whose_versions_go_back_never_reaches_the_log() {
    let subject = Subject::new();
    let _ = subject.engine().append(&batch(&[7, 8, 7]));
}

#[test]
fn layers_out_of_order_are_found_out() {
    let shared = Arc::default();
    let memtable = || Arc::new(Memtable::new(&shared));
    let frozen = |latest: u64| store::Frozen {
        memtable: memtable(),
        progress: progress::Progress {
            latest: Version(latest),
            applied: None,
        },
    };
    let layers = |frozen: Vec<store::Frozen>| store::Layers {
        active: memtable(),
        frozen,
        ingested: 0,
        has_files: false,
    };
    assert_eq!(layers(vec![frozen(8), frozen(7)]).check(), Ok(()));
    let many = layers(vec![frozen(9), frozen(8), frozen(7)]).check();
    assert!(many.unwrap_err().contains("3 memtables wait"));
    let backwards = layers(vec![frozen(7), frozen(8)]).check();
    assert!(backwards.unwrap_err().contains("goes on where"));
    let mut twice = layers(vec![frozen(8)]);
    twice.active = Arc::clone(&twice.frozen[0].memtable);
    assert!(twice.check().unwrap_err().contains("no more batches"));
}
