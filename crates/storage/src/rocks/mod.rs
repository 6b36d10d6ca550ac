//! The durable engine, over RocksDB. The only folder that knows RocksDB.
//!
//! A data directory holds `FORMAT` (see [`crate::format`]), the commit log (see [`crate::log`]) and
//! the folder `rocksdb`. RocksDB's own lock on that folder keeps a second process out.
//!
//! Start reading at [`RocksEngine`]; then `writer`, `point` (the hot path), `cursor`, `many`,
//! `filter`.

mod cursor;
mod error;
mod filter;
mod graves;
mod many;
mod options;
mod point;
pub mod salvage;
mod statistics;
mod writer;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{BottommostLevelCompaction, Cache, CompactOptions, DB, DBCompressionType, ReadTier};

use crate::engine::{
    Appended, Cursor, Direction, Engine, KeyRange, Rows, StorageError, Version, Versioned,
    WriteBatch,
};
use crate::log::{self, CommitLog, Place};
use crate::{files, format, physical};
use filter::CollectorFactory;
use graves::Graves;
pub use options::Options;
use point::PointReaders;
use writer::{Progress, Writer};

/// Name of this engine in the `FORMAT` file.
pub const ENGINE_NAME: &str = "rocksdb";

/// Folder of a data directory that RocksDB keeps its files in.
pub const DATA_FOLDER: &str = "rocksdb";

/// An [`Engine`] on disk.
pub struct RocksEngine {
    readers: PointReaders,
    // Dropped before `db`, whose lock keeps other processes away from the log too: fields drop in
    // the order they are declared.
    writer: Mutex<Writer>,
    db: Arc<DB>,
    log_counters: Arc<log::Counters>,
    directory: PathBuf,
    watermark: Arc<AtomicU64>,
    /// Deletes that compactions could not drop.
    graves: Arc<Graves>,
    latest: AtomicU64,
    /// Kept for its counters.
    settings: rocksdb::Options,
    statistics_enabled: bool,
    cache: Cache,
}

impl RocksEngine {
    /// Opens the data directory at `directory`, making it when it is new.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another process or engine holds it, [`StorageError::Format`]
    /// when a newer release wrote it, [`StorageError::Corrupt`] when its log or catalogue of
    /// files is damaged or misses a file, [`StorageError::Io`] and [`StorageError::Full`] from the system.
    pub fn open(directory: &Path, options: &Options) -> Result<Self, StorageError> {
        log::create_folder(directory)?;
        let data = directory.join(DATA_FOLDER);
        let format = format::open_or_create(directory, ENGINE_NAME, &data)?;
        let cache = Cache::new_hyper_clock_cache(options.block_cache_bytes, 0);
        let watermark = Arc::new(AtomicU64::new(0));
        let graves = Arc::new(Graves::default());
        let collector = || CollectorFactory::new(Arc::clone(&watermark), Arc::clone(&graves));
        let (db, settings) = open_database(directory, options, &cache, &collector)?;
        files::sync(directory).map_err(|error| {
            files::io_error(format!("cannot sync {}", directory.display()), error)
        })?;
        // Older releases know nothing of the log.
        format::upgrade(directory, &format)?;
        let (log, latest) = open_log(directory, options, &db)?;
        tracing::info!(directory = %directory.display(), latest = latest.0, "storage opened");
        Ok(Self {
            readers: PointReaders::new(),
            log_counters: log.counters(),
            writer: Mutex::new(Writer::new(log)),
            db: Arc::new(db),
            directory: directory.to_owned(),
            watermark,
            graves,
            latest: AtomicU64::new(latest.0),
            settings,
            statistics_enabled: options.statistics,
            cache,
        })
    }

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

    fn compact_between(
        &self,
        lower: Option<Vec<u8>>,
        upper: Option<Vec<u8>>,
    ) -> Result<(), StorageError> {
        self.flush()?;
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
        options.set_exclusive_manual_compaction(true);
        self.db.compact_range_opt(lower, upper, &options);
        self.readers.clear();
        Ok(())
    }

    /// Writes memtables out to sorted files.
    ///
    /// # Errors
    /// [`StorageError`] when they cannot be written.
    pub fn flush(&self) -> Result<(), StorageError> {
        self.db
            .flush()
            .map_err(|error| error::map("cannot flush memtables", &error))
    }

    /// Gauges and counters for metrics: name and value, names as in [`statistics`]. Cheap enough
    /// for every scrape.
    #[must_use]
    pub fn stats(&self) -> Vec<(&'static str, f64)> {
        let settings = self.statistics_enabled.then_some(&self.settings);
        let mut numbers = statistics::collect(&self.db, &self.cache, settings);
        #[allow(clippy::cast_precision_loss, reason = "at most some ten thousand")]
        {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
            let log = &self.log_counters;
            numbers.push(("storage_deletes_to_bury", self.graves.len() as f64));
            numbers.push(("storage_log_syncs_total", read(&log.syncs)));
            numbers.push(("storage_log_bytes_total", read(&log.bytes)));
            numbers.push(("storage_log_files", read(&log.files)));
        }
        numbers
    }

    /// The data directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Puts a batch that ends at `end` in the log into the memtables; the latest version and the
    /// bytes written.
    fn put_in_memtables(
        &self,
        batch: &WriteBatch,
        end: Place,
    ) -> Result<(Version, usize), StorageError> {
        let before = Version(self.latest.load(Ordering::Acquire));
        let graves = self.graves.take();
        let mut latest = before;
        let bytes = writer::put(&self.db, || {
            let (mut stored, newest) = writer::stored_batch(batch, before, end);
            latest = newest;
            let watermark = Version(self.watermark.load(Ordering::Acquire));
            for grave in &graves {
                graves::bury(&self.db, grave, watermark, &mut stored);
            }
            stored
        })?;
        Ok((latest, bytes))
    }
}

/// Opens RocksDB, without compression when the linked library has none.
fn open_database(
    directory: &Path,
    options: &Options,
    cache: &Cache,
    collector: &impl Fn() -> CollectorFactory,
) -> Result<(DB, rocksdb::Options), StorageError> {
    let data = directory.join(DATA_FOLDER);
    let is_new = is_new(&data)?;
    let open = |compression| {
        let mut settings = options::database(options, cache, compression, collector());
        settings.create_if_missing(is_new);
        DB::open(&settings, &data).map(|db| (db, settings))
    };
    let opened = match open(DBCompressionType::Lz4) {
        Err(error) if error::is_missing_compression(&error) => {
            tracing::warn!("RocksDB was built without LZ4: new files are not compressed");
            open(DBCompressionType::None)
        }
        opened => opened,
    };
    opened.map_err(|error| error::map_open(directory, &error))
}

/// Whether RocksDB never finished opening this folder. Making a new store where one was would
/// remove what is left of the old one.
fn is_new(data: &Path) -> Result<bool, StorageError> {
    if !data.exists() {
        return Ok(true);
    }
    let found = files::below(data)?;
    if found.iter().any(|path| path == Path::new("CURRENT")) {
        return Ok(false);
    }
    let is_left_by_a_store = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "sst")
            || path.to_string_lossy().starts_with("OPTIONS-")
    };
    if found.iter().any(is_left_by_a_store) {
        return Err(StorageError::Corrupt(format!(
            "{} holds files of a store but not CURRENT, which names its catalogue: restore a backup",
            data.display()
        )));
    }
    Ok(true)
}

/// Opens the log and puts into the memtables what the sorted files do not hold yet.
fn open_log(
    directory: &Path,
    options: &Options,
    db: &DB,
) -> Result<(CommitLog, Version), StorageError> {
    let Progress {
        mut latest,
        applied,
    } = Progress::read(db, ReadTier::All)?;
    let mut replayed = 0_u64;
    let place = directory.join(log::FOLDER);
    let log = CommitLog::open(&place, options.log_segment_bytes, applied, |end, batch| {
        let before = latest;
        writer::put(db, || {
            let (stored, newest) = writer::stored_batch(&batch, before, end);
            latest = newest;
            stored
        })?;
        replayed += 1;
        Ok(())
    })?;
    tracing::info!(batches = replayed, "log replayed");
    Ok((log, latest))
}

impl Engine for RocksEngine {
    fn get(&self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError> {
        let latest = Version(self.latest.load(Ordering::Acquire));
        self.readers.get(&self.db, key, at, latest)
    }

    fn get_many(
        &self,
        keys: &[&[u8]],
        at: Version,
    ) -> Result<Vec<Option<Versioned>>, StorageError> {
        let latest = Version(self.latest.load(Ordering::Acquire));
        many::get_many(&self.db, &self.readers, keys, at, latest)
    }

    fn scan_many(
        &self,
        ranges: &[KeyRange],
        at: Version,
        limit: usize,
    ) -> Result<Vec<Rows>, StorageError> {
        many::scan_many(&self.db, ranges, at, limit)
    }

    fn scan<'a>(
        &'a self,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>, StorageError> {
        Ok(
            match cursor::RocksCursor::new(&self.db, range, at, direction) {
                Some(cursor) => Box::new(cursor),
                None => Box::new(cursor::EmptyCursor),
            },
        )
    }

    fn append(&self, batch: &WriteBatch) -> Result<Appended, StorageError> {
        if batch.writes.is_empty() {
            return Ok(Appended::default());
        }
        let mut writer = self.writer.lock();
        let end = writer.prepare(batch)?;
        let (latest, bytes) = self.put_in_memtables(batch, end)?;
        let unsynced = Some(writer.append()?);
        let before = self.latest.swap(latest.0, Ordering::AcqRel);
        let late = |(version, _, _): &(Version, _, _)| version.0 <= before;
        if batch.writes.iter().any(late) {
            // Written below what readers believe to be complete: they must look again.
            self.readers.clear();
        } else {
            self.readers.written(bytes);
        }
        // The batch is written whatever this meets: the next segment asks again.
        if let Err(error) = writer.retire(&self.db, end) {
            tracing::warn!(%error, "the commit log keeps files that may be done with");
        }
        Ok(Appended { unsynced })
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
        self.watermark.fetch_max(watermark.0, Ordering::AcqRel);
    }

    fn checkpoint(&self, directory: &Path) -> Result<(), StorageError> {
        let context = || format!("cannot copy the store to {}", directory.display());
        fs::create_dir(directory).map_err(|error| files::io_error(context(), error))?;
        let copied = self.copy_into(directory);
        if copied.is_err() {
            // The error that stopped the copy is the one to report.
            let _ = fs::remove_dir_all(directory);
        }
        copied
    }
}

impl RocksEngine {
    fn copy_into(&self, directory: &Path) -> Result<(), StorageError> {
        let context = format!("cannot copy the store to {}", directory.display());
        let format = format::read(&self.directory)?.ok_or_else(|| {
            StorageError::Corrupt(format!(
                "{} lost its {} file",
                self.directory.display(),
                format::FILE_NAME
            ))
        })?;
        Checkpoint::new(&self.db)
            .and_then(|checkpoint| checkpoint.create_checkpoint(directory.join(DATA_FOLDER)))
            .map_err(|error| error::map(&context, &error))?;
        let held = self.writer.lock().end();
        log::begin_empty(&directory.join(log::FOLDER), held)?;
        format::write(directory, &format)
    }
}
