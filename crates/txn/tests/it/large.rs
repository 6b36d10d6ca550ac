//! Transactions of many rows beside others that write to the same tables.
#![allow(clippy::unwrap_used, clippy::panic)]

use manxdb_fixtures::local::Fixture;
use manxdb_storage::Durability;
use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::{ReadMode, Transaction, TxnError};

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
