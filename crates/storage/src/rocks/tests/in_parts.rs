//! Batches that fill several memtables.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::sorted::{SortedWrites, to_batch};

/// Rows of a kilobyte: some six memtables.
const ROWS: u64 = 200;

/// What a batch is read for, as many times.
const LOGGED: usize = 1;
const APPLIED: usize = 2;

/// Called with what the batch is read for, before each of its rows.
type Hook<'a> = &'a (dyn Fn(usize, u64) + Sync);

/// Every fifth row is deleted.
struct Batch<'a> {
    passes: AtomicUsize,
    hook: Hook<'a>,
}

fn batch(hook: Hook<'_>) -> Batch<'_> {
    let passes = AtomicUsize::new(0);
    Batch { passes, hook }
}

fn key(row: u64) -> [u8; 8] {
    row.to_be_bytes()
}

impl SortedWrites for Batch<'_> {
    fn len(&self) -> usize {
        usize::try_from(ROWS).unwrap()
    }

    fn each(&self, visit: &mut dyn FnMut(&[u8], Option<&[u8]>)) {
        let pass = self.passes.fetch_add(1, Ordering::Relaxed);
        for row in 0..ROWS {
            (self.hook)(pass, row);
            let value = [u8::try_from(row).unwrap(); 1000];
            visit(&key(row), (row % 5 > 0).then_some(&value[..]));
        }
    }
}

/// Every row at version 1, with a value that no batch writes.
fn filled() -> Subject {
    let subject = Subject::new();
    let rows = (0..ROWS).map(|row| (Version(1), key(row).to_vec(), Some(b"old".to_vec())));
    let writes = rows.collect();
    let written = subject
        .engine()
        .write(&WriteBatch { writes }, Durability::Sync);
    written.unwrap();
    subject.engine().flush().unwrap();
    subject
}

/// Whether all rows are those of the batch at version 2, or none is.
fn has_batch(engine: &RocksEngine) -> bool {
    let has_row = |row: u64| {
        let found = engine.get(&key(row), Version::MAX).unwrap();
        match found {
            Some(found) if found.value == b"old" => false,
            Some(found) => {
                assert_eq!((found.version, found.value.len()), (Version(2), 1000));
                true
            }
            None => row.is_multiple_of(5),
        }
    };
    let rows = (0..ROWS).filter(|row| has_row(*row)).count() as u64;
    assert!(rows == 0 || rows == ROWS, "{rows} rows of {ROWS}");
    let latest = engine.latest().unwrap();
    assert_eq!(latest, Version(if rows == 0 { 1 } else { 2 }));
    rows > 0
}

#[test]
fn a_large_batch_takes_two_memtables_and_is_there_after_reopening() {
    let mut subject = filled();
    let engine = subject.engine();
    let most = AtomicUsize::new(0);
    let hook = |_: usize, _: u64| {
        let layers = engine.store.layers();
        let bytes = layers.memtables().map(|memtable| memtable.bytes()).sum();
        most.fetch_max(bytes, Ordering::Relaxed);
    };
    let appended = engine.append_sorted(Version(2), &batch(&hook)).unwrap();
    engine.sync(&appended).unwrap();
    let most = most.into_inner();
    // The last row of each may be one too many.
    assert!(most <= 2 * (small().write_buffer_bytes + 2_000), "{most}");
    assert!(
        engine.store.layers().ingested >= 3,
        "several were written out"
    );
    for row in 0..ROWS {
        let before = engine.get(&key(row), Version(1)).unwrap();
        assert_eq!(before.map(|found| found.value), Some(b"old".to_vec()));
    }
    assert!(has_batch(engine));
    subject.reopen();
    assert!(has_batch(subject.engine()));
    put(subject.engine(), 3, &key(0), Some(b"new")).unwrap();
    assert_eq!(version_of(subject.engine(), &key(0)), Some(3));
}

#[test]
fn a_large_batch_reads_as_one_that_is_listed() {
    let (large, listed) = (filled(), filled());
    let hook = |_: usize, _: u64| ();
    large
        .engine()
        .append_sorted(Version(2), &batch(&hook))
        .unwrap();
    let list = to_batch(Version(2), &batch(&hook));
    listed.engine().append(&list).unwrap();
    let rows = |subject: &Subject| {
        let all = [KeyRange::all()];
        subject.engine().scan_many(&all, Version(2), 1000).unwrap()
    };
    assert_eq!(rows(&large), rows(&listed));
}

#[test]
fn a_crash_within_a_large_batch_leaves_all_of_it_or_nothing() {
    for (pass, row) in [
        (LOGGED, 0),
        (LOGGED, 199),
        (APPLIED, 0),
        (APPLIED, 120),
        (APPLIED, 199),
    ] {
        let subject = filled();
        let engine = subject.engine();
        let crashed = Mutex::new(None);
        let hook = |now: usize, at: u64| {
            if (now, at) != (pass, row) {
                return;
            }
            while !engine.store.layers().frozen.is_empty() {
                engine.flusher.wait(PAUSE);
            }
            let has_part = engine.store.layers().ingested > 1;
            assert_eq!(
                has_part,
                pass == APPLIED && row > 0,
                "a part is in sorted files"
            );
            *crashed.lock() = Some(subject.crashed());
        };
        engine.append_sorted(Version(2), &batch(&hook)).unwrap();
        let crashed = crashed.into_inner().unwrap();
        let engine = RocksEngine::open(crashed.path(), &small()).unwrap();
        assert_eq!(has_batch(&engine), pass == APPLIED, "{pass} {row}");
    }
}

#[test]
fn a_copy_that_is_asked_for_within_a_large_batch_is_whole() {
    let subject = filled();
    let engine = subject.engine();
    let copy = tempfile::tempdir().unwrap();
    let place = copy.path().join("copy");
    std::thread::scope(|scope| {
        let (begin, begun) = std::sync::mpsc::channel();
        let place = &place;
        scope.spawn(move || {
            begun.recv().unwrap();
            engine.checkpoint(place).unwrap();
        });
        let hook = |pass: usize, row: u64| {
            if (pass, row) == (APPLIED, 120) {
                assert!(engine.in_parts.try_lock().is_none(), "a copy would wait");
                begin.send(()).unwrap();
            }
        };
        engine.append_sorted(Version(2), &batch(&hook)).unwrap();
    });
    assert!(has_batch(&RocksEngine::open(&place, &small()).unwrap()));
}

#[test]
fn a_large_batch_stays_in_memory_while_no_memtable_can_be_written_out() {
    let mut subject = filled();
    subject.block();
    let engine = subject.engine();
    let hook = |_: usize, _: u64| ();
    engine.append_sorted(Version(2), &batch(&hook)).unwrap();
    assert_eq!(subject.frozen(), store::FROZEN_MAX);
    assert!(has_batch(engine));
    subject.unblock();
    engine.flush().unwrap();
    subject.reopen();
    assert!(has_batch(subject.engine()));
}
