//! Names of files, and who may write them.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};

use super::DiskError;
use super::header::FileKind;
use super::journal::{Disk, Output};

const IDENTITY: &str = "identity";
const LOCK: &str = "lock";
/// What names end with whose files are not whole yet.
const NEW: &str = ".new";

/// A directory of batches.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

/// Whose turn it is to write; for as long as this lives.
#[derive(Debug)]
pub struct Turn {
    _lock: File,
}

/// Bytes of files, and which they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Of batches.
    pub batches: u64,
    /// Of checkpoints.
    pub checkpoints: u64,
}

impl Directory {
    /// Opens a directory, made when missing; nobody but its owner reads rows there.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(DiskError::io(path))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of this directory: `draw`, if it has none yet. Of several that ask at once all hear
    /// the same. Never 0.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn identity(&self, draw: u64) -> Result<u64, DiskError> {
        let path = self.path.join(IDENTITY);
        if !path.exists() {
            let draft = self.path.join(format!("{IDENTITY}-{draw:016x}{NEW}"));
            let text = format!("{:016x}\n", draw | 1);
            let written = write_whole(&draft, text.as_bytes());
            // Whoever is first gives the name; a link takes none that is given.
            let linked = written.and_then(|()| match fs::hard_link(&draft, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                done => done,
            });
            let _ = fs::remove_file(&draft); // or it is left over, and nobody's
            linked
                .and_then(|()| self.sync())
                .map_err(DiskError::io(&path))?;
        }
        let text = fs::read_to_string(&path).map_err(DiskError::io(&path))?;
        let number = u64::from_str_radix(text.trim_end(), 16).ok();
        number
            .filter(|number| *number > 0)
            .ok_or(DiskError::Unrecognized(path))
    }

    /// Takes the turn; none: it is somebody else's.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    pub fn take_turn(&self) -> Result<Option<Turn>, DiskError> {
        let path = self.path.join(LOCK);
        let mut options = File::options();
        let file = options.create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(DiskError::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Turn { _lock: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(DiskError::Io(path, error)),
        }
    }

    /// The name of a file.
    #[must_use]
    pub fn name(kind: FileKind, number: u64) -> String {
        let prefix = prefix(kind);
        let name = format!("{prefix}{number:020}");
        assert_eq!(
            name.len(),
            prefix.len() + 20,
            "names of files are in the order of their numbers"
        );
        assert_eq!(
            Self::number(kind, &name),
            Some(number),
            "a file is found by the number in its name"
        );
        name
    }

    /// The number in the name of a file of a kind.
    fn number(kind: FileKind, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(prefix(kind))?;
        digits.parse().ok()
    }

    /// Files of a kind by their numbers, in rising order.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    pub fn files(&self, kind: FileKind) -> Result<Vec<(u64, PathBuf)>, DiskError> {
        let io = |error| DiskError::Io(self.path.clone(), error);
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| Self::number(kind, name));
            files.extend(number.map(|number| (number, entry.path())));
        }
        files.sort();
        Ok(files)
    }

    /// Whether anything is written in it.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    pub fn has_rows(&self) -> Result<bool, DiskError> {
        Ok(!self.files(FileKind::Checkpoint)?.is_empty()
            || !self.files(FileKind::Batches)?.is_empty())
    }

    /// Bytes of its files.
    ///
    /// # Errors
    /// [`DiskError::Io`].
    pub fn sizes(&self) -> Result<Sizes, DiskError> {
        let bytes = |kind| {
            let files = self.files(kind)?.into_iter();
            // One that goes meanwhile has none.
            let sizes = files.filter_map(|(_, path)| fs::metadata(path).ok());
            Ok::<u64, DiskError>(sizes.map(|found| found.len()).sum())
        };
        Ok(Sizes {
            batches: bytes(FileKind::Batches)?,
            checkpoints: bytes(FileKind::Checkpoint)?,
        })
    }

    /// Removes what is needed no more beside the checkpoint of a number.
    ///
    /// # Errors
    /// [`DiskError::Io`]; what is left is removed next time.
    pub fn remove_before(&self, number: u64) -> Result<(), DiskError> {
        for kind in [FileKind::Batches, FileKind::Checkpoint] {
            for (_, path) in self
                .files(kind)?
                .iter()
                .filter(|(found, _)| *found < number)
            {
                fs::remove_file(path).map_err(DiskError::io(path))?;
            }
        }
        self.sync().map_err(DiskError::io(&self.path))
    }

    /// Gives a file its name, for good.
    pub(super) fn rename(&self, draft: &Path, name: &str) -> io::Result<()> {
        fs::rename(draft, self.path.join(name))?;
        self.sync()
    }

    /// Where a file is while it is not whole.
    pub(super) fn draft(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}{NEW}"))
    }

    /// Names are on disk for good.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

fn prefix(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Batches => "batches-",
        FileKind::Checkpoint => "checkpoint-",
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

impl Disk for Directory {
    fn create(&self, name: &str, bytes: &[u8]) -> io::Result<Box<dyn Output>> {
        let draft = self.draft(name);
        write_whole(&draft, bytes)?;
        let file = File::options().write(true).open(&draft)?;
        self.rename(&draft, name)?;
        Ok(Box::new(file))
    }
}

impl Output for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_cannot_be_is_named() {
        let found = Directory::open(Path::new("/proc/none")).map(drop);
        assert!(found.unwrap_err().to_string().starts_with("/proc/none: "));
    }
}
