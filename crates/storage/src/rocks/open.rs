//! Opening a data directory: RocksDB's files, then the log behind them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use manxdb_compaction_edge::{
    DatabaseService, Pool, Service, set_compaction_listener, set_service,
};
use parking_lot::Mutex;
use rocksdb::{Cache, DB, DBCompressionType, ReadTier};

use super::filter::CollectorFactory;
use super::flusher::Flusher;
use super::progress::Progress;
use super::quarantine::Quarantine;
use super::remote::{self, StoreService};
use super::store::{self, Store};
use super::tombstones::Tombstones;
use super::writer::{Filling, Limits, PAUSE, Writer};
use super::{Counters, DATA_FOLDER, ENGINE_NAME, Options, RocksEngine, error, freeze, options};
use crate::dead_rows::DeadRows;
use crate::error::StorageError;
use crate::log::{self, CommitLog};
use crate::model::Version;
use crate::{files, format};

impl RocksEngine {
    /// Opens the data directory at `directory`, making it when it is new.
    ///
    /// # Errors
    /// [`StorageError::InUse`] when another process or engine holds it, [`StorageError::Format`]
    /// when a newer release wrote it, [`StorageError::Corrupt`] when its log or catalogue of
    /// files is damaged or misses a file, [`StorageError::Io`] and [`StorageError::Full`] from the system.
    pub fn open(directory: &Path, options: &Options) -> Result<Self, StorageError> {
        Self::open_with(directory, options, None)
    }

    /// As [`RocksEngine::open`]; compactions are done by `pool`, and here whenever that is better.
    ///
    /// # Errors
    /// As [`RocksEngine::open`], and [`StorageError::RemoteCompaction`] when the pool cannot reach the
    /// directory.
    pub fn open_with(
        directory: &Path,
        options: &Options,
        pool: Option<&dyn Pool>,
    ) -> Result<Self, StorageError> {
        log::create_folder(directory)?;
        let data = directory.join(DATA_FOLDER);
        let format = format::open_or_create(directory, ENGINE_NAME, &data)?;
        let cache = Cache::new_hyper_clock_cache(options.block_cache_bytes, 0);
        let watermark = Arc::new(AtomicU64::new(0));
        let tombstones = Arc::new(Tombstones::default());
        let dead: Arc<ArcSwap<DeadRows>> = Arc::default();
        let serve = |pool| remote::serve(pool, &data, &watermark, &tombstones, &dead);
        let service = pool.map(serve);
        let service = service.transpose()?;
        let quarantine = Arc::new(Quarantine::default());
        let collector = || {
            let (watermark, dead) = (Arc::clone(&watermark), Arc::clone(&dead));
            CollectorFactory::new(watermark, Arc::clone(&tombstones), dead)
        };
        let settings = |compression| {
            let mut settings = options::database(options, &cache, compression, collector());
            if let Some(service) = &service {
                let service: Arc<dyn DatabaseService> = Arc::clone(service);
                let service: Arc<dyn Service> = service;
                set_service(&mut settings, service);
            }
            let listener: Arc<Quarantine> = Arc::clone(&quarantine);
            set_compaction_listener(&mut settings, listener);
            settings
        };
        let (db, settings) = open_database(directory, &settings)?;
        store::remove_half_written(&data)?;
        if service.is_none() {
            remote::sweep(&data);
        }
        files::sync(directory).map_err(|error| {
            files::io_error(format!("cannot sync {}", directory.display()), error)
        })?;
        // Older releases know nothing of the log.
        format::upgrade(directory, &format)?;
        let jobs = options.background_jobs.max(2);
        let store = Store::new(
            db,
            settings,
            data,
            &watermark,
            &tombstones,
            quarantine,
            jobs,
        );
        let store = Arc::new(store);
        let store_service = service.map(|service| StoreService::new(service, &store));
        let flusher = Flusher::start(&store)?;
        let writer = open_log(directory, options, &store, &flusher)?;
        let latest = writer.filling.progress().latest;
        tracing::info!(directory = %directory.display(), latest = latest.0, "storage opened");
        Ok(Self {
            flusher,
            log_counters: writer.log_counters(),
            writer: Mutex::new(writer),
            in_parts: Mutex::new(()),
            store_service,
            store,
            dead,
            directory: directory.to_owned(),
            latest: AtomicU64::new(latest.0),
            counters: Counters::default(),
            statistics_enabled: options.statistics,
            cache,
        })
    }
}

/// Opens RocksDB, without compression when the linked library has none.
fn open_database(
    directory: &Path,
    settings: &impl Fn(DBCompressionType) -> rocksdb::Options,
) -> Result<(DB, rocksdb::Options), StorageError> {
    let data = directory.join(DATA_FOLDER);
    let is_new = is_new(&data)?;
    let open = |compression| {
        let mut settings = settings(compression);
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

/// Opens the log and puts into memtables what the sorted files do not hold yet.
///
/// Nobody reads yet, and who will, reads at the last version or above: of each key only the newest
/// version is kept, however often the log has it.
fn open_log(
    directory: &Path,
    options: &Options,
    store: &Store,
    flusher: &Flusher,
) -> Result<Writer, StorageError> {
    let limits = Limits {
        memtable_bytes: options.write_buffer_bytes,
        segment_bytes: options.log_segment_bytes,
    };
    let held = Progress::read(&store.db, ReadTier::All)?;
    let mut filling = Filling::new(limits, held);
    let mut replayed = 0_u64;
    let place = directory.join(log::FOLDER);
    let log = CommitLog::open(
        &place,
        options.log_segment_bytes,
        held.applied,
        |end, batch| {
            if filling.is_full(&store.layers().active) {
                freeze(store, flusher, &mut filling, || flusher.wait(PAUSE))?;
            }
            filling.wrote(store.apply(&batch, Version::MAX), end);
            replayed += 1;
            Ok(())
        },
    )?;
    assert!(
        filling.progress().applied <= log.end(),
        "what the memtables hold is in the log"
    );
    assert!(
        held.is_at_most(filling.progress()),
        "replaying the log takes nothing back of what the sorted files hold"
    );
    tracing::info!(batches = replayed, "log replayed");
    Ok(Writer::new(log, filling))
}
