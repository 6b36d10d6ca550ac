//! The durable engine, over RocksDB. The only folder that knows RocksDB.
//!
//! A data directory holds `FORMAT` (see [`crate::format`]) and the folder `rocksdb`. RocksDB's
//! own lock on that folder keeps a second process out.
//!
//! Start reading at [`RocksEngine`]; then `point` (the hot path), `cursor`, `filter`.

mod cursor;
mod error;
mod filter;
mod graves;
mod options;
mod point;
mod statistics;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rocksdb::checkpoint::Checkpoint;
use rocksdb::{
    BottommostLevelCompaction, Cache, CompactOptions, DB, DBCompressionType, WriteOptions,
};

use crate::engine::{
    Cursor, Direction, Durability, Engine, KeyRange, StorageError, Version, Versioned, WriteBatch,
};
use crate::physical::{self, LATEST_KEY, Record};
use crate::{files, format};
use filter::CollectorFactory;
use graves::Graves;
pub use options::Options;
use point::PointReaders;

/// Name of this engine in the `FORMAT` file.
pub const ENGINE_NAME: &str = "rocksdb";

/// Folder of a data directory that RocksDB keeps its files in.
pub const DATA_FOLDER: &str = "rocksdb";

/// Pause between tries while writes are stopped.
const STALL_PAUSE: Duration = Duration::from_millis(1);

/// An [`Engine`] on disk.
pub struct RocksEngine {
    readers: PointReaders,
    db: Arc<DB>,
    directory: PathBuf,
    watermark: Arc<AtomicU64>,
    /// Deletes that compactions could not drop.
    graves: Arc<Graves>,
    latest: AtomicU64,
    /// Held by the writer, so that the record of the latest version rises in the log too.
    order: Mutex<()>,
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
    /// files is damaged, [`StorageError::Io`] and [`StorageError::Full`] from the system.
    pub fn open(directory: &Path, options: &Options) -> Result<Self, StorageError> {
        fs::create_dir_all(directory).map_err(|error| {
            files::io_error(format!("cannot create {}", directory.display()), error)
        })?;
        let data = directory.join(DATA_FOLDER);
        format::open_or_create(directory, ENGINE_NAME, &data)?;
        let cache = Cache::new_hyper_clock_cache(options.block_cache_bytes, 0);
        let watermark = Arc::new(AtomicU64::new(0));
        let graves = Arc::new(Graves::default());
        let collector = || CollectorFactory::new(Arc::clone(&watermark), Arc::clone(&graves));
        let (db, settings) = open_database(directory, options, &cache, &collector)?;
        files::sync(directory).map_err(|error| {
            files::io_error(format!("cannot sync {}", directory.display()), error)
        })?;
        let latest = read_latest(&db)?;
        tracing::info!(directory = %directory.display(), latest = latest.0, "storage opened");
        Ok(Self {
            readers: PointReaders::new(),
            db: Arc::new(db),
            directory: directory.to_owned(),
            watermark,
            graves,
            latest: AtomicU64::new(latest.0),
            order: Mutex::new(()),
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
        numbers.push(("storage_deletes_to_bury", self.graves.len() as f64));
        numbers
    }

    /// The data directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a batch, waiting while flushes or compactions are behind; the latest version and
    /// the bytes written.
    ///
    /// RocksDB would wait without end inside a write when writes are stopped because a flush found
    /// the disk full. Asked not to wait, it reports the stop, and every new try meets the error of
    /// the flush as soon as there is one.
    fn write_in_order(
        &self,
        batch: &WriteBatch,
        durability: Durability,
    ) -> Result<(Version, usize), StorageError> {
        let mut options = WriteOptions::default();
        options.set_sync(durability == Durability::Sync);
        options.set_no_slowdown(true);
        let graves = self.graves.take();
        loop {
            let (mut rocks_batch, latest) = self.rocks_batch(batch);
            let watermark = Version(self.watermark.load(Ordering::Acquire));
            for grave in &graves {
                graves::bury(&self.db, grave, watermark, &mut rocks_batch);
            }
            let bytes = rocks_batch.size_in_bytes();
            match self.db.write_opt(rocks_batch, &options) {
                Ok(()) => return Ok((latest, bytes)),
                Err(error) if error.kind() == rocksdb::ErrorKind::Incomplete => {
                    if self.is_stopped() {
                        std::thread::park_timeout(STALL_PAUSE);
                    } else {
                        // Only slowed down: RocksDB knows how long.
                        options.set_no_slowdown(false);
                    }
                }
                Err(error) => return Err(error::map("cannot write", &error)),
            }
        }
    }

    /// Whether RocksDB takes no writes until a flush or compaction is done.
    fn is_stopped(&self) -> bool {
        let stopped = self
            .db
            .property_int_value(rocksdb::properties::IS_WRITE_STOPPED);
        stopped.is_ok_and(|stopped| stopped == Some(1))
    }

    fn rocks_batch(&self, batch: &WriteBatch) -> (rocksdb::WriteBatch, Version) {
        let mut latest = Version(self.latest.load(Ordering::Acquire));
        let mut out = rocksdb::WriteBatch::new();
        let (mut key, mut stored) = (Vec::new(), Vec::new());
        for (version, user_key, value) in &batch.writes {
            key.clear();
            physical::push_prefix(user_key, &mut key);
            physical::push_version(*version, &mut key);
            let record = value.as_deref().map_or(Record::Delete, Record::Put);
            physical::encode_value(&key, record, &mut stored);
            out.put(&key, &stored);
            latest = latest.max(*version);
        }
        physical::encode_value(
            LATEST_KEY,
            Record::Put(&latest.0.to_be_bytes()),
            &mut stored,
        );
        out.put(LATEST_KEY, &stored);
        (out, latest)
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

fn read_latest(db: &DB) -> Result<Version, StorageError> {
    let stored = db
        .get(LATEST_KEY)
        .map_err(|error| error::map("cannot read the latest version", &error))?;
    let Some(stored) = stored else {
        return Ok(Version::ZERO);
    };
    match physical::decode_value(LATEST_KEY, &stored)? {
        Record::Put(payload) => <[u8; 8]>::try_from(payload)
            .map(|bytes| Version(u64::from_be_bytes(bytes)))
            .map_err(|_| StorageError::Corrupt("the latest version is not 8 bytes".to_owned())),
        Record::Delete => Err(StorageError::Corrupt(
            "the latest version is deleted".to_owned(),
        )),
    }
}

impl Engine for RocksEngine {
    fn get(&self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError> {
        let latest = Version(self.latest.load(Ordering::Acquire));
        self.readers.get(&self.db, key, at, latest)
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

    fn write(&self, batch: &WriteBatch, durability: Durability) -> Result<(), StorageError> {
        if batch.writes.is_empty() {
            return Ok(());
        }
        let _order = self.order.lock();
        let (latest, bytes) = self.write_in_order(batch, durability)?;
        let before = self.latest.swap(latest.0, Ordering::AcqRel);
        let late = |(version, _, _): &(Version, _, _)| version.0 <= before;
        if batch.writes.iter().any(late) {
            // Written below what readers believe to be complete: they must look again.
            self.readers.clear();
        } else {
            self.readers.written(bytes);
        }
        Ok(())
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
        format::write(directory, &format)
    }
}
