//! The few things storage does with plain files, durable and with errors that name the file.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::StorageError;

/// When a file or directory last changed, in seconds since 1970; 0 when the system cannot tell.
#[must_use]
pub fn modified_seconds(path: &Path) -> u64 {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |since| since.as_secs())
}

/// Writes a small file so that after a crash it holds the old or the new content, never a mix.
///
/// # Errors
/// [`StorageError::Io`] or [`StorageError::Full`].
pub fn write_file(place: &Path, content: &[u8]) -> Result<(), StorageError> {
    let temporary = place.with_extension("tmp");
    assert_ne!(temporary, place, "a file is not written over in place");
    let write = || -> std::io::Result<()> {
        let mut file = fs::File::create(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, place)?;
        place.parent().map_or(Ok(()), sync)
    };
    write().map_err(|error| io_error(format!("cannot write {}", place.display()), error))
}

/// Makes the content of a file, or the names in a directory, durable.
///
/// # Errors
/// What the operating system reports.
#[allow(
    clippy::disallowed_methods,
    reason = "files belong to storage, and this is storage"
)]
pub fn sync(path: &Path) -> std::io::Result<()> {
    fs::File::open(path)?.sync_all()
}

/// Sorts an error of the operating system into the variant a caller can act on.
#[must_use]
pub fn io_error(context: String, source: std::io::Error) -> StorageError {
    use std::io::ErrorKind;
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            StorageError::Full(format!("{context}: {source}"))
        }
        ErrorKind::ReadOnlyFilesystem => StorageError::ReadOnly(format!("{context}: {source}")),
        _ => StorageError::Io { context, source },
    }
}

/// Size in bytes and CRC-32 of a file.
///
/// # Errors
/// [`StorageError::Io`] when it cannot be read.
pub fn checksum(path: &Path) -> Result<(u64, u32), StorageError> {
    read_through(path, |_| Ok(()))
}

/// Copies a file durably; size in bytes and CRC-32 of what was copied.
///
/// # Errors
/// [`StorageError::Io`] or [`StorageError::Full`].
pub fn copy(from: &Path, to: &Path) -> Result<(u64, u32), StorageError> {
    let context = |error| io_error(format!("cannot write {}", to.display()), error);
    let mut target = fs::File::create_new(to).map_err(context)?;
    let copied = read_through(from, |bytes| target.write_all(bytes).map_err(context))?;
    target.sync_all().map_err(context)?;
    Ok(copied)
}

#[allow(
    clippy::disallowed_methods,
    reason = "files belong to storage, and this is storage"
)]
fn read_through(
    path: &Path,
    mut each: impl FnMut(&[u8]) -> Result<(), StorageError>,
) -> Result<(u64, u32), StorageError> {
    let context = |error| io_error(format!("cannot read {}", path.display()), error);
    let mut file = fs::File::open(path).map_err(context)?;
    let mut buffer = vec![0; 256 << 10];
    let mut hasher = crc32fast::Hasher::new();
    let mut size_bytes = 0;
    loop {
        let count = file.read(&mut buffer).map_err(context)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
            return Ok((size_bytes, hasher.finalize()));
        };
        hasher.update(part);
        size_bytes += part.len() as u64;
        each(part)?;
    }
}

/// Paths of all files below `directory`, relative to it, sorted.
///
/// # Errors
/// [`StorageError::Io`] when a directory cannot be listed.
pub fn below(directory: &Path) -> Result<Vec<PathBuf>, StorageError> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let place = directory.join(&folder);
        let context = |error| io_error(format!("cannot list {}", place.display()), error);
        for entry in fs::read_dir(&place).map_err(context)? {
            let entry = entry.map_err(context)?;
            let path = folder.join(entry.file_name());
            if entry.file_type().map_err(context)?.is_dir() {
                open.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
