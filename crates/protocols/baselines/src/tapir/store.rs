//! The rows of one replica with their versions, and until when they were read.
//!
//! Of each key only the newest version is kept: transactions read the newest and may not commit
//! when a newer one is there, so older ones are never asked for.

use std::collections::BTreeMap;

use manxdb_core::check::ensure;
use manxdb_core::{Digest, Work};
use manxdb_storage::KeyRange;
use manxdb_txn::rows::Rows;

use super::message::{Read, ReadWriteSet, Timestamp};

/// Ranges of which it is known until when they were read; of others, since when they were not.
const RANGES_MAX: usize = 32;

/// Versions of the keys that were written since the start, deleted ones too.
#[derive(Debug, Default)]
pub(super) struct Versions(BTreeMap<Vec<u8>, Timestamp>);

impl Versions {
    /// Of one key.
    pub fn of(&self, key: &[u8]) -> Timestamp {
        self.0.get(key).copied().unwrap_or_default()
    }

    /// Of the keys of a range, ascending.
    pub fn seen_in(&self, range: &KeyRange) -> Vec<(Vec<u8>, Timestamp)> {
        if range.is_empty() {
            return Vec::new();
        }
        let bounds = (range.start.clone(), range.end.clone());
        let all = self.0.range(bounds);
        all.map(|(key, version)| (key.clone(), *version)).collect()
    }

    /// A read of what is there now.
    pub fn read(&self, range: KeyRange) -> Read {
        Read {
            seen: self.seen_in(&range),
            range,
        }
    }

    /// Whether something newer than what was read is there. What was read and is not here yet has
    /// committed: its commit is on its way.
    fn overtook(&self, read: &Read) -> bool {
        let seen = |key: &[u8]| {
            let place = read
                .seen
                .binary_search_by(|(other, _)| other.as_slice().cmp(key));
            place
                .ok()
                .map_or(Timestamp::default(), |at| read.seen[at].1)
        };
        if read.range.is_empty() {
            return false;
        }
        let bounds = (read.range.start.clone(), read.range.end.clone());
        let mut here = self.0.range(bounds);
        here.any(|(key, version)| *version > seen(key))
    }
}

/// Rows, versions and last reads.
pub(super) struct Store {
    pub rows: Rows,
    pub versions: Versions,
    keys_read: BTreeMap<Vec<u8>, Timestamp>,
    /// The oldest reads are forgotten first.
    ranges_read: Vec<(KeyRange, Timestamp)>,
    /// Any key may have been read up to here, by a range that was forgotten.
    all_read: Timestamp,
    /// Transactions that committed here.
    committed: u64,
    /// Of all versions.
    versions_digest: u64,
}

impl Store {
    pub fn new(rows: Rows) -> Self {
        Self {
            rows,
            versions: Versions::default(),
            keys_read: BTreeMap::new(),
            ranges_read: Vec::new(),
            all_read: Timestamp::default(),
            committed: 0,
            versions_digest: 0,
        }
    }

    /// Whether something that a transaction read has been overwritten.
    pub fn is_stale(&self, sets: &ReadWriteSet) -> bool {
        sets.reads.iter().any(|read| self.versions.overtook(read))
    }

    /// The newest of those that wrote or read what a transaction writes.
    pub fn newest_access(&self, sets: &ReadWriteSet) -> Timestamp {
        let of_key = |key: &Vec<u8>| {
            let read = self.keys_read.get(key).copied().unwrap_or_default();
            let ranges = self.ranges_read.iter();
            let ranges = ranges.filter(|(range, _)| range.contains(key));
            let in_range = ranges.map(|(_, read)| *read).max().unwrap_or_default();
            self.versions.of(key).max(read).max(in_range)
        };
        let newest = sets.writes.keys().map(of_key).max();
        newest.map_or(Timestamp::default(), |newest| newest.max(self.all_read))
    }

    /// A transaction commits. Commits come in any order: a newer version stays.
    pub fn commit(&mut self, sets: &ReadWriteSet, at: Timestamp) {
        assert!(at > sets.newest_seen(), "T1: a transaction reads its past");
        self.committed += 1;
        for read in &sets.reads {
            self.note_read(&read.range, at);
        }
        for (key, value) in &sets.writes {
            let version = self.versions.0.entry(key.clone()).or_default();
            assert!(*version != at, "T2: a version is written once");
            if *version < at {
                let changed = digest_of(at).wrapping_sub(digest_of(*version));
                self.versions_digest = self.versions_digest.wrapping_add(changed);
                *version = at;
                self.rows.write(key, value.clone());
            }
        }
    }

    fn note_read(&mut self, range: &KeyRange, at: Timestamp) {
        if let (std::ops::Bound::Included(start), std::ops::Bound::Included(end)) =
            (&range.start, &range.end)
            && start == end
        {
            let read = self.keys_read.entry(start.clone()).or_default();
            *read = at.max(*read);
            return;
        }
        let known = self
            .ranges_read
            .iter_mut()
            .find(|(other, _)| other == range);
        if let Some((_, read)) = known {
            *read = at.max(*read);
            return;
        }
        self.ranges_read.push((range.clone(), at));
        if self.ranges_read.len() > RANGES_MAX {
            let all = self.ranges_read.iter().enumerate();
            let oldest = all
                .min_by_key(|(_, (_, read))| *read)
                .map(|(place, _)| place);
            let (_, forgotten) = self.ranges_read.swap_remove(oldest.unwrap_or(0));
            self.all_read = self.all_read.max(forgotten);
        }
    }

    /// What it costs to look at a transaction's sets.
    pub fn work_of(sets: &ReadWriteSet) -> Work {
        let keys = sets.reads.len() + sets.writes.len();
        Work {
            keys: u32::try_from(keys).unwrap_or(u32::MAX),
            ..Work::default()
        }
    }

    /// Equal for replicas that committed the same, in whatever order.
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest.number(self.committed).number(self.rows.digest());
        digest.number(self.versions_digest);
        digest.value()
    }

    pub fn check(&self) -> Result<(), String> {
        ensure(self.ranges_read.len() <= RANGES_MAX, || {
            format!("T3: {} ranges are kept", self.ranges_read.len())
        })?;
        let mut ranges = self.ranges_read.iter();
        ensure(ranges.all(|(_, read)| *read > Timestamp::default()), || {
            "T4: a range was read before the start".into()
        })
    }
}

fn digest_of(version: Timestamp) -> u64 {
    let mut digest = Digest::default();
    digest.number(version.time).number(version.client.into());
    digest.value()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use manxdb_txn::rows::NoRows;

    fn at(time: u64) -> Timestamp {
        Timestamp { time, client: 1 }
    }

    fn writes(key: u8, value: u8) -> ReadWriteSet {
        ReadWriteSet {
            writes: [(vec![key], Some(vec![value]))].into(),
            ..ReadWriteSet::default()
        }
    }

    fn reads(store: &Store, range: KeyRange) -> ReadWriteSet {
        ReadWriteSet {
            reads: vec![store.versions.read(range)],
            ..ReadWriteSet::default()
        }
    }

    #[test]
    fn commits_in_any_order_leave_the_newest() {
        let replica = |order: [u64; 3]| {
            let mut store = Store::new(Rows::new(Arc::new(NoRows)));
            for time in order {
                let value = u8::try_from(time).unwrap();
                store.commit(&writes(7, value), at(time));
            }
            (store.rows.get(&[7]), store.digest())
        };
        let expected = replica([1, 2, 3]);
        assert_eq!(expected.0, Some(vec![3]));
        for order in [[3, 2, 1], [2, 3, 1], [1, 3, 2]] {
            assert_eq!(replica(order), expected);
        }
    }

    #[test]
    fn a_read_is_stale_once_a_newer_version_is_there() {
        let mut store = Store::new(Rows::new(Arc::new(NoRows)));
        store.commit(&writes(7, 1), at(1));
        let point = reads(&store, KeyRange::point(&[7]));
        let range = reads(&store, KeyRange::prefix(&[]));
        store.commit(&writes(9, 1), at(2));
        assert!(!store.is_stale(&point), "another key");
        assert!(store.is_stale(&range), "a row has appeared in the range");
        store.commit(&writes(7, 2), at(3));
        assert!(store.is_stale(&point));
        // A replica that has not heard of the version yet finds nothing newer.
        let behind = Store::new(Rows::new(Arc::new(NoRows)));
        assert!(!behind.is_stale(&reads(&store, KeyRange::point(&[7]))));
    }

    #[test]
    fn a_write_comes_behind_reads_also_those_that_were_forgotten() {
        let mut store = Store::new(Rows::new(Arc::new(NoRows)));
        let read = reads(&store, KeyRange::prefix(&[7]));
        store.commit(&read, at(5));
        assert_eq!(store.newest_access(&writes(7, 1)), at(5));
        assert_eq!(store.newest_access(&writes(8, 1)), Timestamp::default());
        for other in 0..u8::try_from(RANGES_MAX).unwrap() {
            let read = reads(&store, KeyRange::prefix(&[100, other]));
            store.commit(&read, at(10 + u64::from(other)));
        }
        assert_eq!(store.newest_access(&writes(7, 1)), at(5));
        assert_eq!(store.check(), Ok(()));
        let read = reads(&store, KeyRange::point(&[9]));
        store.commit(&read, at(99));
        assert_eq!(store.newest_access(&writes(9, 1)), at(99));
    }
}
