//! The engine trait, and cursors over it.

use std::path::Path;

use crate::dead_rows::DeadRows;
use crate::error::StorageError;
use crate::log::Unsynced;
use crate::model::{Direction, Durability, KeyRange, Rows, Version, Versioned, WriteBatch};
use crate::search::{FileSearch, Judge, KeyPrefixes};
use crate::sorted::{SortedWrites, to_batch};

/// One row of a cursor, borrowed until the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorEntry<'a> {
    /// The key, without its version.
    pub key: &'a [u8],
    /// Version that wrote the value.
    pub version: Version,
    /// The value.
    pub value: &'a [u8],
}

/// Walks live keys of a range at one version; deleted keys are skipped.
pub trait Cursor {
    /// The next entry, or `None` at the end.
    ///
    /// # Errors
    /// [`StorageError`] when the engine cannot read a block.
    fn next(&mut self) -> Result<Option<CursorEntry<'_>>, StorageError>;
}

/// A batch on its way to the disk: what [`Engine::append`] answers.
#[derive(Debug, Clone, Default)]
pub struct Appended {
    /// `None` when there is nothing to wait for.
    pub(crate) unsynced: Option<Unsynced>,
}

/// An ordered, multi-version, crash-safe key-value store.
///
/// Invariants every implementation keeps, proven by the conformance suite:
/// a batch is applied whole or not at all, also across a crash; a read at `v`
/// never changes while `v` is at or above the collection watermark, and as long
/// as the engine is open; batches are recovered in the order they were written.
pub trait Engine: Send + Sync + 'static {
    /// Newest value of `key` at or below `at`; `None` when absent or deleted.
    ///
    /// # Errors
    /// [`StorageError`] when the engine cannot read a block.
    fn get(&self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError>;

    /// A cursor over `range` at `at`.
    ///
    /// # Errors
    /// [`StorageError`] when the engine cannot open an iterator.
    fn scan<'a>(
        &'a self,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>, StorageError>;

    /// As [`Engine::get`] for each of `keys`, which ascend.
    ///
    /// # Errors
    /// As [`Engine::get`].
    fn get_many(
        &self,
        keys: &[&[u8]],
        at: Version,
    ) -> Result<Vec<Option<Versioned>>, StorageError> {
        // Read one by one, any order would do: not so where one walk reads all of them.
        assert!(
            keys.is_sorted_by(|one, next| one < next),
            "keys are given in order, once"
        );
        keys.iter().map(|key| self.get(key, at)).collect()
    }

    /// The first `limit` entries of each of `ranges`, which ascend and do not overlap.
    ///
    /// # Errors
    /// As [`Engine::scan`].
    fn scan_many(
        &self,
        ranges: &[KeyRange],
        at: Version,
        limit: usize,
    ) -> Result<Vec<Rows>, StorageError> {
        assert!(
            ranges.is_sorted_by(KeyRange::ends_before),
            "ranges are given in order, and share no key"
        );
        let mut pages = Vec::with_capacity(ranges.len());
        for range in ranges {
            let mut cursor = self.scan(range, at, Direction::Forward)?;
            let mut page = Rows::new();
            while page.len() < limit
                && let Some(entry) = cursor.next()?
            {
                page.push((entry.key.to_vec(), entry.value.to_vec()));
            }
            pages.push(page);
        }
        Ok(pages)
    }

    /// Applies a batch atomically. It outlives the process then; power loss only after
    /// [`Engine::sync`] with what this answers.
    ///
    /// # Errors
    /// [`StorageError::Full`], [`StorageError::ReadOnly`] or [`StorageError::Behind`] leave the
    /// store as it was.
    fn append(&self, batch: &WriteBatch) -> Result<Appended, StorageError>;

    /// As [`Engine::append`], for keys that nobody reads at another version than [`Version::MAX`]: of
    /// each the engine may keep the last version alone. Takes what is in `batch`.
    ///
    /// # Errors
    /// As [`Engine::append`], which leave `batch` as it was.
    fn append_latest(&self, batch: &mut WriteBatch) -> Result<Appended, StorageError> {
        self.append(batch)
    }

    /// As [`Engine::append`], for many writes of one version, which the engine does not list: it takes
    /// memory for them as for many small batches. It may wait for the disk meanwhile.
    ///
    /// # Errors
    /// As [`Engine::append`]. Any other error: whether they survive is not known.
    fn append_sorted(
        &self,
        version: Version,
        writes: &dyn SortedWrites,
    ) -> Result<Appended, StorageError> {
        self.append(&to_batch(version, writes))
    }

    /// Waits until a batch, and all appended before it, are on disk. Several may wait at a time,
    /// and others append meanwhile.
    ///
    /// # Errors
    /// [`StorageError`]: whether the batch survives is not known, and nothing more is taken.
    fn sync(&self, appended: &Appended) -> Result<(), StorageError>;

    /// Applies a batch atomically and returns once it is as durable as asked.
    ///
    /// # Errors
    /// As [`Engine::append`] and [`Engine::sync`].
    fn write(&self, batch: &WriteBatch, durability: Durability) -> Result<(), StorageError> {
        let appended = self.append(batch)?;
        match durability {
            Durability::Sync => self.sync(&appended),
            Durability::Async => Ok(()),
        }
    }

    /// Highest version ever written, recovered at open.
    ///
    /// # Errors
    /// [`StorageError`] when the record of it cannot be read.
    fn latest(&self) -> Result<Version, StorageError>;

    /// No reader will ask below this version again: older values may go.
    fn set_watermark(&self, watermark: Version);

    /// What owners of rows have given up, in place of what was said before; compactions drop it. What
    /// `dead` says must be on disk ([`crate::dead_rows`]), and its rows are an exception from what
    /// reads are promised: they may be gone at any time. False from an engine that keeps them.
    fn set_dead_rows(&self, dead: DeadRows) -> bool {
        let _ = dead;
        false
    }

    /// Has dropped prefixes go from files, without waiting for a compaction that comes by: reads and
    /// writes the files that have such keys, while the engine serves.
    ///
    /// # Errors
    /// [`StorageError`] when memtables cannot be written: nothing is lost.
    fn compact_dead_rows(&self) -> Result<(), StorageError> {
        Ok(())
    }

    /// Rewrites what was written up to `mark`, and looks whether files are free of it: true when no
    /// file has a key or a value any more that was deleted or replaced at or below `mark`. False when
    /// a reader may ask below `mark` or something keeps a file, or when this was stopped: a later
    /// call may find it gone. Reads and writes the whole store, more than once, while it serves.
    ///
    /// # Errors
    /// [`StorageError`] when a file cannot be read or written: nothing is lost.
    fn purge(&self, mark: Version) -> Result<bool, StorageError> {
        let _ = mark;
        Ok(false)
    }

    /// Ends [`Engine::purge`] soon, for good: the engine is about to close.
    fn stop_purging(&self) {}

    /// Looks for versions of keys with one of `prefixes` in all files, also for those that no reader
    /// sees any more, and counts those that `judge` wants. Each version of such a key that a file had
    /// when this was called is shown to `judge` once at least, but for those that RocksDB's own deletes
    /// hide. Reads the log whole, and of sorted files the ranges of the prefixes. `None`: this engine
    /// does not look.
    ///
    /// # Errors
    /// [`StorageError`] when a file cannot be read.
    fn search_files(
        &self,
        prefixes: &KeyPrefixes,
        judge: &mut Judge<'_>,
    ) -> Result<Option<FileSearch>, StorageError> {
        let _ = (prefixes, judge);
        Ok(None)
    }

    /// A consistent copy of the store in `directory`, made while serving.
    ///
    /// # Errors
    /// [`StorageError`] when the directory exists or cannot be written.
    fn checkpoint(&self, directory: &Path) -> Result<(), StorageError>;
}
