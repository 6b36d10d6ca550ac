//! Where the rows of a replica lie on disk: a directory for each state that it has had, by number.
//!
//! ```text
//! data directory/replicated/7/     the state that the journal names
//! data directory/replicated/8/     a copy that is coming in
//! ```
//!
//! Numbers grow. The journal's newest record of the whole log names the state that counts; smaller numbers
//! are of earlier states and go when that record is on disk, larger ones are of copies that never came to
//! their end and go when the process starts.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_curp::StateError;
use manxdb_storage::{Options, RocksEngine, StorageError};

/// The folder of a data directory.
pub const FOLDER: &str = "replicated";
/// Free space that commits leave, in bytes: what backups and compactions write has to find room too.
pub const RESERVE_BYTES: u64 = 128 << 20;

/// The directory of a replica's states.
#[derive(Debug)]
pub struct Home {
    directory: PathBuf,
    options: Options,
    next: AtomicU64,
}

impl Home {
    /// In a data directory, made when it is missing. States are opened with `options`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn open(data: &Path, options: Options) -> io::Result<Arc<Self>> {
        let directory = data.join(FOLDER);
        std::fs::create_dir_all(&directory)?;
        // A record of the journal in this directory may name a state: neither is there without the other.
        std::fs::File::open(data)?.sync_all()?;
        let home = Self {
            directory,
            options,
            next: AtomicU64::new(1),
        };
        let newest = home.numbers()?.into_iter().max().unwrap_or(0);
        home.next.store(newest.saturating_add(1), Ordering::SeqCst);
        Ok(Arc::new(home))
    }

    /// The directory of all states.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        Ok(numbers)
    }

    /// A number that no state has had.
    pub(super) fn take_number(&self) -> u64 {
        let number = self.next.fetch_add(1, Ordering::SeqCst);
        assert!(number > 0, "states are numbered from 1 on");
        number
    }

    /// A number is known from a record: later ones are larger.
    pub(super) fn knows(&self, number: u64) {
        let next = number.saturating_add(1);
        self.next.fetch_max(next, Ordering::SeqCst);
    }

    /// The directory of a state.
    pub(super) fn path(&self, number: u64) -> PathBuf {
        self.directory.join(number.to_string())
    }

    pub(super) fn open_engine(&self, number: u64) -> Result<RocksEngine, StateError> {
        let path = self.path(number);
        RocksEngine::open(&path, &self.options).map_err(|error| self.failed(&error))
    }

    /// Removes the states whose numbers are wanted gone. What cannot be removed is tried again with the next.
    pub(super) fn remove(&self, is_gone: impl Fn(u64) -> bool) {
        let numbers = self.numbers().unwrap_or_default();
        for number in numbers.into_iter().filter(|number| is_gone(*number)) {
            let path = self.path(number);
            if let Err(error) = std::fs::remove_dir_all(&path) {
                tracing::warn!(path = %path.display(), %error, "an earlier state of the rows stays on disk");
            }
        }
    }

    /// Why a server stops, with the way out.
    pub(super) fn failed(&self, error: &StorageError) -> StateError {
        let directory = self.directory.display();
        StateError::Store(match error {
            StorageError::Full(_) => format!(
                "the replicated rows in {directory} cannot be written: {error}. Make room and start this \
                 server again: it goes on where it was"
            ),
            StorageError::Corrupt(_) | StorageError::Format(_) | StorageError::Engine(_) => {
                format!(
                    "the replicated rows in {directory} cannot be read: {error}. Start this server with an \
                 empty data directory; it then gets everything from the others"
                )
            }
            _ => format!("the replicated rows in {directory}: {error}"),
        })
    }

    /// Why a transaction that writes so many bytes finds no room; nothing when it does.
    #[must_use]
    pub fn lacks_room(&self, bytes: usize) -> Option<String> {
        let found = rustix::fs::statvfs(&self.directory).ok()?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        // Its log, its memtable's file and the same of the engine that serves.
        let needed = RESERVE_BYTES.saturating_add((bytes as u64).saturating_mul(4));
        (free < needed).then(|| {
            format!(
                "{} has {free} bytes left, and {needed} are needed: make room on the disk",
                self.directory.display()
            )
        })
    }
}
