//! Row locks that are given back while their commit still waits for the disk.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use manxdb_fixtures::local::{Fixture, HookedEngine};
use manxdb_storage::{Durability, StorageError, Version};
use manxdb_txn::IsolationLevel::{ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::mutants::Mutants;
use manxdb_txn::{IsolationLevel, ReadMode, Transaction, TxnError};
use parking_lot::Mutex;

const LEVELS: [IsolationLevel; 3] = [ReadCommitted, RepeatableRead, Serializable];

/// Commits new values of `k` and `l`, and runs `meanwhile` when they are written and wait for the
/// disk, whose answer is `synced`.
fn while_it_waits(
    synced: Result<(), StorageError>,
    meanwhile: impl FnOnce(&Fixture) + Send + 'static,
) -> (Arc<Fixture>, Result<Version, TxnError>) {
    let engine = HookedEngine::new();
    let fixture = Arc::new(Fixture::over(engine.clone()));
    fixture.set("k", "old");
    fixture.set("l", "old");
    let inner = Arc::clone(&fixture);
    let mut once = Some((meanwhile, synced));
    engine.before_next_sync(move || match once.take() {
        Some((meanwhile, synced)) => {
            meanwhile(&inner);
            synced
        }
        None => Ok(()),
    });
    let txn = fixture.begin(RepeatableRead);
    txn.put(b"k".to_vec(), b"new".to_vec()).unwrap();
    txn.put(b"l".to_vec(), b"new".to_vec()).unwrap();
    let verdict = txn.commit(Durability::Sync);
    (fixture, verdict)
}

/// What `meanwhile` says of the moment.
fn told<T: Send + 'static>(meanwhile: impl FnOnce(&Fixture) -> T + Send + 'static) -> T {
    let said = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&said);
    let (_, verdict) = while_it_waits(Ok(()), move |fixture| {
        let answer = meanwhile(fixture);
        *slot.lock() = Some(answer);
    });
    verdict.unwrap();
    let answer = said.lock().take();
    answer.unwrap()
}

fn value(txn: &Transaction, key: &str, mode: ReadMode) -> String {
    let found = txn.get(key.as_bytes(), mode).unwrap().unwrap();
    String::from_utf8(found).unwrap()
}

#[test]
fn the_next_owner_of_a_row_writes_it_before_its_predecessor_is_on_disk() {
    for level in LEVELS {
        let (fixture, verdict) = while_it_waits(Ok(()), move |fixture| {
            let next = fixture.begin(level);
            assert_eq!(value(&next, "k", ReadMode::Update), "new");
            next.put(b"k".to_vec(), b"newer".to_vec()).unwrap();
            next.commit(Durability::Sync).unwrap();
        });
        assert!(verdict.unwrap() < fixture.path.visible(), "{level:?}");
        let after = fixture.begin(RepeatableRead);
        assert_eq!(value(&after, "k", ReadMode::Plain), "newer", "{level:?}");
    }
}

#[test]
fn reads_without_a_lock_see_only_what_is_acknowledged() {
    for level in LEVELS {
        let seen = told(move |fixture| {
            let reader = fixture.begin(level);
            reader.start_statement().unwrap();
            let seen = value(&reader, "k", ReadMode::Plain);
            reader.commit(Durability::Sync).unwrap();
            (seen, fixture.path.visible())
        });
        assert_eq!(seen, ("old".to_owned(), Version(2)), "{level:?}");
    }
}

/// What a plain read of `l` sees for whoever has locked `k` first.
fn read_beside_a_lock(level: IsolationLevel, mutants: Mutants) -> String {
    told(move |fixture| {
        let reader = fixture.begin(level);
        reader.plant(mutants);
        reader.start_statement().unwrap();
        let locked = reader.get(b"k", ReadMode::Update);
        assert!(locked.is_ok() || mutants.old_reads_under_locks);
        reader.start_statement().unwrap();
        value(&reader, "l", ReadMode::Plain)
    })
}

#[test]
fn under_a_lock_all_of_the_commit_that_gave_it_back_is_seen() {
    let mutants = Mutants {
        old_reads_under_locks: true,
        ..Mutants::default()
    };
    for level in LEVELS {
        assert_eq!(read_beside_a_lock(level, Mutants::default()), "new");
    }
    assert_eq!(read_beside_a_lock(ReadCommitted, mutants), "old");
}

/// Which version is visible when a transaction that has only looked ended, and which it saw.
fn end_of_a_reader(commits: bool, mutants: Mutants) -> Version {
    told(move |fixture| {
        let reader = fixture.begin(RepeatableRead);
        reader.plant(mutants);
        assert_eq!(value(&reader, "k", ReadMode::Update), "new");
        if commits {
            reader.commit(Durability::Sync).unwrap();
        } else {
            reader.rollback();
        }
        fixture.path.visible()
    })
}

#[test]
fn whoever_has_looked_at_a_commit_ends_when_it_is_on_disk() {
    let mutants = Mutants {
        skip_confirmation: true,
        ..Mutants::default()
    };
    for commits in [true, false] {
        assert_eq!(end_of_a_reader(commits, Mutants::default()), Version(3));
        assert_eq!(end_of_a_reader(commits, mutants), Version(2));
    }
}

#[test]
fn when_the_disk_fails_nobody_behind_it_is_told_a_success() {
    let left = Arc::new(Mutex::new(Vec::new()));
    let slot = Arc::clone(&left);
    let failed = Err(StorageError::Engine("sync failed".into()));
    let (_, verdict) = while_it_waits(failed, move |fixture| {
        let writer = fixture.begin(RepeatableRead);
        assert_eq!(value(&writer, "k", ReadMode::Update), "new");
        writer.put(b"k".to_vec(), b"newer".to_vec()).unwrap();
        let reader = fixture.begin(RepeatableRead);
        assert_eq!(value(&reader, "l", ReadMode::Update), "new");
        slot.lock().extend([writer, reader]);
    });
    assert!(matches!(verdict, Err(TxnError::Unknown(_))), "{verdict:?}");
    for txn in left.lock().drain(..) {
        let ended = txn.commit(Durability::Sync);
        let is_refused = matches!(ended, Err(TxnError::Storage(StorageError::ReadOnly(_))));
        assert!(is_refused, "{ended:?}");
    }
}
