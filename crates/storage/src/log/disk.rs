//! Every change the log makes to its files: in one place, so that tests can have each of them fail
//! and can cut the power between any two ([`super::power`]).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::error::StorageError;
use crate::files::{self, io_error};

#[cfg(test)]
use super::power::{Change, before};

/// Without tests nothing watches.
#[cfg(not(test))]
macro_rules! watched {
    ($change:ident { $($field:ident : $value:expr),* }) => {};
}

#[cfg(test)]
macro_rules! watched {
    ($change:ident { $($field:ident : $value:expr),* }) => {
        before(Change::$change { $($field: $value.to_owned()),* })?;
    };
}

/// Makes a folder, and those above it that are missing, so that a crash leaves them in place.
///
/// # Errors
/// [`StorageError::Full`], [`StorageError::ReadOnly`] or [`StorageError::Io`].
pub fn create_folder(path: &Path) -> Result<(), StorageError> {
    let above = path
        .parent()
        .filter(|above| !above.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    if !above.exists() {
        create_folder(above)?;
    }
    make_folder(path, above)
        .map_err(|error| io_error(format!("cannot create {}", path.display()), error))
}

fn make_folder(path: &Path, above: &Path) -> io::Result<()> {
    if !path.is_dir() {
        watched!(CreateFolder { path: path });
        fs::create_dir(path)?;
    }
    // Also when it was there: who made it may have been killed before this. Who may not list the
    // folder above cannot sync it.
    match sync_folder(above) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Makes a file that is not there.
pub fn create(path: &Path) -> io::Result<File> {
    watched!(Create { path: path });
    File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
}

/// Writes all of `bytes` into the file at `path`; in the operating system then.
pub fn write_at(file: &File, path: &Path, bytes: &[u8], offset: u64) -> io::Result<()> {
    let _ = path;
    watched!(Write {
        path: path,
        offset: offset,
        bytes: bytes
    });
    file.write_all_at(bytes, offset)
}

/// Waits until what was written into the file at `path` is on disk.
pub fn sync(file: &File, path: &Path) -> io::Result<()> {
    let _ = path;
    watched!(Sync { path: path });
    file.sync_data()
}

/// Gives a file another name, which nothing may have.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    watched!(Rename { from: from, to: to });
    fs::rename(from, to)
}

/// Removes a file.
pub fn remove(path: &Path) -> io::Result<()> {
    watched!(Remove { path: path });
    fs::remove_file(path)
}

/// Waits until the names in a folder are on disk.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    watched!(SyncFolder { path: path });
    files::sync(path)
}
