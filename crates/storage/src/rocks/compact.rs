//! Compactions that an operator asks for: all files, or those of a range, at once.

use rocksdb::{BottommostLevelCompaction, CompactOptions};

use super::RocksEngine;
use crate::error::StorageError;
use crate::model::KeyRange;
use crate::physical;

impl RocksEngine {
    /// Writes memtables out and merges every file down, dropping the versions no reader at or
    /// above the watermark can see. Takes as long as reading and writing the whole store.
    ///
    /// # Errors
    /// [`StorageError`] when the memtable cannot be written.
    pub fn compact(&self) -> Result<(), StorageError> {
        self.compact_between(None, None)
    }

    /// As [`RocksEngine::compact`] for the keys of a range only.
    ///
    /// # Errors
    /// [`StorageError`] when the memtable cannot be written.
    pub fn compact_range(&self, range: &KeyRange) -> Result<(), StorageError> {
        let (lower, upper) = physical::bounds(range);
        if upper.as_ref().is_some_and(|upper| *upper <= lower) {
            return Ok(());
        }
        self.compact_between(Some(lower), upper)
    }

    pub(super) fn compact_between(
        &self,
        lower: Option<Vec<u8>>,
        upper: Option<Vec<u8>>,
    ) -> Result<(), StorageError> {
        assert!(
            upper
                .as_ref()
                .is_none_or(|upper| lower.as_ref().is_none_or(|lower| lower < upper)),
            "what is compacted begins before it ends: {lower:?} to {upper:?}"
        );
        self.flush()?;
        self.compact_files(lower, upper, true);
        self.store.readers.clear();
        Ok(())
    }

    /// Rewrites the sorted files with physical keys in `[lower, upper)`, `None` being open; with
    /// `is_exclusive` while no other compaction goes on.
    pub(super) fn compact_files(
        &self,
        lower: Option<Vec<u8>>,
        upper: Option<Vec<u8>>,
        is_exclusive: bool,
    ) {
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        options.set_exclusive_manual_compaction(is_exclusive);
        let compact = || self.store.db.compact_range_opt(lower, upper, &options);
        self.store.quarantine.hurry(compact);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rocks::Options;

    #[test]
    #[should_panic(expected = "begins before it ends")]
    fn nothing_is_compacted_from_the_end_to_the_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let engine = RocksEngine::open(directory.path(), &Options::default()).unwrap();
        let _ = engine.compact_between(Some(b"b".to_vec()), Some(b"a".to_vec()));
    }
}
