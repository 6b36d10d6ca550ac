//! RocksDB's errors in our words. RocksDB tells them apart by the text of their messages only.

use std::path::Path;

use crate::error::StorageError;

/// Sorts an error of RocksDB into the variant a caller can act on.
pub fn map(context: &str, error: &rocksdb::Error) -> StorageError {
    let message = format!("{context}: {error}");
    if contains_any(
        error,
        &[
            "No space left on device",
            "Disk quota exceeded",
            "Max allowed space was reached",
        ],
    ) {
        return StorageError::Full(message);
    }
    if contains_any(error, &["Read-only file system"]) {
        return StorageError::ReadOnly(message);
    }
    match error.kind() {
        rocksdb::ErrorKind::Corruption => StorageError::Corrupt(message),
        rocksdb::ErrorKind::IOError => StorageError::Io {
            context: context.to_owned(),
            source: std::io::Error::other(error.to_string()),
        },
        _ => StorageError::Engine(message),
    }
}

/// As [`map`], for opening the store at `directory`.
pub fn map_open(directory: &Path, error: &rocksdb::Error) -> StorageError {
    let locked = contains_any(error, &["While lock file", "lock hold by current process"]);
    if locked {
        return StorageError::InUse(directory.display().to_string());
    }
    map(&format!("cannot open {}", directory.display()), error)
}

/// Whether RocksDB was built without the compression the options ask for.
pub fn is_missing_compression(error: &rocksdb::Error) -> bool {
    contains_any(error, &["is not linked with the binary"])
}

fn contains_any(error: &rocksdb::Error, needles: &[&str]) -> bool {
    let text = error.as_ref();
    needles.iter().any(|needle| text.contains(needle))
}
