//! Transactions of many rows beside others that write to the same tables.
#![allow(clippy::unwrap_used, clippy::panic)]

use manxdb_fixtures::local::Fixture;
use manxdb_storage::{Direction, Durability};
use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::{CommitPath, ReadMode, Transaction, TxnError};

const ROWS: u64 = 120_000;

/// A row's key: table, index, and a number.
fn key(table: u8, row: u64) -> Vec<u8> {
    let table = [1, 0, 0, 0, table, 0, 0, 0, 0];
    [&table[..], &row.to_be_bytes()].concat()
}

/// As INSERT: the key must be free.
fn insert(txn: &Transaction, key: Vec<u8>) -> Result<(), TxnError> {
    assert_eq!(txn.get(&key, ReadMode::Update)?, None);
    txn.put(key, b"row".to_vec())
}

/// A transaction that inserts every second row, while others insert between them and elsewhere.
fn fill(fixture: &Fixture, level: IsolationLevel) -> Transaction {
    let txn = fixture.begin(level);
    let alone = |key: Vec<u8>| {
        let other = fixture.begin(level);
        insert(&other, key).unwrap();
        other.commit(Durability::Async).unwrap();
    };
    for row in 0..ROWS {
        insert(&txn, key(7, row * 2)).unwrap();
        if row % 1_000 == 0 {
            alone(key(7, row * 2 + 1));
            alone(key(8, row));
            alone(key(6, row));
        }
    }
    txn
}

#[test]
fn a_large_transaction_commits_beside_writers_to_its_table() {
    for level in [ReadCommitted, RepeatableRead, Serializable] {
        let fixture = Fixture::new();
        let txn = fill(&fixture, level);
        txn.commit(Durability::Sync).unwrap();
        // Others see it, and it is validated against as anybody's writes are.
        let late = fixture.begin(level);
        assert_eq!(
            late.get(&key(7, 77_774), ReadMode::Update).unwrap(),
            Some(b"row".to_vec())
        );
        assert!(fixture.locks_held() > 0);
        drop(late);
        assert_eq!(fixture.locks_held(), 0);
    }
}

#[test]
fn a_large_transaction_whose_read_changed_is_lost() {
    let fixture = Fixture::new();
    let txn = fixture.begin(Serializable);
    for row in 0..ROWS {
        txn.get(&key(7, row), ReadMode::Plain).unwrap();
    }
    let other = fixture.begin(Serializable);
    other.put(key(7, 54_321), b"new".to_vec()).unwrap();
    other.commit(Durability::Sync).unwrap();
    txn.put(key(8, 1), b"derived".to_vec()).unwrap();
    let lost = txn.commit(Durability::Sync);
    assert!(matches!(lost, Err(TxnError::Conflict { .. })), "{lost:?}");
}

#[test]
fn a_reader_loses_to_a_large_transaction_only_where_they_meet() {
    let fixture = Fixture::new();
    let meets = fixture.begin(Serializable);
    let passes = fixture.begin(Serializable);
    meets.get(&key(7, 500), ReadMode::Plain).unwrap();
    passes.get(&key(7, 501), ReadMode::Plain).unwrap();
    let large = fixture.begin(Serializable);
    for row in 0..ROWS {
        large.put(key(7, row * 2), b"row".to_vec()).unwrap();
    }
    large.commit(Durability::Sync).unwrap();
    for (txn, holds) in [(meets, false), (passes, true)] {
        txn.put(key(9, u64::from(holds)), b"derived".to_vec())
            .unwrap();
        assert_eq!(txn.commit(Durability::Sync).is_ok(), holds);
    }
}

#[test]
fn a_large_transaction_can_be_undone_in_part() {
    let fixture = Fixture::new();
    let txn = fill(&fixture, RepeatableRead);
    let mark = txn.savepoint();
    for row in 0..ROWS {
        txn.delete(key(7, row * 2)).unwrap();
    }
    txn.rollback_to(mark);
    txn.commit(Durability::Sync).unwrap();
    let reader = fixture.begin(RepeatableRead);
    let last = reader.get(&key(7, (ROWS - 1) * 2), ReadMode::Plain);
    assert_eq!(last.unwrap(), Some(b"row".to_vec()));
}

#[test]
fn a_row_of_a_large_transaction_takes_few_bytes_and_is_locked_until_its_end() {
    let fixture = Fixture::new();
    let txn = fill(&fixture, RepeatableRead);
    let rows = usize::try_from(ROWS).unwrap();
    let writes = txn.packed_bytes();
    assert!(writes > 0 && writes < 24 * rows, "{writes} bytes of writes");
    let locks = fixture.path.locks().unwrap().packed_bytes();
    assert!(locks > 0 && locks < 9 * rows, "{locks} bytes of locks");
    let other = fixture.begin(RepeatableRead);
    let waits = |row: u64| other.put(key(7, row), b"mine".to_vec());
    assert!(matches!(waits(2_000), Err(TxnError::WouldWait)));
    // Beside its rows nothing is.
    let beside = fixture.begin(RepeatableRead);
    beside.put(key(7, 2_003), b"beside".to_vec()).unwrap();
    beside.commit(Durability::Async).unwrap();
    txn.commit(Durability::Sync).unwrap();
    waits(2_000).unwrap();
    other.commit(Durability::Sync).unwrap();
    assert_eq!(fixture.locks_held(), 0);
    let reader = fixture.begin(RepeatableRead);
    let found = reader.get(&key(7, 2_000), ReadMode::Plain).unwrap();
    assert_eq!(found, Some(b"mine".to_vec()));
}

#[test]
fn a_large_transaction_reads_its_own_writes_in_order() {
    let fixture = Fixture::new();
    let txn = fill(&fixture, RepeatableRead);
    for row in (0..ROWS).step_by(3) {
        txn.delete(key(7, row * 2)).unwrap();
    }
    let range = manxdb_storage::KeyRange::prefix(&key(7, 0)[..9]);
    let page = |direction| txn.scan(&range, direction, 1_000, ReadMode::Plain).unwrap();
    let rows = |page: Vec<(Vec<u8>, Vec<u8>)>| -> Vec<Vec<u8>> {
        page.into_iter().map(|(key, _)| key).collect()
    };
    // Own rows that are left, and those of others between them.
    let is_there = |row: &u64| {
        let own = row.is_multiple_of(2) && !(row / 2).is_multiple_of(3);
        own || row % 2_000 == 1
    };
    let all: Vec<Vec<u8>> = (0..2 * ROWS)
        .filter(is_there)
        .map(|row| key(7, row))
        .collect();
    assert_eq!(rows(page(Direction::Forward)), all[..1_000]);
    let last: Vec<Vec<u8>> = all.iter().rev().take(1_000).cloned().collect();
    assert_eq!(rows(page(Direction::Reverse)), last);
}
