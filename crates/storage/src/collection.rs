//! Which old versions a compaction may drop. Pure: the local engine and a remote compaction
//! worker run the very same code.
//!
//! A compaction feeds the records it merges in physical order: keys ascending, of one key the
//! newest version first. Given the watermark `w` (no reader asks below it any more):
//!
//! * a version above `w` stays: some reader may still tell it from its neighbours;
//! * of the versions at or below `w`, the newest one stays: every reader at or above `w` that
//!   finds nothing newer sees it;
//! * all older ones go: the one just kept hides them from every reader.
//!
//! The rules hold for any subset of the files: dropping a version is justified by a newer one
//! at or below `w` that this very compaction has seen and kept.
//!
//! A delete that is the newest version at or below `w` reads like an absent key, so it could go
//! too, but only if no older version of its key exists anywhere outside the compaction: it would
//! come back to life. That is certain only when the compaction holds *every* file of the store
//! and feeds them to *one* collector ([`Scope::Whole`]). Younger files and memtables cannot hold
//! an older version, because versions are written in ascending order. Splitting a whole
//! compaction into parallel key ranges would break this (a split may fall between two versions
//! of one key), so the engine keeps sub-compactions at one; a worker that splits must say
//! [`Scope::Part`]. Such a delete met by a part is told apart ([`VersionVerdict::KeepDelete`]), so that
//! the engine can look for older versions in the whole store.
//!
//! Beside versions go rows that their owner has given up ([`crate::dead_rows`]), as if they had
//! never been there: what is decided about other versions of the key does not rest on them.

use crate::dead_rows::{DeadIndex, DeadRows};
use crate::model::Version;
use crate::physical;

/// How much of the store a compaction sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Some files: older versions of a key may be elsewhere.
    Part,
    /// Every file, fed to one collector.
    Whole,
}

impl Scope {
    /// The scope of a compaction of every file, or not.
    #[must_use]
    pub fn of(is_full: bool) -> Self {
        if is_full { Self::Whole } else { Self::Part }
    }
}

/// What to do with one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionVerdict {
    /// A reader may need it.
    Keep,
    /// A delete no reader needs, kept only because older versions may be outside this compaction.
    KeepDelete,
    /// No reader can see it.
    Drop,
}

/// Where the collector stands among the versions of the current key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Only versions above the watermark so far.
    Above,
    /// The newest version at or below the watermark was met: the rest is hidden by it.
    Newest,
}

/// Decides record by record; one for each compaction.
#[derive(Debug)]
pub struct Collector {
    watermark: Version,
    scope: Scope,
    prefix: Vec<u8>,
    seen: Seen,
    dead: DeadIndex,
}

impl Collector {
    /// A collector for one compaction that keeps what readers at or above `watermark` can see.
    #[must_use]
    pub fn new(watermark: Version, scope: Scope) -> Self {
        Self {
            watermark,
            scope,
            prefix: Vec::new(),
            seen: Seen::Above,
            dead: DeadIndex::default(),
        }
    }

    /// It drops what of `dead` no reader at or above its watermark asks for, too.
    #[must_use]
    pub fn dropping(mut self, dead: &DeadRows) -> Self {
        assert!(self.prefix.is_empty(), "a collector has judged nothing yet");
        self.dead = DeadIndex::new(dead, self.watermark);
        self
    }

    /// Judges the next record in physical order. Records it cannot read are kept.
    pub fn judge(&mut self, physical_key: &[u8], value: &[u8]) -> VersionVerdict {
        let Some((prefix, version)) = physical::split(physical_key) else {
            return VersionVerdict::Keep;
        };
        if prefix != self.prefix {
            self.prefix.clear();
            self.prefix.extend_from_slice(prefix);
            self.seen = Seen::Above;
            self.dead.key(prefix);
        }
        if version > self.watermark {
            return VersionVerdict::Keep;
        }
        if self.dead.is_dead(physical_key, version, value) {
            return VersionVerdict::Drop;
        }
        match self.seen {
            Seen::Newest => VersionVerdict::Drop,
            Seen::Above => {
                self.seen = Seen::Newest;
                match (physical::is_delete(value), self.scope) {
                    (Some(true), Scope::Whole) => VersionVerdict::Drop,
                    (Some(true), Scope::Part) => VersionVerdict::KeepDelete,
                    _ => VersionVerdict::Keep,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_rows::{DroppedPrefix, ExpiredRows};
    use crate::physical::Record;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Store = BTreeMap<Vec<u8>, Vec<u8>>;

    fn put(store: &mut Store, key: &[u8], version: u64, record: Record<'_>) {
        let physical_key = physical::key(key, Version(version));
        let mut value = Vec::new();
        physical::encode_value(&physical_key, record, &mut value);
        store.insert(physical_key, value);
    }

    /// Versions of `key` that survive compacting all of `store`.
    fn survivors(store: &Store, watermark: u64, scope: Scope) -> Vec<u64> {
        let mut collector = Collector::new(Version(watermark), scope);
        store
            .iter()
            .filter(|(key, value)| collector.judge(key, value) != VersionVerdict::Drop)
            .map(|(key, _)| physical::split(key).unwrap().1.0)
            .collect()
    }

    #[test]
    fn versions_above_the_watermark_and_the_newest_below_it_stay() {
        let mut store = Store::new();
        for version in [1, 3, 5, 7, 9] {
            put(&mut store, b"row", version, Record::Put(b"x"));
        }
        assert_eq!(survivors(&store, 6, Scope::Part), [9, 7, 5]);
        assert_eq!(survivors(&store, 5, Scope::Part), [9, 7, 5]);
        assert_eq!(survivors(&store, 0, Scope::Part), [9, 7, 5, 3, 1]);
        assert_eq!(survivors(&store, 100, Scope::Part), [9]);
    }

    #[test]
    fn a_delete_goes_only_when_the_whole_store_is_compacted() {
        let mut store = Store::new();
        put(&mut store, b"row", 1, Record::Put(b"x"));
        put(&mut store, b"row", 2, Record::Delete);
        assert_eq!(survivors(&store, 5, Scope::Part), [2]);
        assert_eq!(survivors(&store, 5, Scope::Whole), [] as [u64; 0]);
        assert_eq!(survivors(&store, 1, Scope::Whole), [2, 1]);
    }

    #[test]
    fn records_of_the_engine_and_unreadable_ones_stay() {
        let mut collector = Collector::new(Version::MAX, Scope::Whole);
        assert_eq!(
            collector.judge(physical::LATEST_KEY, b"anything"),
            VersionVerdict::Keep
        );
        assert_eq!(
            collector.judge(&physical::key(b"k", Version(1)), b"\x77"),
            VersionVerdict::Keep
        );
    }

    fn visible(store: &Store, key: &[u8], at: u64) -> Option<Vec<u8>> {
        let from = physical::key(key, Version(at));
        let (found, value) = store.range(from..).next()?;
        let same = physical::split(found)?.0 == physical::split(&physical::key(key, Version(0)))?.0;
        match physical::decode_value(found, value).unwrap() {
            Record::Put(payload) if same => Some(payload.to_vec()),
            _ => None,
        }
    }

    proptest! {
        /// Any files may be compacted in any grouping: readers at or above the watermark see no
        /// difference.
        #[test]
        fn no_reader_at_or_above_the_watermark_sees_a_difference(
            writes in prop::collection::vec((0..3u8, any::<bool>(), any::<bool>()), 1..40),
            watermark in 0..45u64, whole: bool,
        ) {
            let mut before = Store::new();
            let mut compacted = Store::new();
            let mut after = Store::new();
            for (version, (key, delete, outside)) in (1u64..).zip(writes) {
                let record = if delete { Record::Delete } else { Record::Put(&[0xAB]) };
                put(&mut before, &[key], version, record);
                let outside = outside && !whole;
                put(if outside { &mut after } else { &mut compacted }, &[key], version, record);
            }
            let scope = if whole { Scope::Whole } else { Scope::Part };
            let mut collector = Collector::new(Version(watermark), scope);
            compacted.retain(|key, value| collector.judge(key, value) != VersionVerdict::Drop);
            after.append(&mut compacted);
            for key in 0..3u8 {
                for at in watermark..50 {
                    prop_assert_eq!(visible(&before, &[key], at), visible(&after, &[key], at));
                }
            }
        }

        /// Rows that were given up go, whatever files are compacted: what is alive is seen as before,
        /// and nothing that was gone comes back. Of all files together nothing dead is left.
        #[test]
        fn only_what_was_given_up_goes(
            steps in prop::collection::vec((0..8u8, 0..3u8, 0..4u8, any::<bool>()), 1..60),
            behind in 0..20u64, whole: bool,
        ) {
            let mut owner = Owner::default();
            for (step, space, number, outside) in steps {
                owner.step(step, space, number, outside && !whole);
            }
            let watermark = owner.version.saturating_sub(behind);
            let scope = if whole { Scope::Whole } else { Scope::Part };
            let mut collector = Collector::new(Version(watermark), scope).dropping(&owner.dead);
            let (before, mut after) = (owner.store(), owner.outside.clone());
            let mut kept = owner.compacted.clone();
            kept.retain(|key, value| collector.judge(key, value) != VersionVerdict::Drop);
            after.append(&mut kept);
            for (space, number) in (0..3).flat_map(|space| (0..4).map(move |one| (space, one))) {
                let key = [space, number];
                let dropped = owner.dead.dropped.iter().filter(|one| one.prefix == key[..1]);
                let usable = dropped.map(|one| one.version.0).filter(|at| *at <= watermark);
                let dropped_at = usable.max().unwrap_or(0);
                for at in watermark..=owner.version + 1 {
                    let (was, is) = (visible(&before, &key, at), visible(&after, &key, at));
                    prop_assert!(was.is_some() || is.is_none(), "{:?} came back at {}", key, at);
                    if newest_at(&before, &key, at) > dropped_at {
                        prop_assert_eq!(was, is, "{:?} at {}", key, at);
                    } else if whole {
                        prop_assert_eq!(is, None, "{:?}, which is dead, stays", key);
                    }
                }
            }
        }
    }

    /// The version of the newest record at or below `at`; 0: none.
    fn newest_at(store: &Store, key: &[u8], at: u64) -> u64 {
        let from = physical::key(key, Version(at));
        let found = store.range(from..).next();
        let found = found.and_then(|(found, _)| physical::split(found));
        let own = physical::key(key, Version(0));
        let own = physical::split(&own).unwrap().0;
        found.map_or(
            0,
            |(prefix, version)| {
                if prefix == own { version.0 } else { 0 }
            },
        )
    }

    /// Rows in two spaces that are dropped as a whole, and in a third one where each has a time.
    #[derive(Default)]
    struct Owner {
        version: u64,
        time: u8,
        dead: DeadRows,
        outside: Store,
        compacted: Store,
    }

    const TIMES: u8 = 2;

    impl Owner {
        fn step(&mut self, step: u8, space: u8, number: u8, outside: bool) {
            match step {
                0 => self.write([space, number], Record::Delete, outside),
                1 if space != TIMES => {
                    let version = Version(self.version);
                    self.dead.dropped.retain(|one| one.prefix != [space]);
                    let prefix = vec![space];
                    self.dead.dropped.push(DroppedPrefix { prefix, version });
                }
                2 => self.expire(outside),
                _ => self.write([space, number], Record::Put(&[self.time + number]), outside),
            }
        }

        fn write(&mut self, key: [u8; 2], record: Record<'_>, outside: bool) {
            self.version += 1;
            let store = if outside {
                &mut self.outside
            } else {
                &mut self.compacted
            };
            put(store, &key, self.version, record);
        }

        fn store(&self) -> Store {
            let mut all = self.outside.clone();
            all.append(&mut self.compacted.clone());
            all
        }

        /// Deletes the rows whose time is over, and says so.
        fn expire(&mut self, outside: bool) {
            self.time += 1;
            for number in 0..4 {
                let found = visible(&self.store(), &[TIMES, number], self.version);
                if found.is_some_and(|value| value[0] <= self.time) {
                    self.write([TIMES, number], Record::Delete, outside);
                }
            }
            self.dead.expired = Some(ExpiredRows {
                prefix: vec![TIMES],
                until: u64::from(self.time),
                version: Version(self.version),
                expiry_of: |value| value.first().copied().map(u64::from),
            });
        }
    }
}
