//! Keys and certificates as PEM files.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Why a key or certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// A file could not be read or written.
    #[error("key file {path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is no PEM of the right kind.
    #[error("key file {path} holds no usable {what}: {reason}")]
    Content {
        /// Which file.
        path: PathBuf,
        /// What should be in it.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// Certificate and key do not fit, or none could be made.
    #[error("keys: {0}")]
    Setup(String),
}

impl KeyFileError {
    /// What was read from `path` is not what it should be.
    pub(crate) fn content(path: &Path, what: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Content {
            path: path.to_owned(),
            what,
            reason: reason.to_string(),
        }
    }

    fn file(path: &Path, source: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            source,
        }
    }
}

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// The server's own user.
    Owner,
    /// Everybody who can reach the directory.
    All,
}

/// All bytes of `path`.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, KeyFileError> {
    fs::read(path).map_err(|source| KeyFileError::file(path, source))
}

/// Writes `path` whole or not at all, durably: a start that is interrupted leaves no half key behind,
/// which the next start would stumble over.
pub(crate) fn write(path: &Path, bytes: &[u8], readers: Readers) -> Result<(), KeyFileError> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part).to_owned();
    write_and_rename(&part, path, bytes, readers).map_err(|source| KeyFileError::file(path, source))
}

fn write_and_rename(part: &Path, path: &Path, bytes: &[u8], readers: Readers) -> io::Result<()> {
    // What an interrupted start left may have other readers.
    match fs::remove_file(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    let mode = match readers {
        Readers::Owner => 0o600,
        Readers::All => 0o644,
    };
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    let mut file = options.open(part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(part, path)?;
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    sync_directory(directory.unwrap_or(Path::new(".")))
}

/// The new name outlives a crash.
#[allow(
    clippy::disallowed_methods,
    reason = "the directory of a file of keys is no file of the store"
)]
fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_private_file_is_for_its_owner_even_after_an_interrupted_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key.pem");
        fs::write(directory.path().join("key.pem.part"), "half").unwrap();
        write(&path, b"whole", Readers::Owner).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
