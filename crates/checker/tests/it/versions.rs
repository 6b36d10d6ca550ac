//! Each way to break a promise about versions, planted: found under its name, at the levels that
//! forbid it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;

use manxdb_checker::versions::{
    Anomaly, History, Level, Outcome, Read, Snapshot, Transaction, Version, Write, check,
};

const FIRST: Version = version(0, 1);

const fn version(writer: u64, number: u64) -> Version {
    Version { writer, number }
}

/// What a version says.
fn value(version: Version) -> u64 {
    version.writer * 100 + version.number
}

fn snapshot(numbers: &[(u64, u64)]) -> Snapshot {
    numbers.iter().copied().chain([(0, 1)]).collect()
}

/// A transaction of session `writer` that reads versions and writes upon some of them.
fn txn(own: Version, sees: &[(u64, u64)], reads: &[(u64, Version)], writes: &[u64]) -> Transaction {
    let read = |(key, version): &(u64, Version)| Read {
        key: *key,
        version: *version,
        value: value(*version),
    };
    let write = |key: &u64| Write {
        key: *key,
        over: reads.iter().find(|(read, _)| read == key).unwrap().1,
        value: value(own),
    };
    Transaction {
        name: value(own),
        session: own.writer,
        outcome: Outcome::Ok,
        version: (!writes.is_empty()).then_some(own),
        snapshot: snapshot(sees),
        reads: reads.iter().map(read).collect(),
        writes: writes.iter().map(write).collect(),
    }
}

/// Records 5 and 6, which end with these versions.
fn history(transactions: Vec<Transaction>, five: Version, six: Version) -> History {
    let first = (FIRST, value(FIRST));
    History {
        transactions,
        first: BTreeMap::from([(5, first), (6, first)]),
        last: BTreeMap::from([(5, five), (6, six)]),
    }
}

/// Asserts that exactly this is found, from a level on.
fn assert_found(history: &History, anomalies: &[Anomaly], level: Level) {
    for at in [Level::Snapshot, Level::Serializable] {
        let verdict = check(history, at);
        let expected = if at >= level { anomalies } else { &[] };
        assert_eq!(verdict.anomalies(), expected, "{verdict}");
    }
}

/// One after another, and a reader of both.
fn fine() -> History {
    history(
        vec![
            txn(version(1, 1), &[], &[(5, FIRST)], &[5]),
            txn(
                version(2, 1),
                &[(1, 1)],
                &[(5, version(1, 1)), (6, FIRST)],
                &[6],
            ),
            txn(version(1, 2), &[(1, 1)], &[(5, version(1, 1))], &[5]),
            txn(
                version(3, 1),
                &[(1, 1), (2, 1)],
                &[(5, version(1, 1)), (6, version(2, 1))],
                &[],
            ),
        ],
        version(1, 2),
        version(2, 1),
    )
}

#[test]
fn snapshots_of_one_time_are_fine() {
    let verdict = check(&fine(), Level::Serializable);
    assert!(verdict.is_valid(), "{verdict}");
    assert_eq!(verdict.to_string(), "valid at level Serializable");
}

#[test]
fn a_lost_update_is_found() {
    let both = |own| txn(own, &[], &[(5, FIRST)], &[5]);
    let lost = history(
        vec![both(version(1, 1)), both(version(2, 1))],
        version(2, 1),
        FIRST,
    );
    let found = check(&lost, Level::Snapshot).anomalies();
    assert_eq!(found, [Anomaly::LostWrite]);
}

#[test]
fn what_is_acknowledged_and_not_there_is_found() {
    let mut lost = fine();
    lost.last.insert(5, version(1, 1));
    assert_found(&lost, &[Anomaly::LostWrite], Level::Snapshot);
    // Had nobody said that it is there, it need not be.
    lost.transactions[2].outcome = Outcome::Unknown;
    assert_found(&lost, &[], Level::Snapshot);
}

#[test]
fn half_a_transaction_is_found() {
    let mut half = txn(version(1, 1), &[], &[(5, FIRST), (6, FIRST)], &[5, 6]);
    half.outcome = Outcome::Unknown;
    let half = history(vec![half], version(1, 1), FIRST);
    assert_found(&half, &[Anomaly::HalfCommit], Level::Snapshot);
}

#[test]
fn a_write_upon_what_was_not_read_is_found() {
    let mut blind = fine();
    blind.transactions[2].reads.clear();
    assert_found(&blind, &[Anomaly::BlindWrite], Level::Snapshot);
}

#[test]
fn versions_of_transactions_that_failed_are_found() {
    let mut aborted = fine();
    aborted.transactions[0].outcome = Outcome::Failed;
    let found = check(&aborted, Level::Snapshot).anomalies();
    assert!(found.contains(&Anomaly::AbortedRead), "{found:?}");
    let mut unknown = fine();
    unknown.transactions[3].reads[1].version = version(2, 7);
    assert_found(&unknown, &[Anomaly::AbortedRead], Level::Snapshot);
}

#[test]
fn a_value_that_its_version_never_had_is_found() {
    let mut foreign = fine();
    foreign.transactions[3].reads[0].value += 1;
    assert_found(&foreign, &[Anomaly::ForeignValue], Level::Snapshot);
}

#[test]
fn a_read_of_another_time_is_found() {
    let mut newer = fine();
    newer.transactions[3].reads[0] = Read {
        key: 5,
        version: version(1, 2),
        value: value(version(1, 2)),
    };
    assert_found(&newer, &[Anomaly::NotOfSnapshot], Level::Snapshot);
    let mut older = fine();
    older.transactions[3].snapshot.insert(1, 2);
    assert_found(&older, &[Anomaly::NotOfSnapshot], Level::Snapshot);
}

#[test]
fn a_snapshot_that_is_no_cut_is_found() {
    let mut torn = fine();
    torn.transactions[3].snapshot.remove(&1);
    torn.transactions[3].reads.remove(0);
    assert_found(&torn, &[Anomaly::BrokenCut], Level::Snapshot);
}

#[test]
fn a_session_that_goes_back_is_found() {
    let mut back = fine();
    back.transactions[2].session = 3;
    back.transactions[3].snapshot.remove(&2);
    back.transactions[3].reads.remove(1);
    // It does not see its own: that of the transaction before it.
    assert_found(&back, &[Anomaly::SessionOrder], Level::Snapshot);
}

#[test]
fn cycles_are_named_by_what_they_need() {
    let (one, two) = (version(1, 1), version(2, 1));
    // Two records are written in two orders.
    let first = txn(one, &[(2, 1)], &[(5, FIRST), (6, two)], &[5, 6]);
    let second = txn(two, &[(1, 1)], &[(5, one), (6, FIRST)], &[5, 6]);
    let found = check(&history(vec![first, second], two, one), Level::Snapshot).anomalies();
    assert!(found.contains(&Anomaly::DirtyWrite), "{found:?}");
    // Each has read what the other one wrote.
    let first = txn(one, &[(2, 1)], &[(5, FIRST), (6, two)], &[5]);
    let second = txn(two, &[(1, 1)], &[(5, one), (6, FIRST)], &[6]);
    let found = check(&history(vec![first, second], one, two), Level::Snapshot).anomalies();
    let expected = [Anomaly::BrokenCut, Anomaly::CircularInformation];
    assert_eq!(found, expected);
    // The reader has seen one of two writes.
    let writer = txn(one, &[], &[(5, FIRST), (6, FIRST)], &[5, 6]);
    let reader = txn(two, &[(1, 1)], &[(5, one), (6, FIRST)], &[]);
    let found = check(&history(vec![writer, reader], one, one), Level::Snapshot).anomalies();
    assert_eq!(
        found,
        [Anomaly::NotOfSnapshot, Anomaly::SingleAntiDependency]
    );
}

#[test]
fn write_skew_is_counted_or_found() {
    let (one, two) = (version(1, 1), version(2, 1));
    let both = [(5, FIRST), (6, FIRST)];
    let skew = history(
        vec![txn(one, &[], &both, &[5]), txn(two, &[], &both, &[6])],
        one,
        two,
    );
    assert_found(&skew, &[Anomaly::AntiDependency], Level::Serializable);
    assert_eq!(check(&skew, Level::Snapshot).skews(), 1);
    let told = check(&skew, Level::Serializable).to_string();
    assert!(
        told.contains("T101 before T201: read what was before it"),
        "{told}"
    );
    assert_eq!(check(&fine(), Level::Snapshot).skews(), 0);
}

#[test]
fn versions_that_follow_each_other_in_a_circle_are_found() {
    let (one, two) = (version(1, 1), version(2, 1));
    let first = txn(one, &[(2, 1)], &[(5, two)], &[5]);
    let second = txn(two, &[(1, 1)], &[(5, one)], &[5]);
    let found = check(&history(vec![first, second], one, FIRST), Level::Snapshot).anomalies();
    assert!(found.contains(&Anomaly::DirtyWrite), "{found:?}");
}
