//! What is wrong without a cycle.

use std::collections::BTreeMap;

use super::order::Order;
use super::verdict::{Anomaly, Verdict};
use super::{History, Outcome, Read, Transaction, Version, admits, includes};

/// Looks at each transaction by itself, at each session, and at each snapshot.
pub(super) fn judge(history: &History, order: &Order, verdict: &mut Verdict) {
    for transaction in &history.transactions {
        for read in &transaction.reads {
            judge_read(history, order, (transaction, read), verdict);
        }
        judge_writes(transaction, verdict);
    }
    judge_sessions(history, verdict);
    judge_cuts(history, order, verdict);
}

fn judge_read(
    history: &History,
    order: &Order,
    (transaction, read): (&Transaction, &Read),
    verdict: &mut Verdict,
) {
    let (name, key, version) = (transaction.name, read.key, read.version);
    if order.place(key, version).is_none() {
        verdict.note(Anomaly::AbortedRead, || {
            format!("T{name} read {version:?} of key {key}, which is not one of its versions")
        });
        return;
    }
    let written = order.writers.get(&(key, version)).and_then(|txn| {
        let mut writes = history.transactions[*txn].writes.iter();
        writes
            .find(|write| write.key == key)
            .map(|write| write.value)
    });
    let first = || history.first.get(&key).map(|(_, value)| *value);
    let value = read.value;
    if written.or_else(first) != Some(value) {
        verdict.note(Anomaly::ForeignValue, || {
            format!("T{name} read {value} from {version:?} of key {key}, which says {written:?}")
        });
    }
    let snapshot = &transaction.snapshot;
    let is_first = history.first.get(&key).map(|(version, _)| *version) == Some(version);
    let is_admitted = is_first || admits(snapshot, version);
    let newer = order.after(key, version);
    let newer = newer.filter(|newer| admits(snapshot, *newer));
    if !is_admitted || newer.is_some() {
        verdict.note(Anomaly::NotOfSnapshot, || {
            format!("T{name} with {snapshot:?} read {version:?} of key {key}; newer: {newer:?}")
        });
    }
}

/// Whoever writes a record has read the version that it writes upon.
fn judge_writes(transaction: &Transaction, verdict: &mut Verdict) {
    for write in &transaction.writes {
        let mut reads = transaction.reads.iter();
        if !reads.any(|read| (read.key, read.version) == (write.key, write.over)) {
            verdict.note(Anomaly::BlindWrite, || {
                let (name, key, over) = (transaction.name, write.key, write.over);
                format!("T{name} wrote key {key} upon {over:?}, which it had not read")
            });
        }
    }
}

fn judge_sessions(history: &History, verdict: &mut Verdict) {
    let mut former: BTreeMap<u64, &Transaction> = BTreeMap::new();
    for transaction in &history.transactions {
        let Some(former) = former.insert(transaction.session, transaction) else {
            continue;
        };
        let is_done = former.outcome == Outcome::Ok;
        let own = former.version.filter(|_| is_done);
        let has_own = own.is_none_or(|version| admits(&transaction.snapshot, version));
        if !has_own || !includes(&transaction.snapshot, &former.snapshot) {
            verdict.note(Anomaly::SessionOrder, || {
                let (name, earlier) = (transaction.name, former.name);
                let session = transaction.session;
                format!("T{name} sees less than T{earlier} before it in session {session}")
            });
        }
    }
}

/// A snapshot has all that the last writer of each session in it had seen; what that one had seen
/// includes what its earlier ones had.
fn judge_cuts(history: &History, order: &Order, verdict: &mut Verdict) {
    let effective = |(txn, _): &(usize, &Transaction)| order.effective[*txn];
    let written = history.transactions.iter().enumerate().filter(effective);
    let versions: BTreeMap<Version, &Transaction> = written
        .filter_map(|(_, transaction)| Some((transaction.version?, transaction)))
        .collect();
    for transaction in &history.transactions {
        for (writer, number) in &transaction.snapshot {
            let (writer, number) = (*writer, *number);
            let Some(seen) = versions.get(&Version { writer, number }) else {
                continue;
            };
            if !includes(&transaction.snapshot, &seen.snapshot) {
                verdict.note(Anomaly::BrokenCut, || {
                    let (name, other) = (transaction.name, seen.name);
                    format!("T{name} sees T{other}, and not all that T{other} had seen")
                });
            }
        }
    }
}
