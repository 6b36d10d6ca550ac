//! The chain of each record's versions, and who took effect.

use std::collections::{BTreeMap, BTreeSet};

use super::verdict::{Anomaly, Verdict};
use super::{History, Key, Outcome, Version};

/// What follows from the writes and from what there is at the end.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The versions of each record, the first one first.
    pub(super) chains: BTreeMap<Key, Vec<Version>>,
    /// Who wrote a version of a record.
    pub(super) writers: BTreeMap<(Key, Version), usize>,
    /// Transactions that took effect.
    pub(super) effective: Vec<bool>,
}

/// Walks every record's versions back from the last one.
pub(super) fn find(history: &History, verdict: &mut Verdict) -> Order {
    let mut order = Order::default();
    order.collect_writers(history);
    for (key, last) in &history.last {
        let chain = order.walk(history, *key, *last, verdict);
        order.chains.insert(*key, chain);
    }
    order.find_effects(history, verdict);
    order
}

impl Order {
    /// Where a version stands in its record's chain.
    pub(super) fn place(&self, key: Key, version: Version) -> Option<usize> {
        let chain = self.chains.get(&key)?;
        chain.iter().position(|found| *found == version)
    }

    /// The version of a record that was put upon another one.
    pub(super) fn after(&self, key: Key, version: Version) -> Option<Version> {
        let place = self.place(key, version)?;
        self.chains.get(&key)?.get(place + 1).copied()
    }

    /// What failed has left its number to others.
    fn collect_writers(&mut self, history: &History) {
        for (txn, transaction) in history.transactions.iter().enumerate() {
            let Some(version) = transaction.version else {
                continue;
            };
            for write in &transaction.writes {
                if transaction.outcome != Outcome::Failed {
                    self.writers.insert((write.key, version), txn);
                }
            }
        }
    }

    fn walk(
        &self,
        history: &History,
        key: Key,
        last: Version,
        verdict: &mut Verdict,
    ) -> Vec<Version> {
        let first = history.first.get(&key).map(|(version, _)| *version);
        let mut chain = vec![last];
        let mut met = BTreeSet::from([last]);
        let mut at = last;
        while Some(at) != first {
            let Some(txn) = self.writers.get(&(key, at)) else {
                verdict.note(Anomaly::AbortedRead, || {
                    format!(
                        "key {key} has version {at:?}, which nobody wrote who may have committed"
                    )
                });
                break;
            };
            let writes = &history.transactions[*txn].writes;
            let over = writes.iter().find(|write| write.key == key);
            let Some(over) = over
                .map(|write| write.over)
                .filter(|over| met.insert(*over))
            else {
                verdict.note(Anomaly::DirtyWrite, || {
                    format!("the versions of key {key} go round in a circle at {at:?}")
                });
                break;
            };
            chain.push(over);
            at = over;
        }
        chain.reverse();
        chain
    }

    fn find_effects(&mut self, history: &History, verdict: &mut Verdict) {
        for transaction in &history.transactions {
            let is_there = |key| {
                let version = transaction.version;
                version.is_some_and(|version| self.place(key, version).is_some())
            };
            let keys = transaction.writes.iter().map(|write| write.key);
            let (there, missing): (Vec<Key>, Vec<Key>) = keys.partition(|key| is_there(*key));
            let name = transaction.name;
            let is_ok = transaction.outcome == Outcome::Ok;
            let is_live = is_ok || transaction.outcome == Outcome::Unknown;
            if is_ok && !missing.is_empty() {
                verdict.note(Anomaly::LostWrite, || {
                    format!("T{name} is acknowledged, and not there in {missing:?}")
                });
            } else if is_live && !there.is_empty() && !missing.is_empty() {
                verdict.note(Anomaly::HalfCommit, || {
                    format!("T{name} is there in {there:?}, and not in {missing:?}")
                });
            }
            self.effective.push(is_ok || (is_live && !there.is_empty()));
        }
    }
}
