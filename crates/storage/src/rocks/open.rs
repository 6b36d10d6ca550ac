//! Opening what is in a data directory: RocksDB's files, and the log behind them.

use std::path::{Path, PathBuf};

use rocksdb::{DB, DBCompressionType, ReadTier};

use super::flusher::Flusher;
use super::options::Options;
use super::progress::Progress;
use super::store::Store;
use super::writer::{Filling, Limits, PAUSE, Writer};
use super::{DATA_FOLDER, error, freeze};
use crate::error::StorageError;
use crate::files;
use crate::log::{self, CommitLog};
use crate::model::Version;

/// Opens RocksDB, without compression when the linked library has none.
pub fn open_database(
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
pub fn open_log(
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
    tracing::info!(batches = replayed, "log replayed");
    Ok(Writer::new(log, filling))
}
