//! Whether the replicas of each shard did the same in the same order.
//!
//! Every replica logs each transaction it executes with the timestamp it was ordered at. The
//! logs of one shard must ascend, agree, and end in equal states; and a transaction that touches
//! several shards must stand at one timestamp on all of them, so that merging the logs by
//! timestamp gives one order of everything.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};

/// How much of its shard's order a replica's log has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it: the replica was never away and has caught up.
    Whole,
    /// The beginning: the replica was never away, but may be behind.
    Prefix,
    /// Any part: it took over the state of another replica at least once, and logged nothing for
    /// what was in there.
    Part,
}

/// What one replica did.
#[derive(Debug, Clone)]
pub struct Log<T> {
    /// The shard it is a replica of.
    pub shard: u32,
    /// Its name.
    pub replica: u32,
    /// How much is to be expected.
    pub extent: Extent,
    /// Timestamp and transaction, in the order of execution.
    pub entries: Vec<(T, u64)>,
    /// Digest of its rows after the last entry.
    pub digest: u64,
}

/// Judges the logs of all replicas; what is wrong, in words, at most one finding a log and kind.
#[must_use]
pub fn check<T: Ord + Copy + Debug + Display>(logs: &[Log<T>]) -> Vec<String> {
    check_unless(logs, |_, _| false)
}

/// The same, where a transaction may stand at two timestamps of which `is_moved` says so: the history
/// has to show that there is one order all the same.
#[must_use]
pub fn check_unless<T: Ord + Copy + Debug + Display>(
    logs: &[Log<T>],
    is_moved: impl Fn(T, T) -> bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut shards: BTreeMap<u32, Vec<&Log<T>>> = BTreeMap::new();
    for log in logs {
        shards.entry(log.shard).or_default().push(log);
        check_ascends(log, &mut wrong);
    }
    let mut stamps: BTreeMap<u64, (T, u32)> = BTreeMap::new();
    for (shard, logs) in &shards {
        let order = merge(logs, &mut wrong);
        for log in logs {
            check_extent(log, &order, &mut wrong);
        }
        check_digests(logs, &mut wrong);
        for (timestamp, txn) in order {
            let (other, at) = *stamps.entry(txn).or_insert((timestamp, *shard));
            if other != timestamp && !is_moved(other, timestamp) {
                wrong.push(format!(
                    "T{txn} stands at {other} on shard {at} and at {timestamp} on shard {shard}"
                ));
            }
        }
    }
    wrong
}

fn check_ascends<T: Ord + Copy + Display>(log: &Log<T>, wrong: &mut Vec<String>) {
    if let Some(pair) = log.entries.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
        let ((first, before), (second, after)) = (pair[0], pair[1]);
        wrong.push(format!(
            "replica {} of shard {} executed T{after} at {second} after T{before} at {first}",
            log.replica, log.shard
        ));
    }
}

/// All that any replica of the shard executed, by timestamp.
fn merge<T: Ord + Copy + Display>(logs: &[&Log<T>], wrong: &mut Vec<String>) -> BTreeMap<T, u64> {
    let mut order = BTreeMap::new();
    for log in logs {
        for (timestamp, txn) in &log.entries {
            let known = *order.entry(*timestamp).or_insert(*txn);
            if known != *txn {
                wrong.push(format!(
                    "replica {} of shard {} executed T{txn} at {timestamp}, another one T{known}",
                    log.replica, log.shard
                ));
                break;
            }
        }
    }
    order
}

/// A log that lacks a transaction which another replica executed before the log's end.
fn check_extent<T: Ord + Copy + Display>(
    log: &Log<T>,
    order: &BTreeMap<T, u64>,
    wrong: &mut Vec<String>,
) {
    let expected = match log.extent {
        Extent::Part => return,
        Extent::Whole => order.len(),
        Extent::Prefix => log.entries.len(),
    };
    let mut own = log.entries.iter();
    for (timestamp, txn) in order.iter().take(expected) {
        if own.next().is_none_or(|(at, _)| at != timestamp) {
            wrong.push(format!(
                "replica {} of shard {} did not execute T{txn} at {timestamp} in its place",
                log.replica, log.shard
            ));
            return;
        }
    }
}

/// Replicas whose logs end at the same timestamp have the same rows.
fn check_digests<T: Ord + Copy + Display>(logs: &[&Log<T>], wrong: &mut Vec<String>) {
    let mut ends: BTreeMap<Option<T>, &Log<T>> = BTreeMap::new();
    for log in logs {
        let end = log.entries.last().map(|(timestamp, _)| *timestamp);
        let other = ends.entry(end).or_insert(log);
        if other.digest != log.digest {
            wrong.push(format!(
                "replicas {} and {} of shard {} did the same last and have different rows",
                other.replica, log.replica, log.shard
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(replica: u32, extent: Extent, entries: &[(u32, u64)]) -> Log<u32> {
        Log {
            shard: 0,
            replica,
            extent,
            entries: entries.to_vec(),
            digest: entries
                .last()
                .map_or(0, |(timestamp, _)| (*timestamp).into()),
        }
    }

    const ALL: &[(u32, u64)] = &[(1, 11), (3, 13), (7, 17)];

    fn findings(logs: &[Log<u32>]) -> String {
        check(logs).join("; ")
    }

    #[test]
    fn replicas_that_agree_are_fine_even_when_one_is_behind_or_was_away() {
        let logs = [
            log(0, Extent::Whole, ALL),
            log(1, Extent::Prefix, &ALL[..2]),
            log(2, Extent::Part, &[ALL[0], ALL[2]]),
        ];
        assert_eq!(findings(&logs), "");
    }

    #[test]
    fn a_transaction_stands_at_two_timestamps_only_where_that_is_allowed() {
        let elsewhere = Log {
            shard: 1,
            ..log(3, Extent::Whole, &[(2, 11)])
        };
        let logs = [log(0, Extent::Whole, ALL), elsewhere];
        assert!(findings(&logs).contains("T11 stands at 1"));
        let moved = |one: u32, other: u32| (one, other) == (1, 2);
        assert_eq!(check_unless(&logs, moved), Vec::<String>::new());
        assert_eq!(check_unless(&logs, |one, other| moved(other, one)).len(), 1);
    }

    #[test]
    fn a_log_that_does_not_ascend_is_found() {
        let logs = [log(0, Extent::Part, &[(3, 13), (3, 14)])];
        assert!(findings(&logs).contains("executed T14 at 3 after T13 at 3"));
    }

    #[test]
    fn another_transaction_at_the_same_timestamp_is_found() {
        let logs = [
            log(0, Extent::Whole, ALL),
            log(1, Extent::Whole, &[(1, 11), (3, 99), (7, 17)]),
        ];
        assert!(findings(&logs).contains("executed T99 at 3, another one T13"));
    }

    #[test]
    fn a_transaction_left_out_is_found_unless_the_replica_was_away() {
        let with_gap = |extent| {
            [
                log(0, Extent::Whole, ALL),
                log(1, extent, &[ALL[0], ALL[2]]),
            ]
        };
        for extent in [Extent::Whole, Extent::Prefix] {
            assert!(findings(&with_gap(extent)).contains("did not execute T13 at 3"));
        }
        assert_eq!(findings(&with_gap(Extent::Part)), "");
        let behind = [log(0, Extent::Whole, ALL), log(1, Extent::Whole, &ALL[..2])];
        assert!(findings(&behind).contains("did not execute T17 at 7"));
    }

    #[test]
    fn different_rows_after_the_same_transactions_are_found() {
        let mut logs = [log(0, Extent::Whole, ALL), log(1, Extent::Whole, ALL)];
        logs[1].digest += 1;
        assert!(findings(&logs).contains("different rows"));
    }

    #[test]
    fn one_transaction_at_two_places_is_found() {
        let mut logs = [
            log(0, Extent::Whole, ALL),
            log(0, Extent::Whole, &[(1, 11), (4, 13)]),
        ];
        logs[1].shard = 1;
        assert!(findings(&logs).contains("T13 stands at 3 on shard 0 and at 4 on shard 1"));
    }
}
