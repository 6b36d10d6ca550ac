//! Planted anomalies in the midst of random transactions that are right: found as when they are
//! alone, at the same levels, and nothing else.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use crate::common::{append, history, read, txn};
use manxdb_checker::append::{Anomaly, Level, Operation, Outcome, Transaction, check};
use proptest::prelude::*;

/// The least that shows an anomaly: its kind, the lowest level that forbids it, and who did it.
fn planted() -> Vec<(Anomaly, Level, Vec<Transaction>)> {
    use Anomaly::{
        AbortedRead, AntiDependency, CircularInformation, DirtyWrite, RealTimeOrder, SessionOrder,
        SingleAntiDependency,
    };
    let failed = Transaction {
        outcome: Outcome::Failed,
        ..txn(1, &[append(5, 1)])
    };
    // The writer runs all the time, and its reader's next transaction does not see it.
    let mut backwards = [
        txn(1, &[append(5, 1), append(6, 2)]),
        txn(2, &[read(6, &[2])]),
        txn(3, &[read(5, &[])]),
        txn(4, &[read(5, &[1])]),
    ];
    backwards[0].completed = 100;
    let inverted = backwards.to_vec();
    backwards[2].session = backwards[1].session;
    let dirty = vec![
        txn(1, &[append(5, 1), append(6, 2)]),
        txn(2, &[append(5, 3), append(6, 4)]),
        txn(3, &[read(5, &[1, 3])]),
        txn(4, &[read(6, &[4, 2])]),
    ];
    let circular = vec![
        txn(1, &[append(5, 1), read(6, &[2])]),
        txn(2, &[append(6, 2), read(5, &[1])]),
    ];
    let lost_update = vec![
        txn(1, &[read(5, &[]), append(5, 1)]),
        txn(2, &[read(5, &[]), append(5, 2)]),
        txn(3, &[read(5, &[1, 2])]),
    ];
    let write_skew = vec![
        txn(1, &[read(5, &[]), read(6, &[]), append(5, 1)]),
        txn(2, &[read(5, &[]), read(6, &[]), append(6, 2)]),
        txn(3, &[read(5, &[1]), read(6, &[2])]),
    ];
    let everywhere = Level::Serializable;
    vec![
        (DirtyWrite, everywhere, dirty),
        (
            AbortedRead,
            everywhere,
            vec![failed, txn(2, &[read(5, &[1])])],
        ),
        (CircularInformation, everywhere, circular),
        (SingleAntiDependency, everywhere, lost_update),
        (AntiDependency, everywhere, write_skew),
        (SessionOrder, Level::Session, backwards.to_vec()),
        (RealTimeOrder, Level::Strict, inverted),
    ]
}

/// Names, lists and elements of the planted are beyond those of the others.
const BEYOND: u64 = 1_000;

/// The planted transactions, begun at a time.
fn move_to(planted: &mut [Transaction], time: u64) {
    for transaction in planted {
        transaction.name += BEYOND;
        transaction.session += BEYOND;
        transaction.invoked += time;
        transaction.completed += time;
        for operation in &mut transaction.operations {
            match operation {
                Operation::Read { key, list } => {
                    *key += BEYOND;
                    for element in list {
                        *element += BEYOND;
                    }
                }
                Operation::Append { key, element } => {
                    *key = key.map(|key| key + BEYOND);
                    *element += BEYOND;
                }
            }
        }
    }
}

/// One after another on five lists, in time with room to overlap; at most 20 of them.
fn run(scripts: &[Vec<(u64, bool)>]) -> Vec<Transaction> {
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut transactions = Vec::new();
    for (name, script) in (0..).zip(scripts) {
        let mut operations = Vec::new();
        for (place, (key, appends)) in (0..).zip(script) {
            let list = lists.entry(*key).or_default();
            if *appends {
                let element = name * 10 + place;
                list.push(element);
                operations.push(append(*key, element));
            } else {
                operations.push(read(*key, list));
            }
        }
        let session = name % 4;
        transactions.push(Transaction {
            name,
            session,
            invoked: name * 20,
            completed: name * 20 + 50,
            outcome: Outcome::Ok,
            operations,
        });
    }
    transactions
}

proptest! {
    #[test]
    fn planted_anomalies_are_found_and_no_others(
        scripts in prop::collection::vec(
            prop::collection::vec((0_u64..5, any::<bool>()), 1..5), 0..20),
        time in 0_u64..400,
        which in 0_usize..7,
    ) {
        let (anomaly, level, mut wrong) = planted().swap_remove(which);
        move_to(&mut wrong, time);
        let mut all = run(&scripts);
        for at in [Level::Serializable, Level::Session, Level::Strict] {
            let verdict = check(&history(all.clone()), at);
            prop_assert!(verdict.is_valid(), "{}", verdict);
        }
        all.extend(wrong);
        for at in [Level::Serializable, Level::Session, Level::Strict] {
            let verdict = check(&history(all.clone()), at);
            let expected = if at >= level { vec![anomaly] } else { vec![] };
            prop_assert_eq!(verdict.anomalies(), expected, "{}", verdict);
        }
    }
}
