//! Whether every call ended as its client was told.

use std::collections::{BTreeMap, BTreeSet};

/// What a client was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The transaction took effect.
    Acknowledged,
    /// It did not and never will.
    Refused,
    /// Its fate could not be learned; the client gave up when the protocol allowed it to.
    Unknown,
    /// Nothing: the client still waits.
    Open,
}

/// A call of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The transaction.
    pub txn: u64,
    /// The shards it touches.
    pub shards: Vec<u32>,
    /// What its client was told.
    pub end: End,
}

/// Judges calls against the transactions that each shard executed in the end; what is wrong, in
/// words.
///
/// With `healed`, faults are over and there was time enough: then no call may be open.
/// Executed on a part of its shards only is wrong for every transaction.
#[must_use]
pub fn check(calls: &[Call], executed: &BTreeMap<u32, BTreeSet<u64>>, healed: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut known = BTreeSet::new();
    for call in calls {
        known.insert(call.txn);
        let has_it = |shard: &&u32| {
            executed
                .get(*shard)
                .is_some_and(|all| all.contains(&call.txn))
        };
        let (with, without): (Vec<u32>, Vec<u32>) =
            call.shards.iter().partition(|shard| has_it(shard));
        let txn = call.txn;
        match call.end {
            End::Acknowledged if !without.is_empty() => wrong.push(format!(
                "T{txn} was acknowledged and is missing on shards {without:?}"
            )),
            End::Refused if !with.is_empty() => wrong.push(format!(
                "T{txn} was refused and took effect on shards {with:?}"
            )),
            End::Open if healed => wrong.push(format!("T{txn} got no answer")),
            _ if healed && !with.is_empty() && !without.is_empty() => wrong.push(format!(
                "T{txn} took effect on shards {with:?} and not on {without:?}"
            )),
            _ => {}
        }
    }
    for (shard, transactions) in executed {
        if let Some(txn) = transactions.difference(&known).next() {
            wrong.push(format!(
                "shard {shard} executed T{txn}, which nobody called"
            ));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(txn: u64, end: End) -> Call {
        let shards = vec![0, 1];
        Call { txn, shards, end }
    }

    fn findings(end: End, on: &[u32], healed: bool) -> Vec<String> {
        let executed = on.iter().map(|shard| (*shard, BTreeSet::from([7])));
        check(&[call(7, end)], &executed.collect(), healed)
    }

    #[test]
    fn what_clients_were_told_is_true() {
        assert_eq!(findings(End::Acknowledged, &[0, 1], true), [""; 0]);
        assert_eq!(findings(End::Refused, &[], true), [""; 0]);
        assert_eq!(findings(End::Unknown, &[], true), [""; 0]);
        assert_eq!(findings(End::Unknown, &[0, 1], true), [""; 0]);
        assert_eq!(findings(End::Open, &[0], false), [""; 0]);
    }

    #[test]
    fn what_is_not_true_is_found() {
        for (end, on, words) in [
            (End::Acknowledged, &[0][..], "missing on shards [1]"),
            (End::Refused, &[1], "took effect on shards [1]"),
            (End::Open, &[0, 1], "got no answer"),
            (End::Unknown, &[0], "not on [1]"),
        ] {
            let found = findings(end, on, true);
            assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
        }
        let executed = BTreeMap::from([(0, BTreeSet::from([9]))]);
        let found = check(&[], &executed, true);
        assert!(found[0].contains("executed T9, which nobody called"));
    }
}
