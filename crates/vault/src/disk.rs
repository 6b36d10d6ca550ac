//! What a vault asks of its two places.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// One of the two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Written first.
    First,
    /// Written when the first is on disk.
    Mirror,
}

impl Place {
    /// Both, in the order in which they are written.
    pub const BOTH: [Self; 2] = [Self::First, Self::Mirror];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::First => "first place",
            Self::Mirror => "mirror",
        }
    }
}

/// A file in each of two places.
pub trait Disk: Send + Sync {
    /// Bytes that the file has.
    ///
    /// # Errors
    /// The operating system's.
    fn length(&self, place: Place) -> io::Result<u64>;

    /// Reads from `offset`; how many bytes there were, fewer than asked for only at the end.
    ///
    /// # Errors
    /// The operating system's.
    fn read(&self, place: Place, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;

    /// Overwrites in place, and makes the file longer where it ends before. In the operating system
    /// then, not on disk.
    ///
    /// # Errors
    /// The operating system's.
    fn write(&self, place: Place, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Waits until what was written, and the file's length, are on disk.
    ///
    /// # Errors
    /// The operating system's: nothing is known then of what was written since the last.
    fn sync(&self, place: Place) -> io::Result<()>;
}

/// A disk that others hold too.
impl<D: Disk + ?Sized> Disk for Arc<D> {
    fn length(&self, place: Place) -> io::Result<u64> {
        (**self).length(place)
    }

    fn read(&self, place: Place, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        (**self).read(place, offset, bytes)
    }

    fn write(&self, place: Place, offset: u64, bytes: &[u8]) -> io::Result<()> {
        (**self).write(place, offset, bytes)
    }

    fn sync(&self, place: Place) -> io::Result<()> {
        (**self).sync(place)
    }
}

/// Name of the file in each place.
const FILE_NAME: &str = "keys.vault";
/// Name of the audit beside it.
const AUDIT_NAME: &str = "audit.log";

/// Two files in two folders.
#[derive(Debug)]
pub struct FileDisk {
    first: File,
    mirror: File,
}

impl FileDisk {
    /// Opens the files, and makes those that are missing, for their owner alone to read.
    ///
    /// # Errors
    /// The operating system's; `InvalidInput` when both are one place, `ResourceBusy` when another server
    /// has them.
    pub fn open(first: &Path, mirror: &Path) -> io::Result<Self> {
        Self::open_as(first, mirror, FILE_NAME)
    }

    /// As [`FileDisk::open`], for the audit that lies beside the keys.
    ///
    /// # Errors
    /// As [`FileDisk::open`].
    pub fn open_audit(first: &Path, mirror: &Path) -> io::Result<Self> {
        Self::open_as(first, mirror, AUDIT_NAME)
    }

    fn open_as(first: &Path, mirror: &Path, name: &str) -> io::Result<Self> {
        let (first, mirror) = (folder(first)?, folder(mirror)?);
        if first == mirror {
            let text = format!("both places are {}", first.display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Ok(Self {
            first: open_file(&first, name)?,
            mirror: open_file(&mirror, name)?,
        })
    }

    /// Whether there is a vault in either of two folders. Makes nothing.
    #[must_use]
    pub fn is_there(first: &Path, mirror: &Path) -> bool {
        [first, mirror].iter().any(|place| {
            let file = fs::metadata(place.join(FILE_NAME));
            file.is_ok_and(|file| file.len() > 0)
        })
    }

    fn file(&self, place: Place) -> &File {
        match place {
            Place::First => &self.first,
            Place::Mirror => &self.mirror,
        }
    }
}

/// The folder, made if it is missing, by its real name.
fn folder(path: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(path)?;
    let path = fs::canonicalize(path)?;
    // The folder's own name is on disk before a key in it is relied on.
    if let Some(above) = path.parent() {
        match sync_folder(above) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(path)
}

fn open_file(folder: &Path, name: &str) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(folder.join(name))?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        let text = format!("{} is in use by another server", folder.display());
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
    }
    sync_folder(folder)?;
    Ok(file)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::options().read(true).open(path)?.sync_all()
}

impl Disk for FileDisk {
    fn length(&self, place: Place) -> io::Result<u64> {
        Ok(self.file(place).metadata()?.len())
    }

    fn read(&self, place: Place, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            match self
                .file(place)
                .read_at(&mut bytes[done..], offset + done as u64)
            {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write(&self, place: Place, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file(place).write_all_at(bytes, offset)
    }

    fn sync(&self, place: Place) -> io::Result<()> {
        self.file(place).sync_data()
    }
}

/// Two files in memory: for tests, and for keys that need not outlive the process.
#[derive(Debug, Default)]
pub struct MemoryDisk(Mutex<[Vec<u8>; 2]>);

impl MemoryDisk {
    /// A disk that holds these bytes in its two places.
    #[must_use]
    pub fn holding(first: Vec<u8>, mirror: Vec<u8>) -> Self {
        Self(Mutex::new([first, mirror]))
    }

    /// All that is in a place.
    #[must_use]
    pub fn bytes(&self, place: Place) -> Vec<u8> {
        self.0.lock()[place as usize].clone()
    }
}

impl Disk for MemoryDisk {
    fn length(&self, place: Place) -> io::Result<u64> {
        Ok(self.0.lock()[place as usize].len() as u64)
    }

    fn read(&self, place: Place, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let all = self.0.lock();
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let there = all[place as usize].get(from..).unwrap_or_default();
        let count = there.len().min(bytes.len());
        bytes[..count].copy_from_slice(&there[..count]);
        Ok(count)
    }

    fn write(&self, place: Place, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.0.lock();
        let there = &mut all[place as usize];
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let end = from + bytes.len();
        if there.len() < end {
            there.resize(end, 0);
        }
        there[from..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self, _place: Place) -> io::Result<()> {
        Ok(())
    }
}
