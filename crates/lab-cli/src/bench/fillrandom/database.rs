//! The database under load: RocksDB as db_bench sets it up, with or without a pool.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use manxdb_compaction::database::service::RemotePool;
use manxdb_compaction::edge::{
    DatabaseService, Inputs, Level0, NoCallbacks, OpenDatabase, Plain, Pool as _, Service,
    inputs_among, set_service,
};
use rocksdb::statistics::{Histogram, Ticker};
use rocksdb::{DB, DBCompressionType, Options, WaitForCompactOptions};

use crate::cli::{CompressionChoice, FillRandomRun};
use crate::fault::Fault;

/// Flushed files at which they are compacted, as RocksDB has it.
const LEVEL0_FILES: u16 = 4;
/// Flushed files at which writes stop.
const FILES_STOP: i32 = 36;

/// A manifest of this size is written anew, with what holds alone.
const MANIFEST_BYTES: usize = 64 << 10;

/// An open database.
pub struct Database {
    /// It.
    pub db: Arc<DB>,
    /// What it was opened with, which its statistics are in.
    options: Options,
    pool: Option<Arc<dyn DatabaseService>>,
}

/// What RocksDB counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryStats {
    /// Microseconds that writes were slowed down or stopped, of all threads together.
    pub stall_micros: u64,
    /// Bytes that flushes wrote.
    pub flush_bytes: u64,
    /// Bytes that compactions of this process read,
    pub compact_read_bytes: u64,
    /// and wrote.
    pub compact_write_bytes: u64,
}

impl Database {
    /// Makes a database, on whose level 0 so many files gather until they are compacted; none: as many
    /// as RocksDB says.
    ///
    /// # Errors
    /// There is one, or it cannot be made; its directory is not on the pool's volume.
    pub fn create(
        args: &FillRandomRun,
        pool: Option<&RemotePool>,
        level0_files: Option<u16>,
    ) -> Result<Self, Fault> {
        let mut options = options(args, level0_files.unwrap_or(LEVEL0_FILES));
        let pool = pool.map(|pool| serve(pool, &args.data)).transpose()?;
        if let Some(pool) = &pool {
            // Each job opens the database elsewhere, and reads all that the manifest has.
            options.set_max_manifest_file_size(MANIFEST_BYTES);
            let service: Arc<dyn Service> = Arc::<dyn DatabaseService>::clone(pool);
            set_service(&mut options, service);
        }
        let db = DB::open(&options, &args.data).map_err(|error| failed(&args.data, &error))?;
        let database = Self {
            db: Arc::new(db),
            options,
            pool,
        };
        if let Some(pool) = &database.pool {
            pool.opened(Box::new(Files {
                db: Arc::clone(&database.db),
                options: database.options.clone(),
            }));
        }
        Ok(database)
    }

    /// Writes the memtable out and waits until nothing is left to compact.
    ///
    /// # Errors
    /// RocksDB's.
    pub fn drain(&self) -> Result<(), Fault> {
        let mut wait = WaitForCompactOptions::default();
        wait.set_flush(true);
        let done = self.db.wait_for_compact(&wait);
        done.map_err(|error| failed(self.db.path(), &error))
    }

    /// What RocksDB has counted since it was opened.
    pub fn counted(&self) -> MemoryStats {
        let ticker = |ticker| self.options.get_ticker_count(ticker);
        MemoryStats {
            stall_micros: ticker(Ticker::StallMicros),
            flush_bytes: ticker(Ticker::FlushWriteBytes),
            compact_read_bytes: ticker(Ticker::CompactReadBytes),
            compact_write_bytes: ticker(Ticker::CompactWriteBytes),
        }
    }

    /// What the pool did, by the names of metrics; none without a pool.
    pub fn pool(&self) -> Option<Vec<(String, u64)>> {
        self.pool.as_ref().map(|pool| pool.numbers())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.closing();
        }
    }
}

/// What RocksDB says, with the database that it says it of.
pub fn failed(path: &Path, error: &rocksdb::Error) -> Fault {
    Fault::Other(format!("{}: {error}", path.display()))
}

fn options(args: &FillRandomRun, level0_files: u16) -> Options {
    let kibibytes = |size: u32| u64::from(size) << 10;
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_error_if_exists(true);
    options
        .set_write_buffer_size(usize::try_from(kibibytes(args.memtable_kb)).unwrap_or(usize::MAX));
    options.set_target_file_size_base(kibibytes(args.file_kb));
    options.set_level_zero_file_num_compaction_trigger(level0_files.into());
    let level1 = kibibytes(args.level1_kb) * u64::from(level0_files) / u64::from(LEVEL0_FILES);
    options.set_max_bytes_for_level_base(level1);
    // Levels from 1 on, as db_bench had them when the published runs were made.
    options.set_level_compaction_dynamic_level_bytes(false);
    options.set_max_background_jobs(number(args.background_jobs));
    options.set_level_zero_stop_writes_trigger(FILES_STOP);
    options.set_compression_type(match args.compression {
        CompressionChoice::None => DBCompressionType::None,
        CompressionChoice::Lz4 => DBCompressionType::Lz4,
        CompressionChoice::Zstd => DBCompressionType::Zstd,
    });
    options.set_enable_write_thread_adaptive_yield(!args.no_spin);
    options.enable_statistics();
    options
}

fn serve(pool: &RemotePool, data: &Path) -> Result<Arc<dyn DatabaseService>, Fault> {
    let served = pool.serve(data, Arc::new(Plain), Arc::new(NoCallbacks));
    served.map_err(Fault::Other)
}

/// What the service asks of the database.
struct Files {
    db: Arc<DB>,
    options: Options,
}

impl OpenDatabase for Files {
    fn inputs(&self, names: &[String]) -> Result<Inputs, String> {
        let live = self.db.live_files();
        Ok(live.map_or_else(|_| Inputs::default(), |live| inputs_among(live, names)))
    }

    fn level0(&self) -> BTreeMap<String, Level0> {
        let files = self.db.property_value("rocksdb.num-files-at-level0");
        let files = files.ok().flatten().and_then(|files| files.parse().ok());
        let flushes = self.options.get_histogram_data(Histogram::FlushTime);
        let level0 = Level0 {
            files: files.unwrap_or(0),
            files_stall: FILES_STOP.unsigned_abs(),
            arrived: flushes.count(),
        };
        BTreeMap::from([(rocksdb::DEFAULT_COLUMN_FAMILY_NAME.to_owned(), level0)])
    }
}
