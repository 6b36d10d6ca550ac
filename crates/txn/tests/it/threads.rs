//! Real threads that really block: sums that must hold whatever the interleaving.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods)] // Real threads are what this is about.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use manxdb_fixtures::local::Fixture;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::testing::BlockingWaiter;
use manxdb_txn::{ReadMode, Transaction, TxnError};

const THREADS: u64 = 4;
const ROUNDS: u64 = 300;
const ACCOUNTS: u64 = 5;
const START: i64 = 100;

fn account(number: u64) -> String {
    format!("account{number}")
}

fn balance(bytes: &[u8]) -> i64 {
    std::str::from_utf8(bytes).unwrap().parse().unwrap()
}

fn read(txn: &Transaction, key: &str, mode: ReadMode) -> Result<i64, TxnError> {
    let found = txn.get(key.as_bytes(), mode)?;
    Ok(found.map_or(0, |bytes| balance(&bytes)))
}

fn add(txn: &Transaction, key: &str, amount: i64, mode: ReadMode) -> Result<(), TxnError> {
    let new = read(txn, key, mode)? + amount;
    txn.put(key.into(), new.to_string().into_bytes())
}

/// Runs `work` in a transaction until it commits; how often it was refused.
fn until_committed(
    fixture: &Fixture,
    isolation: IsolationLevel,
    work: impl Fn(&Transaction) -> Result<(), TxnError>,
) -> u64 {
    let mut refused = 0;
    loop {
        let txn = fixture.begin_waiting(isolation, Arc::new(BlockingWaiter::default()));
        let answer = work(&txn).and_then(|()| txn.commit(Durability::Sync));
        match answer {
            Ok(_) => return refused,
            Err(TxnError::Conflict { .. } | TxnError::Deadlock) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
}

fn sum(fixture: &Fixture) -> i64 {
    let txn = fixture.begin(Serializable);
    let range = KeyRange::prefix(b"account");
    let page = txn
        .scan(&range, Direction::Forward, 1_000, ReadMode::Plain)
        .unwrap();
    page.iter().map(|(_, value)| balance(value)).sum()
}

/// A transfer between two accounts that depend on the thread and the round.
fn transfer(fixture: &Fixture, isolation: IsolationLevel, mode: ReadMode, thread: u64, round: u64) {
    let from = account((thread * 7 + round * 3) % ACCOUNTS);
    let to = account((thread + round * 5 + 1) % ACCOUNTS);
    until_committed(fixture, isolation, |txn| {
        add(txn, &from, -1, mode)?;
        add(txn, &to, 1, mode)
    });
}

#[test]
fn transfers_keep_the_sum_at_every_level_and_every_reader_sees_it() {
    for (isolation, mode) in [
        (Serializable, ReadMode::Plain),
        (Serializable, ReadMode::Update),
        (RepeatableRead, ReadMode::Update),
        (ReadCommitted, ReadMode::Update),
    ] {
        let fixture = Fixture::new();
        for number in 0..ACCOUNTS {
            fixture.set(&account(number), &START.to_string());
        }
        let expected = START * i64::try_from(ACCOUNTS).unwrap();
        let writing = AtomicBool::new(true);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let fixture = &fixture;
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            transfer(fixture, isolation, mode, thread, round);
                        }
                    })
                })
                .collect();
            let reader = scope.spawn(|| {
                while writing.load(Ordering::Relaxed) {
                    assert_eq!(sum(&fixture), expected);
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            writing.store(false, Ordering::Relaxed);
            reader.join().unwrap();
        });
        assert_eq!(sum(&fixture), expected, "{isolation:?} {mode:?}");
        assert_eq!(fixture.locks_held(), 0);
        assert_eq!(fixture.path.visible().0, ACCOUNTS + THREADS * ROUNDS);
    }
}

#[test]
fn a_hot_counter_counts_every_update_and_waits_instead_of_retrying() {
    for isolation in [ReadCommitted, RepeatableRead, Serializable] {
        let fixture = Fixture::new();
        let refused: u64 = thread::scope(|scope| {
            let count = || {
                let mut refused = 0;
                for _ in 0..ROUNDS {
                    refused += until_committed(&fixture, isolation, |txn| {
                        txn.start_statement()?;
                        txn.get(b"catalog", ReadMode::Validate)?;
                        add(txn, "counter", 1, ReadMode::Update)
                    });
                }
                refused
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        let txn = fixture.begin(Serializable);
        let total = read(&txn, "counter", ReadMode::Plain).unwrap();
        assert_eq!(total, i64::try_from(THREADS * ROUNDS).unwrap());
        assert_eq!(refused, 0, "{isolation:?}");
    }
}

#[test]
fn an_interrupted_session_stops_waiting() {
    let fixture = Fixture::new();
    let holder = fixture.begin(RepeatableRead);
    holder.put(b"k".to_vec(), b"1".to_vec()).unwrap();
    let waiter = Arc::new(BlockingWaiter::default());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let txn = fixture.begin_waiting(RepeatableRead, waiter.clone());
            txn.put(b"k".to_vec(), b"2".to_vec())
        });
        waiter.interrupt();
        let answer = waiting.join().unwrap();
        assert!(matches!(answer, Err(TxnError::Interrupted)));
    });
    holder.commit(Durability::Sync).unwrap();
    assert_eq!(fixture.locks_held(), 0);
}
