//! Each anomaly, planted: found at the level that forbids it, and not below.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use crate::common::{append, history, read, txn};
use manxdb_checker::append::{Anomaly, History, Level, Outcome, Transaction, check};

const LEVELS: [Level; 3] = [Level::Serializable, Level::Session, Level::Strict];

/// Asserts that `anomaly` is found from `level` on, alone, and nothing below.
fn assert_found(history: &History, anomaly: Anomaly, level: Level) {
    for at in LEVELS {
        let verdict = check(history, at);
        let expected = if at >= level { vec![anomaly] } else { vec![] };
        assert_eq!(verdict.anomalies(), expected, "{verdict}");
    }
}

fn assert_valid(history: &History) {
    for level in LEVELS {
        let verdict = check(history, level);
        assert!(verdict.is_valid(), "{verdict}");
    }
}

#[test]
fn transactions_one_after_another_are_strict() {
    assert_valid(&history(vec![
        txn(1, &[append(5, 1), read(5, &[1])]),
        txn(2, &[read(5, &[1]), append(5, 2), append(6, 3)]),
        txn(
            3,
            &[read(6, &[3]), read(5, &[1, 2]), append(6, 4), append(6, 5)],
        ),
        txn(4, &[read(6, &[3, 4, 5])]),
    ]));
}

#[test]
fn g0_interleaved_writes() {
    let history = history(vec![
        txn(1, &[append(5, 1), append(6, 2)]),
        txn(2, &[append(5, 3), append(6, 4)]),
        txn(3, &[read(5, &[1, 3])]),
        txn(4, &[read(6, &[4, 2])]),
    ]);
    assert_found(&history, Anomaly::DirtyWrite, Level::Serializable);
    let text = check(&history, Level::Serializable).to_string();
    assert!(
        text.contains("T1 before T2: ww: T2 appended 3 to key 5 after T1's 1"),
        "{text}"
    );
    assert!(
        text.contains("T2 before T1: ww: T1 appended 2 to key 6 after T2's 4"),
        "{text}"
    );
}

#[test]
fn g1a_read_of_a_failed_append() {
    let failed = Transaction {
        outcome: Outcome::Failed,
        ..txn(1, &[append(5, 1)])
    };
    let history = history(vec![failed, txn(2, &[read(5, &[1])])]);
    assert_found(&history, Anomaly::AbortedRead, Level::Serializable);
}

#[test]
fn g1b_read_of_a_part_of_a_transaction() {
    let history = history(vec![
        txn(1, &[append(5, 1), append(5, 2)]),
        txn(2, &[read(5, &[1])]),
        txn(3, &[read(5, &[1, 2])]),
    ]);
    let found = check(&history, Level::Serializable).anomalies();
    assert!(found.contains(&Anomaly::IntermediateRead), "{found:?}");
}

#[test]
fn g1c_two_transactions_that_read_each_other() {
    let history = history(vec![
        txn(1, &[append(5, 1), read(6, &[2])]),
        txn(2, &[append(6, 2), read(5, &[1])]),
    ]);
    assert_found(&history, Anomaly::CircularInformation, Level::Serializable);
}

#[test]
fn g_single_lost_update() {
    let history = history(vec![
        txn(1, &[read(5, &[]), append(5, 1)]),
        txn(2, &[read(5, &[]), append(5, 2)]),
        txn(3, &[read(5, &[1, 2])]),
    ]);
    assert_found(&history, Anomaly::SingleAntiDependency, Level::Serializable);
}

#[test]
fn g_single_read_of_two_states() {
    let history = history(vec![
        txn(1, &[append(5, 1), append(6, 2)]),
        txn(2, &[read(5, &[1]), read(6, &[])]),
        txn(3, &[read(6, &[2])]),
    ]);
    assert_found(&history, Anomaly::SingleAntiDependency, Level::Serializable);
}

#[test]
fn g2_write_skew() {
    let history = history(vec![
        txn(1, &[read(5, &[]), read(6, &[]), append(5, 1)]),
        txn(2, &[read(5, &[]), read(6, &[]), append(6, 2)]),
        txn(3, &[read(5, &[1]), read(6, &[2])]),
    ]);
    assert_found(&history, Anomaly::AntiDependency, Level::Serializable);
}

#[test]
fn g2_is_seen_without_any_later_read() {
    let history = history(vec![
        txn(1, &[read(5, &[]), read(6, &[]), append(5, 1)]),
        txn(2, &[read(5, &[]), read(6, &[]), append(6, 2)]),
    ]);
    assert_found(&history, Anomaly::AntiDependency, Level::Serializable);
}

/// The history of a client that sees another region's write and then goes to a region where
/// that write is not executed yet.
#[test]
fn a_session_that_sees_time_run_backwards() {
    let mut transactions = vec![
        txn(1, &[append(5, 1), append(6, 2)]),
        txn(2, &[read(6, &[2])]),
        txn(3, &[read(5, &[])]),
        txn(4, &[read(5, &[1])]),
    ];
    // The writer runs all the time: real time says nothing about it.
    transactions[0].completed = 100;
    transactions[1].session = 50;
    transactions[2].session = 50;
    let stale_session = history(transactions.clone());
    assert_found(&stale_session, Anomaly::SessionOrder, Level::Session);
    let text = check(&stale_session, Level::Session).to_string();
    assert!(
        text.contains("T2 before T3: session: T3 follows T2 in session 50"),
        "{text}"
    );

    // The same by two clients breaks no session.
    transactions[2].session = 51;
    let inverted = history(transactions);
    assert_found(&inverted, Anomaly::RealTimeOrder, Level::Strict);
    let text = check(&inverted, Level::Strict).to_string();
    assert!(
        text.contains("T2 before T3: time: T2 completed at 25, T3 was invoked at 30"),
        "{text}"
    );
}

#[test]
fn a_stale_read_is_no_violation_while_the_write_is_under_way() {
    let mut transactions = vec![txn(1, &[append(5, 1)]), txn(2, &[read(5, &[])])];
    let stale = history(transactions.clone());
    assert_found(&stale, Anomaly::RealTimeOrder, Level::Strict);
    transactions[0].completed = transactions[1].invoked;
    assert_valid(&history(transactions));
}

#[test]
fn an_unknown_transaction_may_take_effect_late_or_never() {
    let unknown = Transaction {
        outcome: Outcome::Unknown,
        ..txn(1, &[append(5, 1)])
    };
    let read_late = vec![
        unknown.clone(),
        txn(2, &[read(5, &[])]),
        txn(3, &[read(5, &[1])]),
    ];
    assert_valid(&history(read_late));
    assert_valid(&history(vec![unknown, txn(2, &[read(5, &[])])]));
}

#[test]
fn an_unknown_transaction_does_not_take_effect_before_it_is_sent() {
    let mut unknown = Transaction {
        outcome: Outcome::Unknown,
        ..txn(2, &[append(5, 1)])
    };
    unknown.operations[0] = manxdb_checker::append::Operation::Append {
        key: None,
        element: 1,
    };
    let history = history(vec![txn(1, &[read(5, &[1])]), unknown]);
    assert_found(&history, Anomaly::RealTimeOrder, Level::Strict);
}

#[test]
fn acknowledged_appends_are_in_the_end_state_whole_and_once() {
    let whole = vec![
        txn(1, &[append(5, 1), append(6, 2)]),
        txn(2, &[append(5, 3)]),
    ];
    for (end, expected) in [
        (vec![(5, vec![1, 3]), (6, vec![2])], vec![]),
        (vec![(5, vec![1]), (6, vec![2])], vec![Anomaly::LostAppend]),
        (vec![(5, vec![1, 3])], vec![Anomaly::LostAppend]),
        (
            vec![(5, vec![1, 3, 1]), (6, vec![2])],
            vec![Anomaly::Duplicate],
        ),
        (
            vec![(5, vec![1, 3, 9]), (6, vec![2])],
            vec![Anomaly::Invented],
        ),
    ] {
        let mut history = history(whole.clone());
        history.end_state = Some(BTreeMap::from_iter(end));
        let found = check(&history, Level::Serializable).anomalies();
        let found: Vec<Anomaly> = found
            .into_iter()
            .filter(|kind| *kind < Anomaly::DirtyWrite)
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn an_unknown_transaction_takes_effect_whole_or_not_at_all() {
    let unknown = Transaction {
        outcome: Outcome::Unknown,
        ..txn(1, &[append(5, 1), append(6, 2)])
    };
    let mut history = history(vec![unknown]);
    history.end_state = Some(BTreeMap::from([(5, vec![1])]));
    assert_found(&history, Anomaly::LostAppend, Level::Serializable);
    history.end_state = Some(BTreeMap::new());
    assert_valid(&history);
}

#[test]
fn reads_agree_on_one_order() {
    let history = history(vec![
        txn(1, &[append(5, 1)]),
        txn(2, &[append(5, 2)]),
        txn(3, &[read(5, &[1, 2])]),
        txn(4, &[read(5, &[2])]),
    ]);
    let found = check(&history, Level::Serializable).anomalies();
    assert_eq!(found, [Anomaly::IncompatibleOrder]);
}

#[test]
fn a_transaction_sees_its_own_appends_and_one_state() {
    for operations in [
        vec![append(5, 1), read(5, &[])],
        vec![read(5, &[1]), append(5, 1)],
        vec![read(5, &[]), read(5, &[2])],
        vec![append(5, 1), append(5, 3), read(5, &[3, 1])],
    ] {
        let history = history(vec![txn(1, &operations), txn(2, &[append(5, 2)])]);
        let found = check(&history, Level::Serializable).anomalies();
        assert!(found.contains(&Anomaly::Internal), "{operations:?}");
    }
}

#[test]
fn an_element_appended_twice_is_the_tests_own_defect() {
    let history = history(vec![txn(1, &[append(5, 1)]), txn(2, &[append(6, 1)])]);
    let found = check(&history, Level::Serializable).anomalies();
    assert_eq!(found, [Anomaly::Malformed]);
}

/// A cycle as long as the history: nothing recurses, and nothing is quadratic without need.
#[test]
fn a_cycle_through_a_hundred_thousand_transactions_is_found() {
    const LENGTH: u64 = 100_000;
    let mut transactions: Vec<Transaction> = (0..LENGTH)
        .map(|name| {
            let seen: &[u64] = if name == 0 { &[LENGTH] } else { &[name] };
            let from = if name == 0 { LENGTH } else { name };
            txn(name + 1, &[read(from, seen), append(name + 1, name + 1)])
        })
        .collect();
    for transaction in &mut transactions {
        (transaction.invoked, transaction.completed) = (0, 1);
    }
    let verdict = check(&history(transactions), Level::Strict);
    assert_eq!(verdict.anomalies(), [Anomaly::CircularInformation]);
    let proof = &verdict.violations()[0].proof;
    assert_eq!(proof.lines().count() as u64, LENGTH);
}
