//! A consistent copy of a store that serves: RocksDB's checkpoint beside an empty log that goes on
//! behind the store's own.

use std::fs;
use std::path::Path;

use rocksdb::ReadTier;
use rocksdb::checkpoint::Checkpoint;

use super::progress::Progress;
use super::{DATA_FOLDER, RocksEngine, error};
use crate::error::StorageError;
use crate::{files, format, log};

/// As [`crate::Engine::checkpoint`].
pub fn checkpoint(engine: &RocksEngine, directory: &Path) -> Result<(), StorageError> {
    let context = || format!("cannot copy the store to {}", directory.display());
    fs::create_dir(directory).map_err(|error| files::io_error(context(), error))?;
    let copied = copy_into(engine, directory);
    if copied.is_err() {
        // The error that stopped the copy is the one to report.
        let _ = fs::remove_dir_all(directory);
    }
    copied
}

fn copy_into(engine: &RocksEngine, directory: &Path) -> Result<(), StorageError> {
    let context = format!("cannot copy the store to {}", directory.display());
    let format = format::read(&engine.directory)?.ok_or_else(|| {
        StorageError::Corrupt(format!(
            "{} lost its {} file",
            engine.directory.display(),
            format::FILE_NAME
        ))
    })?;
    // A copy has no log that would complete a part of a batch.
    let in_parts = engine.in_parts.lock();
    engine.flush()?;
    Checkpoint::new(&engine.store.db)
        .and_then(|checkpoint| checkpoint.create_checkpoint(directory.join(DATA_FOLDER)))
        .map_err(|error| error::map(&context, &error))?;
    drop(in_parts);
    // In this order: files never go beyond the log, and a flush may end between the two.
    let files = Progress::read(&engine.store.db, ReadTier::Persisted)?;
    let held = engine.writer.lock().end();
    assert!(
        files.applied <= held,
        "the log of a copy goes on behind its sorted files: {:?} and {held:?}",
        files.applied
    );
    log::begin_empty(&directory.join(log::FOLDER), held)?;
    format::write(directory, &format)
}
