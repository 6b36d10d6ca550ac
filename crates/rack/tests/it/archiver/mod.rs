//! Rows that come back: memory servers that are all gone are started again, and a log archiver brings what
//! was committed. Deaths of processes are in `tests/memory`; here a death is a copy of the directory,
//! as it is at a moment that nobody has chosen.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods)] // threads, clocks and files, and tests

mod rack;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::{ready, submit, until};
use manxdb_core::Random;
use manxdb_rack::disk::{Directory, FileKind};
use manxdb_rack::memory::{Geometry, Memory, MemoryError};
use manxdb_storage::{Durability, StorageError};
use manxdb_txn::{CommitPath, ReadSet, TxnError};
use rack::{ALONE, Model, REPLICATED, Rack, Rows, all, change};

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
        rack.end_archiver();
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
fn another_archiver_goes_on_behind_the_last_batch_and_commits_wait_for_it() {
    let disk = tempfile::tempdir().unwrap();
    let mut rack = Rack::start(ALONE, disk.path(), u64::MAX);
    let path = rack.path(10);
    let (mut model, mut random) = (Model::new(), Random::stream(3, &[4]));
    for archiver in 0..4 {
        change(&path, &mut model, &mut random, 30, Durability::Sync);
        rack.end_archiver();
        thread::scope(|scope| {
            // More than a ring has slots: without a log archiver they wait.
            let working = scope.spawn(|| {
                change(&path, &mut model, &mut random, 30, Durability::Async);
            });
            thread::sleep(Duration::from_millis(50));
            rack.keep(disk.path(), u64::MAX, 20 + archiver);
            working.join().unwrap();
        });
    }
    change(&path, &mut model, &mut random, 1, Durability::Sync);
    path.leave();
    rack.end_archiver();
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
            Ok(_) => done.store(count + 1, Ordering::Relaxed),
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

/// A disk that has lost what was written last, behind the back of a log archiver that has died: files are as
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
    rack.end_archiver();
    copy(disk.path(), before.path());
    let lasting = model.clone();
    rack.keep(disk.path(), u64::MAX, 20);
    change(&path, &mut model, &mut random, 100, Durability::Async);
    rack.end_archiver();
    lose(disk.path(), before.path());
    // No checkpoint can be made for now.
    let directory = Directory::open(disk.path()).unwrap();
    let name = |number| format!("{}.new", Directory::name(FileKind::Checkpoint, number));
    let in_the_way: Vec<_> = (2..40)
        .map(|number| disk.path().join(name(number)))
        .collect();
    for path in &in_the_way {
        fs::create_dir(path).unwrap();
    }
    // One log archiver after the other finds the gap, the second one with what the first had written behind it.
    for (archiver, gaps) in [(21, 1), (22, 2)] {
        rack.keep(disk.path(), u64::MAX, archiver);
        until("the gap is found", || rack.tally.gaps.get() == gaps);
        change(&path, &mut model, &mut random, 60, Durability::Async);
        if gaps == 1 {
            rack.end_archiver();
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
    assert_eq!(directory.files(FileKind::Checkpoint).unwrap().len(), 1);
    change(&path, &mut model, &mut random, 30, Durability::Sync);
    path.leave();
    rack.end_archiver();
    drop(rack);
    for (left, model) in [(disk, model), (during, lasting)] {
        let rack = Rack::start(geometry, left.path(), u64::MAX);
        assert_eq!(all(&rack.path(11)), model);
    }
}

#[test]
fn what_a_disk_has_lost_under_an_archiver_that_died_is_copied_from_memory() {
    a_gap_is_closed(ALONE);
}

#[test]
fn what_a_disk_has_lost_is_copied_from_memory_with_replicas() {
    a_gap_is_closed(REPLICATED);
}

/// More rows than memory has room for.
const NEW_MAX: u32 = 200_000;

/// A commit that has no room in a log, whose keys had been entered by then: nobody has ever written the
/// records that they lead to, and nobody else gets these when all memory was gone.
fn what_keys_lead_to_is_nobody_elses(geometry: Geometry) {
    type Row = (Vec<u8>, Option<Vec<u8>>);
    let rows = |name: &str, count: u32| -> Vec<Row> {
        let key = |number| format!("{name} {number:04}").into_bytes();
        let row = |number| (key(number), Some(key(number)));
        (0..count).map(row).collect()
    };
    let disk = tempfile::tempdir().unwrap();
    let lost = rows("lost", 768);
    let mut rack = Rack::start(geometry, disk.path(), u64::MAX);
    let path = rack.path(10);
    let refused = submit(&path, ReadSet::default(), &lost, Durability::Sync);
    assert!(
        matches!(refused, Err(TxnError::TooLarge { .. })),
        "{refused:?}"
    );
    path.leave();
    rack.end_archiver();
    drop(rack);
    let rack = Rack::start(geometry, disk.path(), u64::MAX);
    let path = rack.path(11);
    let mut model = Model::new();
    for rows in rows("new", NEW_MAX).chunks(50) {
        match submit(&path, ReadSet::default(), rows, Durability::Async) {
            Ok(_) => {}
            // All is somebody's.
            Err(TxnError::Storage(StorageError::Full(_))) => break,
            Err(error) => panic!("{error}"),
        }
        let there = rows.iter().cloned();
        model.extend(there.filter_map(|(key, row)| Some((key, row?))));
    }
    let added = u32::try_from(model.len()).unwrap();
    assert!(added < NEW_MAX, "there is more memory than that");
    assert_eq!(all(&path), model);
}

#[test]
fn what_keys_lead_to_is_nobody_elses_when_it_was_never_written() {
    what_keys_lead_to_is_nobody_elses(ALONE);
}

#[test]
fn what_keys_lead_to_is_nobody_elses_with_replicas() {
    // So much that a region has several chunks.
    what_keys_lead_to_is_nobody_elses(Geometry {
        bytes: 66 << 20,
        ..REPLICATED
    });
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
    rack.end_archiver();
    drop(rack);
    let mut rack = Rack::start(ALONE, disk.path(), u64::MAX);
    let path = rack.path(11);
    change(&path, &mut model, &mut random, 30, Durability::Sync);
    path.leave();
    rack.end_archiver();
    drop(rack);
    // A batch behind the checkpoint is damaged: the checkpoint is in memory by then.
    let directory = Directory::open(disk.path()).unwrap();
    let (_, last) = directory.files(FileKind::Batches).unwrap().pop().unwrap();
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
