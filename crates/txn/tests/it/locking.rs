//! Row locks as a session meets them, level by level. Waiters are polled: a call that would wait
//! answers `WouldWait` and is repeated.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::sync::Arc;

use manxdb_fixtures::local::Fixture;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::{ReadMode, Transaction, TxnError, Waiter};

const LEVELS: [IsolationLevel; 3] = [ReadCommitted, RepeatableRead, Serializable];

#[allow(clippy::unnecessary_wraps)] // the shape of what a read answers
fn text(value: &str) -> Option<Vec<u8>> {
    Some(value.as_bytes().to_vec())
}

fn would_wait<T>(answer: &Result<T, TxnError>) -> bool {
    matches!(answer, Err(TxnError::WouldWait))
}

fn is_conflict<T>(answer: &Result<T, TxnError>) -> bool {
    matches!(answer, Err(TxnError::Conflict { .. }))
}

fn number(txn: &Transaction, key: &[u8]) -> Result<u64, TxnError> {
    let found = txn.get(key, ReadMode::Update)?;
    Ok(found.map_or(0, |value| {
        String::from_utf8(value).unwrap().parse().unwrap()
    }))
}

fn add_one(txn: &Transaction, key: &[u8]) -> Result<(), TxnError> {
    let next = number(txn, key)? + 1;
    txn.put(key.to_vec(), next.to_string().into_bytes())
}

fn commit(txn: Transaction) {
    txn.commit(Durability::Sync).unwrap();
}

/// `UPDATE t SET x = x + 1` on its own, as a session runs it: the table's catalog record first.
fn autocommit_begin(fixture: &Fixture, isolation: IsolationLevel) -> Transaction {
    let txn = fixture.begin(isolation);
    txn.start_statement().unwrap();
    txn.get(b"catalog", ReadMode::Validate).unwrap();
    txn
}

#[test]
fn two_updates_of_one_row_wait_for_each_other_and_both_count() {
    for level in LEVELS {
        let fixture = Fixture::new();
        fixture.set("x", "10");
        let first = autocommit_begin(&fixture, level);
        let second = autocommit_begin(&fixture, level);
        add_one(&first, b"x").unwrap();
        assert!(would_wait(&add_one(&second, b"x")));
        commit(first);
        add_one(&second, b"x").unwrap();
        commit(second);
        let reader = fixture.begin(level);
        assert_eq!(number(&reader, b"x").unwrap(), 12, "{level:?}");
        drop(reader);
        assert!(fixture.locks_held() == 0);
    }
}

#[test]
fn a_serializable_transaction_that_has_read_the_row_before_loses_at_once() {
    let fixture = Fixture::new();
    fixture.set("x", "10");
    let txn = fixture.begin(Serializable);
    txn.get(b"x", ReadMode::Plain).unwrap();
    fixture.set("x", "11");
    assert!(is_conflict(&txn.get(b"x", ReadMode::Update)));
    // And stays lost, until it begins anew.
    assert!(is_conflict(&txn.get(b"y", ReadMode::Plain)));
    txn.restart();
    add_one(&txn, b"x").unwrap();
    commit(txn);
}

#[test]
fn a_serializable_transaction_moves_forward_while_what_it_read_still_holds() {
    let fixture = Fixture::new();
    fixture.set("x", "10");
    let txn = fixture.begin(Serializable);
    assert_eq!(txn.get(b"other", ReadMode::Plain).unwrap(), None);
    fixture.set("x", "11");
    assert_eq!(number(&txn, b"x").unwrap(), 11);
    txn.put(b"x".to_vec(), b"12".to_vec()).unwrap();
    commit(txn);
}

#[test]
fn a_moved_transaction_still_guards_what_it_read_before() {
    let fixture = Fixture::new();
    fixture.set("x", "10");
    let txn = fixture.begin(Serializable);
    assert_eq!(txn.get(b"other", ReadMode::Plain).unwrap(), None);
    fixture.set("x", "11");
    add_one(&txn, b"x").unwrap();
    fixture.set("other", "there");
    assert!(is_conflict(&txn.commit(Durability::Sync)));
}

#[test]
fn a_declared_read_only_serializable_transaction_stays_at_its_snapshot() {
    let fixture = Fixture::new();
    fixture.set("x", "10");
    let txn = fixture.begin(Serializable);
    txn.declare_read_only();
    assert_eq!(txn.get(b"y", ReadMode::Plain).unwrap(), None);
    fixture.set("y", "1");
    fixture.set("x", "11");
    assert_eq!(number(&txn, b"x").unwrap(), 10);
}

#[test]
fn inserts_of_one_unique_key_wait_for_each_other() {
    for level in LEVELS {
        let fixture = Fixture::new();
        let first = autocommit_begin(&fixture, level);
        let second = autocommit_begin(&fixture, level);
        assert_eq!(first.get(b"u", ReadMode::Update).unwrap(), None);
        first.put(b"u".to_vec(), b"1".to_vec()).unwrap();
        assert!(would_wait(&second.get(b"u", ReadMode::Update)));
        commit(first);
        assert_eq!(second.get(b"u", ReadMode::Update).unwrap(), text("1"));
    }
}

#[test]
fn blind_writes_of_one_key_wait_for_each_other() {
    let fixture = Fixture::new();
    let first = fixture.begin(ReadCommitted);
    let second = fixture.begin(ReadCommitted);
    first.put(b"k".to_vec(), b"1".to_vec()).unwrap();
    assert!(would_wait(&second.put(b"k".to_vec(), b"2".to_vec())));
    assert!(!second.has_writes());
    first.rollback();
    second.put(b"k".to_vec(), b"2".to_vec()).unwrap();
    commit(second);
}

#[test]
fn the_one_who_closes_the_cycle_dies_and_the_other_goes_on() {
    for level in LEVELS {
        let fixture = Fixture::new();
        let first = fixture.begin(level);
        let second = fixture.begin(level);
        add_one(&first, b"x").unwrap();
        add_one(&second, b"y").unwrap();
        assert!(would_wait(&add_one(&first, b"y")));
        assert!(matches!(add_one(&second, b"x"), Err(TxnError::Deadlock)));
        assert!(is_conflict(&second.get(b"z", ReadMode::Plain)));
        second.rollback();
        add_one(&first, b"y").unwrap();
        commit(first);
        assert_eq!(fixture.locks_held(), 0);
    }
}

#[test]
fn nowait_answers_at_once_and_the_transaction_goes_on() {
    let fixture = Fixture::new();
    fixture.set("x", "1");
    let holder = fixture.begin(RepeatableRead);
    add_one(&holder, b"x").unwrap();
    let other = fixture.begin(RepeatableRead);
    let answer = other.get(b"x", ReadMode::UpdateNoWait);
    assert!(matches!(answer, Err(TxnError::LockNotAvailable)));
    let answer = other.get(b"x", ReadMode::ShareNoWait);
    assert!(matches!(answer, Err(TxnError::LockNotAvailable)));
    other.put(b"y".to_vec(), b"1".to_vec()).unwrap();
    commit(other);
}

#[test]
fn skip_locked_takes_the_next_free_rows() {
    for level in LEVELS {
        let fixture = Fixture::new();
        for key in ["q1", "q2", "q3", "q4"] {
            fixture.set(key, "job");
        }
        let take = |txn: &Transaction| {
            let mode = ReadMode::UpdateSkipLocked;
            let range = KeyRange::prefix(b"q");
            let page = txn.scan(&range, Direction::Forward, 1, mode).unwrap();
            String::from_utf8(page[0].0.clone()).unwrap()
        };
        let workers: Vec<_> = (0..3).map(|_| autocommit_begin(&fixture, level)).collect();
        let jobs: Vec<_> = workers.iter().map(take).collect();
        assert_eq!(jobs, ["q1", "q2", "q3"]);
        assert_eq!(
            workers[0].get(b"q2", ReadMode::UpdateSkipLocked).unwrap(),
            None
        );
        for (worker, job) in workers.into_iter().zip(jobs) {
            worker.delete(job.into_bytes()).unwrap();
            commit(worker);
        }
        assert_eq!(take(&fixture.begin(level)), "q4");
    }
}

#[test]
fn children_share_their_parents_lock_and_its_deletion_waits() {
    for level in LEVELS {
        let fixture = Fixture::new();
        fixture.set("parent", "row");
        let children: Vec<_> = (0..2).map(|_| autocommit_begin(&fixture, level)).collect();
        for (number, child) in children.iter().enumerate() {
            assert_eq!(child.get(b"parent", ReadMode::Share).unwrap(), text("row"));
            let key = format!("child{number}").into_bytes();
            child.put(key, b"row".to_vec()).unwrap();
        }
        let deleter = autocommit_begin(&fixture, level);
        assert!(would_wait(&deleter.get(b"parent", ReadMode::Update)));
        children.into_iter().for_each(commit);
        assert_eq!(
            deleter.get(b"parent", ReadMode::Update).unwrap(),
            text("row")
        );
        let range = KeyRange::prefix(b"child");
        let found = deleter.scan(&range, Direction::Forward, 9, ReadMode::Update);
        assert_eq!(found.unwrap().len(), 2);
    }
}

#[test]
fn a_locking_scan_waits_and_then_sees_what_the_others_committed() {
    for level in LEVELS {
        let fixture = Fixture::new();
        fixture.set("t1", "1");
        fixture.set("t2", "1");
        let writer = fixture.begin(level);
        writer.put(b"t2".to_vec(), b"changed".to_vec()).unwrap();
        writer.put(b"t3".to_vec(), b"inserted".to_vec()).unwrap();
        let scanner = autocommit_begin(&fixture, level);
        let range = KeyRange::prefix(b"t");
        let scan = || scanner.scan(&range, Direction::Reverse, 10, ReadMode::Update);
        assert!(would_wait(&scan()));
        commit(writer);
        let values: Vec<_> = scan()
            .unwrap()
            .into_iter()
            .map(|(_, value)| value)
            .collect();
        let expected: [&[u8]; 3] = [b"inserted", b"changed", b"1"];
        assert_eq!(values, expected, "{level:?}");
    }
}

#[test]
fn an_insert_into_a_locked_range_conflicts_unless_read_committed() {
    for (level, conflicts) in [
        (ReadCommitted, false),
        (RepeatableRead, true),
        (Serializable, true),
    ] {
        let fixture = Fixture::new();
        fixture.set("t1", "1");
        let txn = fixture.begin(level);
        let range = KeyRange::prefix(b"t");
        txn.scan(&range, Direction::Forward, 10, ReadMode::Update)
            .unwrap();
        fixture.set("t2", "phantom");
        txn.put(b"sum".to_vec(), b"1".to_vec()).unwrap();
        assert_eq!(is_conflict(&txn.commit(Durability::Sync)), conflicts);
    }
}

#[test]
fn repeatable_read_takes_its_snapshot_at_the_first_select_not_at_an_update() {
    let fixture = Fixture::new();
    fixture.set("x", "1");
    let txn = autocommit_begin(&fixture, RepeatableRead);
    add_one(&txn, b"x").unwrap();
    fixture.set("y", "late");
    assert_eq!(txn.get(b"y", ReadMode::Plain).unwrap(), text("late"));
    fixture.set("y", "later");
    assert_eq!(txn.get(b"y", ReadMode::Plain).unwrap(), text("late"));
    assert_eq!(txn.get(b"y", ReadMode::Update).unwrap(), text("later"));
}

/// Gives up every wait, as a session does whose lock wait time-out passed.
struct Impatient;

impl Waiter for Impatient {
    fn wait(&self, _ready: &dyn Fn() -> bool) -> Result<(), TxnError> {
        Err(TxnError::LockTimeout)
    }
    fn wake(&self) {}
    fn check(&self) -> Result<(), TxnError> {
        Ok(())
    }
}

#[test]
fn a_transaction_survives_a_lock_time_out_and_leaves_the_queue() {
    let fixture = Fixture::new();
    let holder = fixture.begin(RepeatableRead);
    add_one(&holder, b"x").unwrap();
    let impatient = fixture.begin_waiting(RepeatableRead, Arc::new(Impatient));
    impatient.put(b"y".to_vec(), b"1".to_vec()).unwrap();
    let savepoint = impatient.savepoint();
    let answer = impatient.get(b"x", ReadMode::Update);
    assert!(matches!(answer, Err(TxnError::LockTimeout)));
    impatient.rollback_to(savepoint);
    commit(holder);
    commit(impatient);
    assert_eq!(fixture.locks_held(), 0);
}

#[test]
fn dropping_a_waiting_transaction_frees_its_place() {
    let fixture = Fixture::new();
    let holder = fixture.begin(RepeatableRead);
    add_one(&holder, b"x").unwrap();
    let waiting = fixture.begin(RepeatableRead);
    assert!(would_wait(&add_one(&waiting, b"x")));
    drop(waiting);
    commit(holder);
    assert_eq!(fixture.locks_held(), 0);
}

#[test]
fn a_wait_that_is_given_up_keeps_the_weaker_lock_of_the_same_row() {
    let fixture = Fixture::new();
    let first = fixture.begin(RepeatableRead);
    let second = fixture.begin(RepeatableRead);
    first.get(b"x", ReadMode::Share).unwrap();
    second.get(b"x", ReadMode::Share).unwrap();
    assert!(would_wait(&first.get(b"x", ReadMode::Update)));
    second.rollback();
    // Not the call that waited: its request ends, what the transaction held before does not.
    first.get(b"y", ReadMode::Update).unwrap();
    let third = fixture.begin(RepeatableRead);
    assert!(would_wait(&third.get(b"x", ReadMode::Update)));
    first.rollback();
    assert!(third.get(b"x", ReadMode::Update).is_ok());
    third.rollback();
    assert_eq!(fixture.locks_held(), 0);
}
