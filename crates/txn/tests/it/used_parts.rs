//! SERIALIZABLE reads that stand although their row was written, because what was used of it is the
//! same, and those that do not.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use manxdb_fixtures::local::Fixture;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::IsolationLevel::Serializable;
use manxdb_txn::{ReadMode, Transaction, TxnError, UsedPart};

/// Rows are two letters; this reader uses one of them.
struct Letter(usize);

impl UsedPart for Letter {
    fn same(&self, _key: &[u8], old: &[u8], new: &[u8]) -> bool {
        old.get(self.0) == new.get(self.0)
    }
}

fn read(txn: &Transaction, key: &str, letter: usize) -> Option<u8> {
    let used: Arc<dyn UsedPart> = Arc::new(Letter(letter));
    let keys = [key.as_bytes().to_vec()];
    let found = txn.get_many_used(&keys, ReadMode::Plain, Some(&used));
    found.unwrap().pop().unwrap().map(|value| value[letter])
}

fn put(txn: &Transaction, key: &str, value: &str) {
    txn.put(key.into(), value.into()).unwrap();
}

fn commit(txn: Transaction) -> Result<(), TxnError> {
    txn.commit(Durability::Sync).map(drop)
}

fn is_conflict<T>(answer: &Result<T, TxnError>) -> bool {
    matches!(answer, Err(TxnError::Conflict { .. }))
}

#[test]
fn another_part_of_a_row_may_change() {
    let fixture = Fixture::new();
    fixture.set("w", "ab");
    let txn = fixture.begin(Serializable);
    assert_eq!(read(&txn, "w", 0), Some(b'a'));
    fixture.set("w", "ac");
    put(&txn, "order", "1");
    fixture.set("w", "ad");
    commit(txn).unwrap();
}

#[test]
fn the_part_that_was_used_may_not() {
    let fixture = Fixture::new();
    fixture.set("w", "ab");
    for (key, now) in [("w", Some("cb")), ("w", None), ("absent", Some("xy"))] {
        let txn = fixture.begin(Serializable);
        let before = read(&txn, key, 0);
        assert_eq!(before.is_some(), key == "w");
        match now {
            Some(now) => fixture.set(key, now),
            None => fixture.unset(key),
        }
        put(&txn, "order", "1");
        assert!(is_conflict(&commit(txn)), "{key} {now:?}");
        fixture.set("w", "ab");
    }
}

#[test]
fn what_several_readers_used_must_all_be_the_same() {
    for (now, holds) in [("abx", true), ("cb", false), ("ac", false)] {
        let fixture = Fixture::new();
        fixture.set("w", "ab");
        let txn = fixture.begin(Serializable);
        read(&txn, "w", 0);
        read(&txn, "w", 1);
        fixture.set("w", now);
        put(&txn, "order", "1");
        assert_eq!(commit(txn).is_ok(), holds, "{now}");
    }
}

#[test]
fn who_reads_all_of_a_row_before_or_after_uses_all_of_it() {
    for whole_first in [false, true] {
        let fixture = Fixture::new();
        fixture.set("w", "ab");
        let txn = fixture.begin(Serializable);
        if whole_first {
            txn.get(b"w", ReadMode::Plain).unwrap();
        }
        read(&txn, "w", 0);
        if !whole_first {
            txn.get(b"w", ReadMode::Plain).unwrap();
        }
        fixture.set("w", "ac");
        put(&txn, "order", "1");
        assert!(is_conflict(&commit(txn)), "{whole_first}");
    }
}

#[test]
fn a_locking_read_moves_on_over_it_and_later_reads_see_the_state_there() {
    let fixture = Fixture::new();
    fixture.set("w", "ab");
    fixture.set("d", "11");
    let txn = fixture.begin(Serializable);
    assert_eq!(read(&txn, "w", 0), Some(b'a'));
    fixture.set("w", "ac");
    fixture.set("d", "12");
    let locked = txn.get(b"d", ReadMode::Update).unwrap();
    assert_eq!(locked, Some(b"12".to_vec()));
    assert_eq!(read(&txn, "w", 1), Some(b'c'), "one state for all reads");
    put(&txn, "d", "13");
    commit(txn).unwrap();
    // What was used does not hold at the state of the lock: lost at once.
    let txn = fixture.begin(Serializable);
    read(&txn, "w", 0);
    fixture.set("w", "xc");
    fixture.set("d", "14");
    assert!(is_conflict(&txn.get(b"d", ReadMode::Update)));
}

#[test]
fn ranges_and_locked_rows_are_judged_as_before() {
    let fixture = Fixture::new();
    fixture.set("w", "ab");
    let txn = fixture.begin(Serializable);
    read(&txn, "w", 0);
    let range = KeyRange::prefix(b"n");
    txn.scan(&range, Direction::Forward, 10, ReadMode::Plain)
        .unwrap();
    fixture.set("w", "ac");
    fixture.set("n1", "zz");
    put(&txn, "order", "1");
    assert!(is_conflict(&commit(txn)));
}
