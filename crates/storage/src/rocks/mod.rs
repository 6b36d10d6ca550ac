//! The durable engine: memtables of ours over the sorted files of RocksDB. The only folder that
//! knows RocksDB.
//!
//! A data directory holds `FORMAT` (see [`crate::format`]), the commit log (see [`crate::log`]) and
//! the folder `rocksdb`. RocksDB's own lock on that folder keeps a second process out.
//!
//! ```text
//! open     RocksDB's files, then the log behind them    open
//! append   writer: room → log → active memtable         store, crate::memtable
//! large    the same, over several memtables             in_parts
//! freeze   a full memtable waits, a new one takes over  store
//! flush    the oldest one becomes a sorted file         flusher, flush
//! read     active, frozen, files: the first that knows  store, point, merge, cursor, many
//! compact  all files at once, for an operator           compact
//! purge    no file has what was deleted or replaced     purge
//! drop     what was given up as a whole goes            crate::dead_rows, dead
//! copy     a checkpoint while the store serves          checkpoint
//! search   which files have keys, whoever sees them      search
//! ```
//!
//! Start reading at [`RocksEngine`]; then `store`, `writer`, `flush`, `point` (the hot path),
//! `merge`, `empty_ranges`, `filter`, `remote`.

mod append;
mod checkpoint;
mod compact;
mod cursor;
mod dead;
mod empty_ranges;
mod error;
mod filter;
mod flush;
mod flusher;
mod in_parts;
mod many;
mod merge;
mod open;
mod options;
mod point;
mod progress;
mod purge;
mod quarantine;
mod remote;
pub mod salvage;
mod search;
mod statistics;
mod store;
mod tombstones;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use manxdb_compaction_edge::stop_manual_compactions;
use parking_lot::Mutex;
use rocksdb::Cache;

use crate::dead_rows::DeadRows;
use crate::engine::{Appended, Cursor, Engine};
use crate::error::StorageError;
use crate::log;
use crate::memtable::Memtable;
use crate::model::{Direction, KeyRange, Rows, Version, Versioned, WriteBatch};
use crate::search::{FileSearch, Judge, KeyPrefixes};
use crate::sorted::SortedWrites;
use flusher::Flusher;
pub use options::Options;
pub use quarantine::DamagedFile;
use remote::StoreService;
pub use remote::Versions;
use store::{FROZEN_MAX, Store};
use writer::{Filling, PAUSE, Writer, until_taken};

/// Name of this engine in the `FORMAT` file.
pub const ENGINE_NAME: &str = "rocksdb";

/// Folder of a data directory that RocksDB keeps its files in.
pub const DATA_FOLDER: &str = "rocksdb";

/// An [`Engine`] on disk.
pub struct RocksEngine {
    /// Ended before the rest goes.
    flusher: Flusher,
    // Dropped before `store`, whose lock keeps other processes away from the log too: fields drop
    // in the order they are declared.
    writer: Mutex<Writer>,
    /// Held while sorted files may have a part of a batch: whoever copies them takes it, before the
    /// writer.
    in_parts: Mutex<()>,
    /// Who has compactions done remotely; lets go of `store` first.
    store_service: Option<StoreService>,
    store: Arc<Store>,
    /// What compactions drop beside old versions.
    dead: Arc<ArcSwap<DeadRows>>,
    log_counters: Arc<log::Counters>,
    directory: PathBuf,
    latest: AtomicU64,
    counters: Counters,
    statistics_enabled: bool,
    cache: Cache,
}

#[derive(Default)]
struct Counters {
    /// Bytes of keys and values written.
    written_bytes: AtomicU64,
    /// Time that writes waited for memtables to be written out.
    stall_microseconds: AtomicU64,
}

impl RocksEngine {
    /// Writes memtables out to sorted files.
    ///
    /// # Errors
    /// [`StorageError`] when they cannot be written.
    pub fn flush(&self) -> Result<(), StorageError> {
        self.flush_if(|active| !active.is_empty())
    }

    fn flush_if(&self, wants: impl Fn(&Memtable) -> bool) -> Result<(), StorageError> {
        if self.store.layers().frozen.len() == FROZEN_MAX {
            // Tried again at once, whatever the last flush met.
            self.flusher.finish()?;
        }
        let mut writer = self.writer.lock();
        if wants(&self.store.layers().active) {
            self.freeze(&mut writer)?;
        }
        drop(writer);
        self.flusher.finish()
    }

    /// Begins a new memtable, when one more may wait to be written out.
    fn freeze(&self, writer: &mut Writer) -> Result<(), StorageError> {
        let micros = u64::try_from(PAUSE.as_micros()).unwrap_or(u64::MAX);
        let stalled = &self.counters.stall_microseconds;
        let pause = || {
            self.flusher.wait(PAUSE);
            stalled.fetch_add(micros, Ordering::Relaxed);
        };
        freeze(&self.store, &self.flusher, &mut writer.filling, pause)
    }

    /// Gauges and counters for metrics: name and value, names as in [`statistics`]. Cheap enough
    /// for every scrape.
    #[must_use]
    pub fn stats(&self) -> Vec<(&'static str, f64)> {
        let mut numbers = statistics::collect(&self.store, &self.cache, self.statistics_enabled);
        #[allow(clippy::cast_precision_loss, reason = "at most some ten thousand")]
        {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
            let log = &self.log_counters;
            let counters = &self.counters;
            numbers.push(("storage_written_bytes_total", read(&counters.written_bytes)));
            let stalled = read(&counters.stall_microseconds);
            numbers.push(("storage_stall_microseconds_total", stalled));
            numbers.push(("storage_log_syncs_total", read(&log.syncs)));
            numbers.push(("storage_log_bytes_total", read(&log.bytes)));
            numbers.push(("storage_log_files", read(&log.files)));
        }
        numbers
    }

    /// Numbers of compactions done remotely, by name and labels; none when all are done here.
    #[must_use]
    pub fn compaction_numbers(&self) -> Vec<(String, u64)> {
        self.store_service
            .as_ref()
            .map(StoreService::numbers)
            .unwrap_or_default()
    }

    /// Sorted files that compactions found damaged since the store was opened: reads of what they
    /// hold fail, and all else goes on.
    #[must_use]
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.store.quarantine.files()
    }

    /// The data directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for RocksEngine {
    /// What is in memory goes to sorted files, so that the next start finds nothing to do. The log
    /// has it as well.
    fn drop(&mut self) {
        if let Err(error) = self.flush() {
            tracing::warn!(%error, "memtables are not written out: the next start reads the log");
        }
    }
}

/// Begins a new memtable, after waiting for room for one more.
fn freeze(
    store: &Store,
    flusher: &Flusher,
    filling: &mut Filling,
    pause: impl FnMut(),
) -> Result<(), StorageError> {
    until_taken(|| flusher.has_room(), pause)?;
    store.freeze(filling.progress());
    filling.begin();
    flusher.order();
    Ok(())
}

impl Engine for RocksEngine {
    fn get(&self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError> {
        self.store.get(key, at)
    }

    fn get_many(
        &self,
        keys: &[&[u8]],
        at: Version,
    ) -> Result<Vec<Option<Versioned>>, StorageError> {
        self.store.get_many(keys, at)
    }

    fn scan_many(
        &self,
        ranges: &[KeyRange],
        at: Version,
        limit: usize,
    ) -> Result<Vec<Rows>, StorageError> {
        self.store.scan_many(ranges, at, limit)
    }

    fn scan<'a>(
        &'a self,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>, StorageError> {
        Ok(self.store.scan(range, at, direction))
    }

    fn append(&self, batch: &WriteBatch) -> Result<Appended, StorageError> {
        if batch.writes.is_empty() {
            return Ok(Appended::default());
        }
        let mut writer = self.writer.lock();
        let logged = self.log(&mut writer, batch)?;
        let latest = self.store.apply(batch, self.store.watermark());
        Ok(self.applied(&mut writer, logged, latest))
    }

    fn append_latest(&self, batch: &mut WriteBatch) -> Result<Appended, StorageError> {
        if batch.writes.is_empty() {
            return Ok(Appended::default());
        }
        let mut writer = self.writer.lock();
        let logged = self.log(&mut writer, batch)?;
        let latest = self.store.apply_latest(batch);
        Ok(self.applied(&mut writer, logged, latest))
    }

    fn append_sorted(
        &self,
        version: Version,
        writes: &dyn SortedWrites,
    ) -> Result<Appended, StorageError> {
        self.append_in_parts(version, writes)
    }

    fn sync(&self, appended: &Appended) -> Result<(), StorageError> {
        let Some(unsynced) = &appended.unsynced else {
            return Ok(());
        };
        unsynced
            .wait()
            .inspect_err(|error| self.writer.lock().stop(error))
    }

    fn latest(&self) -> Result<Version, StorageError> {
        Ok(Version(self.latest.load(Ordering::Acquire)))
    }

    fn set_watermark(&self, watermark: Version) {
        self.store.set_watermark(watermark);
    }

    fn purge(&self, mark: Version) -> Result<bool, StorageError> {
        purge::purge(self, mark)
    }

    fn search_files(
        &self,
        prefixes: &KeyPrefixes,
        judge: &mut Judge<'_>,
    ) -> Result<Option<FileSearch>, StorageError> {
        search::search(self, prefixes, judge).map(Some)
    }

    fn set_dead_rows(&self, dead: DeadRows) -> bool {
        self.dead.store(Arc::new(dead));
        true
    }

    fn compact_dead_rows(&self) -> Result<(), StorageError> {
        dead::compact(self)
    }

    fn stop_purging(&self) {
        stop_manual_compactions(&self.store.db);
    }

    fn checkpoint(&self, directory: &Path) -> Result<(), StorageError> {
        checkpoint::checkpoint(self, directory)
    }
}

#[cfg(test)]
mod tests;
