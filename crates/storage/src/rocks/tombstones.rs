//! Purging tombstones that a compaction of some files had to keep.
//!
//! A tombstone may go only when no older version of its key is left in any file
//! ([`crate::collection`]), which a compaction of some files cannot know. The compaction notes the
//! key here. When the next memtable is written out, the flush looks the key up in all files: if the
//! newest version at or below the watermark is a tombstone, it is removed together with everything
//! older by RocksDB's own deletes, which go into the file of that memtable. RocksDB keeps these
//! deletes until they have reached the entries that they hide.
//!
//! This is safe because each new file has only versions newer than those of the same key in older
//! files. Only compactions can change the result of the lookup, and they only drop hidden entries.
//! Versions of the key in memtables hide the tombstone as well as its removal. The next compaction
//! of the key makes a note again that a crash lost.

use parking_lot::Mutex;
use rocksdb::{DB, DBRawIterator, ReadOptions};

use crate::model::Version;
use crate::physical;

/// Notes kept at a time; what does not fit is noted by a later compaction.
const NOTES_MAX: usize = 64 << 10;

/// Longest chain of versions removed at once; longer ones wait until compactions cut them down.
const CHAIN_MAX: usize = 64;

/// Deletes met by compactions.
#[derive(Default)]
pub struct Tombstones {
    notes: Mutex<Vec<Vec<u8>>>,
}

impl Tombstones {
    /// Notes the physical key of a delete.
    pub fn note(&self, physical_key: &[u8]) {
        assert!(
            physical::split(physical_key).is_some(),
            "a record of the engine itself is no delete"
        );
        let mut notes = self.notes.lock();
        if notes.len() < NOTES_MAX {
            notes.push(physical_key.to_vec());
        }
    }

    /// All notes.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.notes.lock())
    }

    /// Notes that were taken in vain.
    pub fn put_back(&self, mut taken: Vec<Vec<u8>>) {
        let mut notes = self.notes.lock();
        taken.truncate(NOTES_MAX.saturating_sub(notes.len()));
        notes.append(&mut taken);
        assert!(notes.len() <= NOTES_MAX, "notes have a limit");
    }

    /// Notes not taken yet.
    pub fn len(&self) -> usize {
        self.notes.lock().len()
    }
}

/// The physical keys, in order, of noted deletes and of everything older than those, where no
/// reader at or above `watermark` needs them.
pub fn purge(db: &DB, notes: &[Vec<u8>], watermark: Version) -> Vec<Vec<u8>> {
    if notes.is_empty() {
        return Vec::new();
    }
    let mut options = ReadOptions::default();
    options.set_prefix_same_as_start(true);
    options.fill_cache(false);
    let mut iterator = db.raw_iterator_opt(options);
    let chains = notes
        .iter()
        .filter_map(|note| chain(&mut iterator, note, watermark));
    let mut keys: Vec<Vec<u8>> = chains.flatten().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The delete and everything older; `None` when they must stay.
fn chain(
    iterator: &mut DBRawIterator<'_>,
    physical_key: &[u8],
    watermark: Version,
) -> Option<Vec<Vec<u8>>> {
    let (prefix, _) = physical::split(physical_key)?;
    let mut newest = prefix.to_vec();
    physical::push_version(watermark, &mut newest);
    iterator.seek(&newest);
    let mut chain = Vec::new();
    while let Some((key, value)) = iterator.item() {
        let Some((_, version)) = physical::split(key).filter(|(found, _)| *found == prefix) else {
            break;
        };
        assert!(
            version <= watermark,
            "what is purged no reader asks for: {version:?} above {watermark:?}"
        );
        let is_first = chain.is_empty();
        if (is_first && physical::is_delete(value) != Some(true)) || chain.len() == CHAIN_MAX {
            return None;
        }
        chain.push(key.to_vec());
        iterator.next();
    }
    // A part of a chain must not go: the remaining versions would become visible again.
    iterator.status().is_ok().then_some(chain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::engine::Engine as _;
    use crate::model::{Durability, Version, WriteBatch};
    use crate::physical;
    use crate::rocks::{Options, RocksEngine};

    /// One write: key, value or delete, how far the watermark then lies behind, and whether all is
    /// written out.
    type Step = (u8, Option<u8>, u64, bool);

    fn run(steps: Vec<Step>) {
        let directory = tempfile::tempdir().unwrap();
        let engine = RocksEngine::open(directory.path(), &Options::default()).unwrap();
        let mut history: Vec<(u64, u8, Option<u8>)> = Vec::new();
        let mut watermark = 0;
        for (version, (key, value, behind, flush)) in (1u64..).zip(steps) {
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
                let tombstones = &engine.store.tombstones;
                tombstones.note(&physical::key(&[key], Version(version)));
            }
            if flush {
                engine.flush().unwrap();
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
                (0..3u8, prop::option::of(any::<u8>()), 0..6u64, any::<bool>()), 1..40),
        ) {
            run(steps);
        }
    }
}
