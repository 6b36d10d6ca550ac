//! The local path as a session meets it: visibility, validation, failures, bounds.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use manxdb_fixtures::local::{Fixture, HookedEngine};
use manxdb_storage::{Direction, Durability, Engine, KeyRange, StorageError, Version};
use manxdb_txn::IsolationLevel::{ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::mutants::Mutants;
use manxdb_txn::{LocalOptions, LocalPath, ReadMode, TxnError};

#[allow(clippy::unnecessary_wraps)] // the shape of what a read answers
fn text(value: &str) -> Option<Vec<u8>> {
    Some(value.as_bytes().to_vec())
}

fn is_conflict<T>(answer: &Result<T, TxnError>) -> bool {
    matches!(answer, Err(TxnError::Conflict { .. }))
}

#[test]
fn a_commit_is_seen_by_later_snapshots_and_not_by_earlier_ones() {
    let fixture = Fixture::new();
    fixture.set("k", "old");
    let reader = fixture.begin(RepeatableRead);
    assert_eq!(reader.get(b"k", ReadMode::Plain).unwrap(), text("old"));
    fixture.set("k", "new");
    assert_eq!(reader.get(b"k", ReadMode::Plain).unwrap(), text("old"));
    let later = fixture.begin(RepeatableRead);
    assert_eq!(later.get(b"k", ReadMode::Plain).unwrap(), text("new"));
}

#[test]
fn read_committed_sees_the_newest_state_at_each_statement() {
    let fixture = Fixture::new();
    let reader = fixture.begin(ReadCommitted);
    reader.start_statement().unwrap();
    assert_eq!(reader.get(b"k", ReadMode::Plain).unwrap(), None);
    fixture.set("k", "new");
    assert_eq!(reader.get(b"k", ReadMode::Plain).unwrap(), None);
    reader.start_statement().unwrap();
    assert_eq!(reader.get(b"k", ReadMode::Plain).unwrap(), text("new"));
}

#[test]
fn a_changed_point_fails_a_serializable_commit() {
    let fixture = Fixture::new();
    let txn = fixture.begin(Serializable);
    assert_eq!(txn.get(b"absent", ReadMode::Plain).unwrap(), None);
    fixture.set("absent", "there");
    txn.put(b"other".to_vec(), b"1".to_vec()).unwrap();
    assert!(is_conflict(&txn.commit(Durability::Sync)));
}

#[test]
fn an_insert_into_and_a_delete_from_a_read_range_fail_a_serializable_commit() {
    for delete in [false, true] {
        let fixture = Fixture::new();
        fixture.set("t1", "row");
        let txn = fixture.begin(Serializable);
        let range = KeyRange::prefix(b"t");
        txn.scan(&range, Direction::Forward, 10, ReadMode::Plain)
            .unwrap();
        if delete {
            fixture.unset("t1");
        } else {
            fixture.set("t2", "phantom");
        }
        txn.put(b"other".to_vec(), b"1".to_vec()).unwrap();
        assert!(is_conflict(&txn.commit(Durability::Sync)));
    }
}

#[test]
fn a_page_that_was_not_read_to_the_end_does_not_depend_on_the_rest() {
    let fixture = Fixture::new();
    for key in ["t1", "t2", "t3"] {
        fixture.set(key, "row");
    }
    let txn = fixture.begin(Serializable);
    let range = KeyRange::prefix(b"t");
    let page = txn
        .scan(&range, Direction::Forward, 2, ReadMode::Plain)
        .unwrap();
    assert_eq!(page.len(), 2);
    fixture.set("t3", "changed");
    txn.put(b"other".to_vec(), b"1".to_vec()).unwrap();
    txn.commit(Durability::Sync).unwrap();
}

#[test]
fn a_serializable_transaction_without_writes_commits_whatever_changed() {
    let engine = HookedEngine::new();
    let fixture = Fixture::over(engine.clone());
    let txn = fixture.begin(Serializable);
    assert_eq!(txn.get(b"k", ReadMode::Plain).unwrap(), None);
    fixture.set("k", "new");
    let before = engine.batches.load(Ordering::Relaxed);
    txn.commit(Durability::Sync).unwrap();
    assert_eq!(engine.batches.load(Ordering::Relaxed), before);
}

#[test]
fn a_full_disk_fails_the_commit_and_leaves_everything_as_before() {
    let engine = HookedEngine::new();
    let fixture = Fixture::over(engine.clone());
    fixture.set("k", "old");
    let reader = fixture.begin(Serializable);
    assert_eq!(reader.get(b"k", ReadMode::Plain).unwrap(), text("old"));
    engine.before_next_write(|| Err(StorageError::Full("no space left".into())));
    let txn = fixture.begin(Serializable);
    txn.put(b"k".to_vec(), b"lost".to_vec()).unwrap();
    let answer = txn.commit(Durability::Sync);
    assert!(matches!(
        answer,
        Err(TxnError::Storage(StorageError::Full(_)))
    ));
    assert_eq!(fixture.path.recent_len(), 0);
    // What the failed commit would have changed has not changed, and its lock is free.
    reader.put(b"k".to_vec(), b"new".to_vec()).unwrap();
    reader.commit(Durability::Sync).unwrap();
    let after = fixture.begin(Serializable);
    assert_eq!(after.get(b"k", ReadMode::Plain).unwrap(), text("new"));
}

#[test]
fn after_a_write_of_unknown_outcome_nothing_more_is_written() {
    let engine = HookedEngine::new();
    let fixture = Fixture::over(engine.clone());
    engine.before_next_write(|| Err(StorageError::Engine("sync failed".into())));
    let txn = fixture.begin(Serializable);
    txn.put(b"k".to_vec(), b"?".to_vec()).unwrap();
    assert!(matches!(
        txn.commit(Durability::Sync),
        Err(TxnError::Unknown(_))
    ));
    let txn = fixture.begin(Serializable);
    txn.put(b"k".to_vec(), b"!".to_vec()).unwrap();
    let answer = txn.commit(Durability::Sync);
    assert!(matches!(
        answer,
        Err(TxnError::Storage(StorageError::ReadOnly(_)))
    ));
}

#[test]
fn after_a_failed_wait_for_the_disk_nothing_more_is_written() {
    let engine = HookedEngine::new();
    let fixture = Fixture::over(engine.clone());
    fixture.set("k", "old");
    engine.before_next_sync(|| Err(StorageError::Engine("sync failed".into())));
    let txn = fixture.begin(Serializable);
    txn.put(b"k".to_vec(), b"?".to_vec()).unwrap();
    let answer = txn.commit(Durability::Sync);
    assert!(matches!(answer, Err(TxnError::Unknown(_))));
    let reader = fixture.begin(RepeatableRead);
    assert_eq!(reader.get(b"k", ReadMode::Plain).unwrap(), text("old"));
    let txn = fixture.begin(RepeatableRead);
    txn.put(b"other".to_vec(), b"!".to_vec()).unwrap();
    let answer = txn.commit(Durability::Sync);
    assert!(matches!(
        answer,
        Err(TxnError::Storage(StorageError::ReadOnly(_)))
    ));
}

/// While a group waits for the disk, the next is committed whole.
#[test]
fn a_commit_that_overtakes_one_that_waits_for_the_disk_shows_both() {
    let engine = HookedEngine::new();
    let fixture = Arc::new(Fixture::over(engine.clone()));
    fixture.set("k", "old");
    let (inner, hooks) = (fixture.clone(), engine.clone());
    engine.before_next_sync(move || {
        // What waits is not seen yet, and validation knows of it.
        let reader = inner.begin(Serializable);
        assert_eq!(reader.get(b"k", ReadMode::Plain).unwrap(), text("old"));
        reader.put(b"l".to_vec(), b"late".to_vec()).unwrap();
        assert!(is_conflict(&reader.commit(Durability::Sync)));
        let before = hooks.batches.load(Ordering::Relaxed);
        inner.set("m", "second");
        assert_eq!(hooks.batches.load(Ordering::Relaxed), before + 1);
        let reader = inner.begin(RepeatableRead);
        assert_eq!(reader.get(b"m", ReadMode::Plain).unwrap(), text("second"));
        assert_eq!(reader.get(b"k", ReadMode::Plain).unwrap(), text("new"));
        Ok(())
    });
    fixture.set("k", "new");
    assert_eq!(fixture.path.visible(), Version(3));
}

/// What a reader that begins in the middle of a write sees then, and what it sees afterwards.
fn states_seen_during_a_write(mutants: Mutants) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    let engine = HookedEngine::new();
    let fixture = Arc::new(Fixture::over(engine.clone()));
    fixture.set("k", "old");
    fixture.path.plant(mutants);
    let seen = Arc::new(parking_lot::Mutex::new(None));
    let (hook_house, hook_seen) = (fixture.clone(), seen.clone());
    engine.before_next_write(move || {
        let reader = hook_house.begin(RepeatableRead);
        let value = reader.get(b"k", ReadMode::Plain).unwrap();
        *hook_seen.lock() = Some((reader, value));
        Ok(())
    });
    fixture.set("k", "new");
    let (reader, during) = seen.lock().take().unwrap();
    let after = reader.get(b"k", ReadMode::Plain).unwrap();
    (during, after)
}

#[test]
fn a_reader_that_begins_during_a_write_never_sees_it() {
    let sound = states_seen_during_a_write(Mutants::default());
    assert_eq!(sound, (text("old"), text("old")));
    let mutants = Mutants {
        publish_before_write: true,
        ..Mutants::default()
    };
    assert_ne!(states_seen_during_a_write(mutants), sound);
}

#[test]
fn the_watermark_follows_the_oldest_snapshot_and_memory_is_given_back() {
    let engine = HookedEngine::new();
    let fixture = Fixture::over(engine.clone());
    fixture.set("k", "1");
    let reader = fixture.begin(RepeatableRead);
    reader.take_snapshot().unwrap();
    for number in 0..10 {
        fixture.set("k", &number.to_string());
    }
    assert_eq!(*engine.watermark.lock(), Version(1));
    assert_eq!(fixture.path.recent_len(), 10);
    drop(reader);
    fixture.set("k", "last");
    assert_eq!(*engine.watermark.lock(), fixture.path.visible());
    assert_eq!(fixture.path.recent_len(), 0);
}

#[test]
fn past_the_memory_limit_the_oldest_snapshot_can_read_but_not_commit() {
    let options = LocalOptions {
        recent_bytes_max: 1_000,
    };
    let fixture = Fixture::with(HookedEngine::new(), options);
    fixture.set("k", "old");
    let txn = fixture.begin(Serializable);
    assert_eq!(txn.get(b"k", ReadMode::Plain).unwrap(), text("old"));
    for number in 0..100 {
        fixture.set("busy", &number.to_string());
    }
    assert!(fixture.path.recent_len() < 12);
    assert_eq!(txn.get(b"k", ReadMode::Plain).unwrap(), text("old"));
    txn.put(b"other".to_vec(), b"1".to_vec()).unwrap();
    assert!(is_conflict(&txn.commit(Durability::Sync)));
}

#[test]
fn statistics_tell_commits_conflicts_and_old_snapshots() {
    let fixture = Fixture::new();
    let old = fixture.begin(Serializable);
    assert_eq!(old.get(b"k", ReadMode::Plain).unwrap(), None);
    fixture.set("k", "1");
    fixture.set("l", "1");
    old.put(b"m".to_vec(), b"1".to_vec()).unwrap();
    let before = fixture.path.statistics();
    assert_eq!((before.commits, before.groups, before.conflicts), (2, 2, 0));
    assert_eq!((before.oldest, before.visible), (Version(0), Version(2)));
    assert_eq!((before.recent, before.locks), (2, 1));
    assert!(is_conflict(&old.commit(Durability::Sync)));
    let after = fixture.path.statistics();
    assert_eq!((after.commits, after.groups, after.conflicts), (2, 2, 1));
    assert_eq!((after.oldest, after.locks), (after.visible, 0));
}

#[test]
fn a_path_opened_again_goes_on_behind_the_newest_version() {
    let engine = HookedEngine::new();
    let version = {
        let fixture = Fixture::over(engine.clone());
        fixture.set("k", "1");
        fixture.set("k", "2");
        fixture.path.visible()
    };
    let path = LocalPath::open(engine.clone(), LocalOptions::default()).unwrap();
    assert_eq!(path.visible(), version);
    assert_eq!(engine.latest().unwrap(), version);
    let fixture = Fixture::over(engine);
    fixture.set("k", "3");
    assert!(fixture.path.visible() > version);
}

#[test]
fn a_transaction_larger_than_its_limit_is_refused() {
    let fixture = Fixture::new();
    let txn = fixture.begin(Serializable);
    txn.set_size_limit(10);
    txn.put(b"k".to_vec(), b"12345".to_vec()).unwrap();
    let answer = txn.put(b"l".to_vec(), b"12345".to_vec());
    assert!(matches!(answer, Err(TxnError::TooLarge { .. })));
    txn.commit(Durability::Sync).unwrap();
}

#[test]
fn a_transaction_declared_read_only_refuses_writes() {
    let fixture = Fixture::new();
    let txn = fixture.begin(Serializable);
    txn.declare_read_only();
    assert_eq!(txn.get(b"k", ReadMode::Plain).unwrap(), None);
    let answer = txn.put(b"k".to_vec(), b"1".to_vec());
    assert!(matches!(answer, Err(TxnError::ReadOnly)));
}

#[test]
fn a_restarted_transaction_has_forgotten_everything() {
    let fixture = Fixture::new();
    let txn = fixture.begin(Serializable);
    txn.start_statement().unwrap();
    assert!(txn.is_first_statement());
    assert_eq!(txn.get(b"k", ReadMode::Update).unwrap(), None);
    txn.put(b"k".to_vec(), b"mine".to_vec()).unwrap();
    txn.restart();
    assert!(!txn.has_writes());
    fixture.set("k", "theirs");
    let found = txn.get(b"k", ReadMode::Update).unwrap();
    assert_eq!(found, text("theirs"));
    txn.put(b"k".to_vec(), b"mine".to_vec()).unwrap();
    txn.commit(Durability::Sync).unwrap();
}

#[test]
fn commits_line_up_and_are_written_in_groups() {
    let engine = HookedEngine::new();
    let fixture = Arc::new(Fixture::over(engine.clone()));
    let others: Arc<parking_lot::Mutex<Vec<_>>> = Arc::default();
    // While the first commit is being written, three more line up behind it.
    let (hook_house, hook_others) = (fixture.clone(), others.clone());
    engine.before_next_write(move || {
        let (lined_up, all_lined_up) = std::sync::mpsc::channel();
        for number in 0..3 {
            let (fixture, lined_up) = (hook_house.clone(), lined_up.clone());
            hook_others.lock().push(spawn(move || {
                let txn = fixture.begin(Serializable);
                let key = format!("k{number}").into_bytes();
                txn.put(key, b"v".to_vec()).unwrap();
                lined_up.send(()).unwrap();
                txn.commit(Durability::Sync).unwrap()
            }));
        }
        for _ in 0..3 {
            all_lined_up.recv().unwrap();
        }
        Ok(())
    });
    fixture.set("first", "v");
    let others = std::mem::take(&mut *others.lock());
    let mut versions: Vec<_> = others.into_iter().map(|t| t.join().unwrap()).collect();
    versions.sort();
    assert_eq!(versions, [Version(2), Version(3), Version(4)]);
    assert!(engine.batches.load(Ordering::Relaxed) <= 4);
    assert_eq!(fixture.path.visible(), Version(4));
}

#[allow(clippy::disallowed_methods)] // Real threads are what this test is about.
fn spawn<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    std::thread::spawn(work)
}
