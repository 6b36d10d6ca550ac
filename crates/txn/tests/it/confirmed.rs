//! A path whose commits are durable when somebody else says so.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use manxdb_storage::{Durability, MemoryEngine, StorageError, Version, WriteBatch};
use manxdb_txn::locks::Strength;
use manxdb_txn::mutants::Mutants;
use manxdb_txn::{
    CommitPath, Confirm, Intent, IsolationLevel, LocalOptions, LocalPath, ReadSet, Reply, TxnError,
    TxnId,
};
use parking_lot::Mutex;

/// Confirms up to a version, and fails everything above it.
#[derive(Default)]
struct UpTo {
    confirmed: Mutex<u64>,
    begun: Mutex<Vec<(Vec<u64>, Version)>>,
}

impl Confirm for UpTo {
    fn admit(&self, bytes: usize) -> Result<(), TxnError> {
        if bytes <= 100 {
            return Ok(());
        }
        Err(TxnError::TooLarge {
            size_bytes: bytes,
            limit_bytes: 100,
        })
    }

    fn begin(&self, batch: &WriteBatch, shown: Version) {
        let versions = batch.writes.iter().map(|(version, _, _)| version.0);
        self.begun.lock().push((versions.collect(), shown));
    }

    fn wait(&self, upto: Version) -> Result<(), TxnError> {
        if upto.0 <= *self.confirmed.lock() {
            return Ok(());
        }
        Err(TxnError::Unknown("another server is master".into()))
    }

    fn may_read(&self) -> Result<(), TxnError> {
        Ok(())
    }
}

fn path() -> (LocalPath, Arc<UpTo>) {
    let upto = Arc::new(UpTo::default());
    let confirm = Arc::clone(&upto) as Arc<dyn Confirm>;
    let engine = Arc::new(MemoryEngine::new());
    let path = LocalPath::open_confirmed(engine, LocalOptions::default(), confirm).unwrap();
    (path, upto)
}

fn intent(txn: u64, key: &str, reads: &[(&str, u64)]) -> Intent {
    let points = reads
        .iter()
        .map(|(key, at)| (key.as_bytes().to_vec(), Version(*at)));
    Intent {
        txn: TxnId(txn),
        isolation: IsolationLevel::Serializable,
        reads: ReadSet {
            points: points.collect::<Vec<_>>().into(),
            ranges: Vec::new(),
        },
        writes: vec![(key.as_bytes().to_vec(), Some(b"value".to_vec()))],
        durability: Durability::Async,
        locks: vec![key.as_bytes().to_vec().into()],
    }
}

fn shown(path: &LocalPath) -> Version {
    match path.ordered_snapshot() {
        Reply::Ready(snapshot) => snapshot.unwrap().version,
        Reply::Pending(_) => unreachable!("a local path answers at once"),
    }
}

#[test]
fn a_group_is_shown_when_it_is_confirmed_and_not_before() {
    let (path, upto) = path();
    let first = path.stage_intents(vec![intent(1, "a", &[]), intent(2, "b", &[])]);
    assert_eq!((path.visible(), shown(&path)), (Version(0), Version(0)));
    let second = path.stage_intents(vec![intent(3, "c", &[])]);
    assert_eq!((first.last(), second.last()), (Version(2), Version(3)));
    *upto.confirmed.lock() = 3;
    assert!(path.finish(first).iter().all(Result::is_ok));
    assert_eq!((path.visible(), shown(&path)), (Version(2), Version(2)));
    assert!(path.finish(second).iter().all(Result::is_ok));
    assert_eq!(path.visible(), Version(3));
    let begun = upto.begun.lock().clone();
    assert_eq!(begun, [(vec![1, 2], Version(0)), (vec![3], Version(0))]);
}

/// Whether a row lock of a commit is still held when its group is written and not confirmed.
fn lock_is_held(mutants: Mutants) -> bool {
    let (path, _) = path();
    path.plant(mutants);
    let key = b"a".to_vec().into();
    let locks = path.locks().unwrap();
    assert!(locks.try_acquire(TxnId(1), &key, Strength::Exclusive));
    let _group = path.stage_intents(vec![intent(1, "a", &[])]);
    locks.holds(TxnId(1), b"a", Strength::Exclusive)
}

#[test]
fn row_locks_last_until_the_commit_is_confirmed() {
    assert!(lock_is_held(Mutants::default()));
    let early = Mutants {
        release_unconfirmed: true,
        ..Mutants::default()
    };
    assert!(!lock_is_held(early), "the planted defect");
}

#[test]
fn what_is_not_confirmed_is_unknown_and_nothing_more_is_written() {
    let (path, upto) = path();
    *upto.confirmed.lock() = 1;
    let groups = ["a", "b"].map(|key| path.stage_intents(vec![intent(1, key, &[])]));
    let [first, second] = groups;
    let unknown = path.finish(second);
    assert!(matches!(unknown[..], [Err(TxnError::Unknown(_))]));
    assert_eq!(path.visible(), Version(0));
    let confirmed = path.finish(first);
    assert!(
        matches!(confirmed[..], [Ok(Version(1))]),
        "it was confirmed"
    );
    let group = path.stage_intents(vec![intent(3, "c", &[])]);
    let refused = path.finish(group);
    let read_only = matches!(
        refused[..],
        [Err(TxnError::Storage(StorageError::ReadOnly(_)))]
    );
    assert!(read_only, "{refused:?}");
    assert_eq!(upto.begun.lock().len(), 2);
}

#[test]
fn who_lost_to_a_commit_that_is_not_shown_finds_it_when_it_tries_again() {
    let (path, upto) = path();
    let winner = path.stage_intents(vec![intent(1, "a", &[("a", 0)])]);
    let loser = path.stage_intents(vec![intent(2, "a", &[("a", 0)])]);
    *upto.confirmed.lock() = 1;
    let verdict = path.finish(loser);
    assert!(matches!(verdict[..], [Err(TxnError::Conflict { .. })]));
    assert_eq!(path.visible(), Version(1), "what it lost to is there");
    assert!(path.finish(winner)[0].is_ok());
    let again = path.stage_intents(vec![intent(2, "a", &[("a", 1)])]);
    *upto.confirmed.lock() = 2;
    assert!(path.finish(again)[0].is_ok());
}

#[test]
fn what_is_too_large_to_be_replicated_is_refused_and_takes_no_version() {
    let (path, upto) = path();
    *upto.confirmed.lock() = 9;
    let mut large = intent(1, "a", &[]);
    large.writes[0].1 = Some(vec![0; 101]);
    let group = path.stage_intents(vec![large, intent(2, "b", &[])]);
    let verdicts = path.finish(group);
    let [refused, done] = &verdicts[..] else {
        panic!("{verdicts:?}");
    };
    assert!(
        matches!(
            refused,
            Err(TxnError::TooLarge {
                size_bytes: 102,
                ..
            })
        ),
        "{refused:?}"
    );
    assert!(matches!(done, Ok(Version(1))));
}
