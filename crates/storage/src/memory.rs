//! The engine in memory: an ordered map of version chains. For tests, the simulator, and paths
//! that keep their data elsewhere. Nothing survives the process.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use parking_lot::RwLock;

use crate::engine::{Appended, Cursor, CursorEntry, Engine};
use crate::error::StorageError;
use crate::model::{Direction, KeyRange, Version, Versioned, WriteBatch};
use crate::search::{FileSearch, Judge, KeyPrefixes};

/// Versions of one key, oldest first; `None` is a delete.
type Chain = Vec<(Version, Option<Vec<u8>>)>;

/// An [`Engine`] over a `BTreeMap`.
#[derive(Debug, Default)]
pub struct MemoryEngine {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    chains: BTreeMap<Vec<u8>, Chain>,
    latest: Version,
    watermark: Version,
}

impl MemoryEngine {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops every version no reader at or above the watermark can see.
    pub fn compact(&self) {
        let mut state = self.state.write();
        let watermark = state.watermark;
        state.chains.retain(|_, chain| {
            prune(chain, watermark);
            !matches!(chain.as_slice(), [(version, None)] if *version <= watermark)
        });
    }

    /// Number of versions held, for tests of collection.
    #[must_use]
    pub fn version_count(&self) -> usize {
        self.state.read().chains.values().map(Vec::len).sum()
    }
}

/// Drops what the newest version at or below `watermark` hides.
fn prune(chain: &mut Chain, watermark: Version) {
    let at_or_below = chain.partition_point(|(version, _)| *version <= watermark);
    if at_or_below > 1 {
        chain.drain(..at_or_below - 1);
    }
    assert!(
        chain.get(1).is_none_or(|(version, _)| *version > watermark),
        "of what nobody reads below, one version is left"
    );
}

/// Newest version of `chain` at or below `at`, when it is a value.
fn visible(chain: &Chain, at: Version) -> Option<(Version, &Vec<u8>)> {
    let after = chain.partition_point(|(version, _)| *version <= at);
    let (version, value) = chain.get(after.checked_sub(1)?)?;
    assert!(
        *version <= at,
        "a reader sees nothing newer than its snapshot"
    );
    Some((*version, value.as_ref()?))
}

impl Engine for MemoryEngine {
    fn get(&self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError> {
        let state = self.state.read();
        let found = state.chains.get(key).and_then(|chain| visible(chain, at));
        Ok(found.map(|(version, value)| Versioned {
            version,
            value: value.clone(),
        }))
    }

    fn scan<'a>(
        &'a self,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>, StorageError> {
        Ok(Box::new(MemoryCursor {
            engine: self,
            rest: range.clone(),
            at,
            direction,
            current: None,
        }))
    }

    fn append(&self, batch: &WriteBatch) -> Result<Appended, StorageError> {
        let mut state = self.state.write();
        batch.assert_newer_than(state.latest);
        let watermark = state.watermark;
        for (version, key, value) in &batch.writes {
            let chain = state.chains.entry(key.clone()).or_default();
            match chain.binary_search_by_key(version, |(version, _)| *version) {
                Ok(same) => chain[same].1.clone_from(value),
                Err(place) => chain.insert(place, (*version, value.clone())),
            }
            prune(chain, watermark);
            let newest = chain.last().map(|(version, _)| *version);
            assert_eq!(
                newest,
                Some(*version),
                "of a key, what is written is newest"
            );
            state.latest = state.latest.max(*version);
        }
        Ok(Appended::default())
    }

    /// There is no disk.
    fn sync(&self, _appended: &Appended) -> Result<(), StorageError> {
        Ok(())
    }

    fn latest(&self) -> Result<Version, StorageError> {
        Ok(self.state.read().latest)
    }

    fn set_watermark(&self, watermark: Version) {
        let mut state = self.state.write();
        state.watermark = state.watermark.max(watermark);
    }

    /// It has no files, and prunes what is written: only what is not written again is left.
    fn purge(&self, mark: Version) -> Result<bool, StorageError> {
        let mut state = self.state.write();
        let watermark = state.watermark;
        if watermark < mark {
            return Ok(false);
        }
        for chain in state.chains.values_mut() {
            prune(chain, watermark);
        }
        Ok(true)
    }

    fn search_files(
        &self,
        _prefixes: &KeyPrefixes,
        _judge: &mut Judge<'_>,
    ) -> Result<Option<FileSearch>, StorageError> {
        // There are no files.
        Ok(Some(FileSearch::default()))
    }

    fn checkpoint(&self, directory: &Path) -> Result<(), StorageError> {
        Err(StorageError::Engine(format!(
            "the memory engine keeps nothing on disk and cannot be copied to {}",
            directory.display()
        )))
    }
}

/// Walks by key, not by position: the map may change between two calls without harm, because
/// what a reader at `at` sees does not.
struct MemoryCursor<'a> {
    engine: &'a MemoryEngine,
    rest: KeyRange,
    at: Version,
    direction: Direction,
    current: Option<(Vec<u8>, Version, Vec<u8>)>,
}

impl MemoryCursor<'_> {
    fn find(&self) -> Option<(Vec<u8>, Version, Vec<u8>)> {
        if self.rest.is_empty() {
            return None;
        }
        let state = self.engine.state.read();
        let mut entries = state
            .chains
            .range((self.rest.start.clone(), self.rest.end.clone()))
            .filter_map(|(key, chain)| Some((key, visible(chain, self.at)?)));
        let (key, (version, value)) = match self.direction {
            Direction::Forward => entries.next(),
            Direction::Reverse => entries.next_back(),
        }?;
        Some((key.clone(), version, value.clone()))
    }
}

impl Cursor for MemoryCursor<'_> {
    fn next(&mut self) -> Result<Option<CursorEntry<'_>>, StorageError> {
        self.current = self.find();
        let Some((key, version, value)) = &self.current else {
            return Ok(None);
        };
        assert!(self.rest.contains(key), "a cursor stays inside its range");
        let behind = Bound::Excluded(key.clone());
        match self.direction {
            Direction::Forward => self.rest.start = behind,
            Direction::Reverse => self.rest.end = behind,
        }
        Ok(Some(CursorEntry {
            key,
            version: *version,
            value,
        }))
    }
}
