//! Burying deletes that a compaction of some files had to keep.
//!
//! A delete nobody needs any more may only go when no older version of its key is left
//! anywhere ([`crate::collection`]), which a compaction of some files cannot know. It notes the
//! delete here, and the next writes look the key up in the whole store: when the newest version
//! at or below the watermark is a delete, it and everything older are removed with RocksDB's own
//! deletes, in the batch of that write. RocksDB keeps those until they have met what they hide.
//!
//! Safe because nothing is written at or below the watermark any more, so what is looked up
//! cannot change before the batch is applied. A note lost in a crash is made again by the next
//! compaction of the key.

use parking_lot::Mutex;
use rocksdb::{DB, ReadOptions, WriteBatch};

use crate::engine::Version;
use crate::physical;

/// Notes kept at a time; what does not fit is noted by a later compaction.
const NOTES_MAX: usize = 64 << 10;

/// Notes a single write takes care of: each costs about as much as a point read.
pub const NOTES_EACH_WRITE: usize = 8;

/// Longest chain of versions removed at once; longer ones wait until compactions cut them down.
const CHAIN_MAX: usize = 64;

/// Deletes met by compactions.
#[derive(Default)]
pub struct Graves {
    notes: Mutex<Vec<Vec<u8>>>,
}

impl Graves {
    /// Notes the physical key of a delete.
    pub fn note(&self, physical_key: &[u8]) {
        let mut notes = self.notes.lock();
        if notes.len() < NOTES_MAX {
            notes.push(physical_key.to_vec());
        }
    }

    /// Some notes for the next write.
    pub fn take(&self) -> Vec<Vec<u8>> {
        let mut notes = self.notes.lock();
        let rest = notes.len().saturating_sub(NOTES_EACH_WRITE);
        notes.split_off(rest)
    }

    /// Notes not taken yet.
    pub fn len(&self) -> usize {
        self.notes.lock().len()
    }
}

/// Adds to `batch` the removal of a delete and everything older, when no reader at or above
/// `watermark` needs them.
pub fn bury(db: &DB, physical_key: &[u8], watermark: Version, batch: &mut WriteBatch) {
    let Some((prefix, _)) = physical::split(physical_key) else {
        return;
    };
    let mut newest = prefix.to_vec();
    physical::push_version(watermark, &mut newest);
    let mut options = ReadOptions::default();
    options.set_prefix_same_as_start(true);
    options.fill_cache(false);
    let mut iterator = db.raw_iterator_opt(options);
    iterator.seek(&newest);
    let mut chain = Vec::new();
    while let Some((key, value)) = iterator.item() {
        let same_key = physical::split(key).is_some_and(|(found, _)| found == prefix);
        if !same_key {
            break;
        }
        let is_first = chain.is_empty();
        if (is_first && physical::is_delete(value) != Some(true)) || chain.len() == CHAIN_MAX {
            return;
        }
        chain.push(key.to_vec());
        iterator.next();
    }
    // Part of a chain must not go: what is left of it would come back to life.
    if iterator.status().is_ok() {
        for key in &chain {
            batch.delete(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::engine::{Durability, Engine as _, Version, WriteBatch};
    use crate::physical;
    use crate::rocks::{Options, RocksEngine};

    /// One write: key, value or delete, and how far the watermark then lies behind.
    type Step = (u8, Option<u8>, u64);

    fn run(steps: Vec<Step>) {
        let directory = tempfile::tempdir().unwrap();
        let engine = RocksEngine::open(directory.path(), &Options::default()).unwrap();
        let mut history: Vec<(u64, u8, Option<u8>)> = Vec::new();
        let mut watermark = 0;
        for (version, (key, value, behind)) in (1u64..).zip(steps) {
            let stored = value.map(|value| vec![value]);
            let writes = vec![(Version(version), vec![key], stored)];
            engine
                .write(&WriteBatch { writes }, Durability::Async)
                .unwrap();
            history.push((version, key, value));
            watermark = watermark.max(version.saturating_sub(behind));
            engine.set_watermark(Version(watermark));
            // As if a compaction had met this delete.
            if value.is_none() {
                engine.graves.note(&physical::key(&[key], Version(version)));
            }
            for key in 0..3 {
                for at in watermark..=version + 1 {
                    let mut older = history.iter().rev();
                    let newest = older.find(|write| write.0 <= at && write.1 == key);
                    let expected = newest.and_then(|write| write.2);
                    let found = engine.get(&[key], Version(at)).unwrap();
                    assert_eq!(
                        found.map(|found| found.value[0]),
                        expected,
                        "key {key} at {at}"
                    );
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(32)
        })]
        #[test]
        fn burying_changes_nothing_a_reader_may_ask_for(
            steps in prop::collection::vec(
                (0..3u8, prop::option::of(any::<u8>()), 0..6u64), 1..40),
        ) {
            run(steps);
        }
    }
}
