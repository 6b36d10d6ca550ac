//! Files filled ahead of their use, so that no commit waits for one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use super::{disk, segment};
use crate::error::StorageError;
use crate::files::io_error;

/// Files kept for reuse; more are removed.
const KEPT: usize = 8;
/// What the names of spare files begin with.
const SPARE: &str = "spare-";
/// And of those not filled yet.
const FILLING: &str = "filling-";

/// Whether a file of the log's folder with this name holds no record that counts.
pub fn is_spare(name: &str) -> bool {
    name.starts_with(SPARE) || name.starts_with(FILLING)
}

/// The spare files of a log, and the thread that fills a new one when the last is taken.
pub struct Spares {
    ready: Arc<Ready>,
    wanted: Option<SyncSender<()>>,
    filler: Option<JoinHandle<()>>,
}

struct Ready {
    directory: PathBuf,
    length: u64,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    paths: Vec<PathBuf>,
    made: u64,
}

impl Files {
    /// Takes over a file that nobody writes.
    fn add(&mut self, path: PathBuf) {
        assert!(
            !self.paths.contains(&path),
            "a file is lent to one segment at a time"
        );
        self.paths.push(path);
        // The filler may add one while others come back.
        assert!(self.paths.len() <= KEPT + 1, "spare files have a limit");
    }
}

impl Ready {
    /// A name no file has.
    fn new_number(&self) -> u64 {
        let mut files = self.files.lock();
        files.made += 1;
        files.made
    }

    fn spare(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{SPARE}{number}"))
    }

    /// Makes a file of `length` zeros. It is called a spare when all of it is on disk: what a
    /// crash leaves half filled must not be used, since its blocks would be missing later.
    fn fill(&self, length: u64) -> Result<PathBuf, StorageError> {
        assert!(
            length >= self.length,
            "a spare file has room for a whole segment: {length} of {}",
            self.length
        );
        let number = self.new_number();
        let filling = self.directory.join(format!("{FILLING}{number}"));
        let spare = self.spare(number);
        segment::fill(&filling, length)?;
        disk::rename(&filling, &spare).map_err(|error| {
            // The error that stopped the making is the one to report.
            let _ = disk::remove(&filling);
            io_error(format!("cannot make {}", spare.display()), error)
        })?;
        Ok(spare)
    }

    fn fill_one(&self) {
        if !self.files.lock().paths.is_empty() {
            return;
        }
        match self.fill(self.length) {
            Ok(path) => self.files.lock().add(path),
            // Whoever needs it tries again, and says what is wrong.
            Err(error) => tracing::warn!(%error, "no spare file for the commit log"),
        }
    }

    /// Takes over the spare files that are there; removes others.
    fn adopt(&self) -> Result<(), StorageError> {
        let context = |error| io_error(format!("cannot read {}", self.directory.display()), error);
        let mut files = self.files.lock();
        for entry in fs::read_dir(&self.directory).map_err(context)? {
            let entry = entry.map_err(context)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_whole = name.starts_with(SPARE);
            if !is_whole && !name.starts_with(FILLING) {
                continue;
            }
            // New ones get higher numbers, so that they meet none of these.
            let number = name
                .rsplit('-')
                .next()
                .and_then(|number| number.parse().ok());
            files.made = files.made.max(number.unwrap_or(0));
            let length = entry.metadata().map_err(context)?.len();
            if is_whole && length == self.length && files.paths.len() < KEPT {
                files.add(entry.path());
            } else {
                // One that cannot be removed is met again at the next start.
                let _ = disk::remove(&entry.path());
            }
        }
        Ok(())
    }
}

impl Spares {
    /// Takes over the spare files in `directory` that are `length` bytes long; removes others.
    ///
    /// # Errors
    /// [`StorageError::Io`] when the directory cannot be read or no thread can be made.
    pub fn open(directory: &Path, length: u64) -> Result<Self, StorageError> {
        let ready = Arc::new(Ready {
            directory: directory.to_owned(),
            length,
            files: Mutex::default(),
        });
        ready.adopt()?;
        let (wanted, orders) = sync_channel(1);
        let worker = Arc::clone(&ready);
        #[allow(
            clippy::disallowed_methods,
            reason = "files are filled beside the commits; nothing observable depends on when"
        )]
        let filler = std::thread::Builder::new()
            .name("log-filler".to_owned())
            .spawn(move || {
                while orders.recv().is_ok() {
                    worker.fill_one();
                }
            })
            .map_err(|error| io_error("cannot start the log's filler".to_owned(), error))?;
        let spares = Self {
            ready,
            wanted: Some(wanted),
            filler: Some(filler),
        };
        spares.order();
        Ok(spares)
    }

    /// Asks for a spare without waiting; one order at a time is enough.
    fn order(&self) {
        if let Some(wanted) = &self.wanted {
            let _ = wanted.try_send(());
        }
    }

    /// A file of at least `length` zeros or old records, made now if none is ready.
    ///
    /// # Errors
    /// [`StorageError::Full`], [`StorageError::ReadOnly`] or [`StorageError::Io`]; nothing is left.
    pub fn take(&self, length: u64) -> Result<PathBuf, StorageError> {
        if length > self.ready.length {
            return self.ready.fill(length);
        }
        let ready = self.ready.files.lock().paths.pop();
        let path = match ready {
            Some(path) => path,
            None => self.ready.fill(self.ready.length)?,
        };
        self.order();
        Ok(path)
    }

    /// Removes the spare files: some were segments, and hold old records.
    ///
    /// # Errors
    /// [`StorageError::Io`] when one cannot be removed.
    pub fn remove_all(&self) -> Result<(), StorageError> {
        let mut files = self.ready.files.lock();
        while let Some(path) = files.paths.last() {
            disk::remove(path)
                .map_err(|error| io_error(format!("cannot remove {}", path.display()), error))?;
            files.paths.pop();
        }
        Ok(())
    }

    /// Takes back a file whose records are needed no more.
    pub fn give_back(&self, path: &Path) {
        let is_usual = fs::metadata(path).is_ok_and(|metadata| metadata.len() == self.ready.length);
        let has_place = self.ready.files.lock().paths.len() < KEPT;
        if is_usual && has_place {
            let spare = self.ready.spare(self.ready.new_number());
            if disk::rename(path, &spare).is_ok() {
                self.ready.files.lock().add(spare);
                return;
            }
        }
        // One that cannot be removed is found obsolete at the next start.
        let _ = disk::remove(path);
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.wanted = None;
        if let Some(filler) = self.filler.take() {
            // A panic there left at most a file without a use.
            let _ = filler.join();
        }
    }
}
