//! Files filled ahead of their use, so that no commit waits for one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use parking_lot::Mutex;

use super::segment;
use crate::engine::StorageError;
use crate::files::io_error;

/// Files kept for reuse; more are removed.
const KEPT: usize = 8;

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

impl Ready {
    fn new_path(&self) -> PathBuf {
        let mut files = self.files.lock();
        files.made += 1;
        self.directory.join(format!("spare-{}", files.made))
    }

    fn fill_one(&self) {
        if !self.files.lock().paths.is_empty() {
            return;
        }
        let path = self.new_path();
        match segment::fill(&path, self.length) {
            Ok(()) => self.files.lock().paths.push(path),
            // Whoever needs it tries again, and says what is wrong.
            Err(error) => tracing::warn!(%error, "no spare file for the commit log"),
        }
    }
}

impl Spares {
    /// Takes over the spare files in `directory` that are `length` bytes long; removes others.
    ///
    /// # Errors
    /// [`StorageError::Io`] when the directory cannot be read or no thread can be made.
    pub fn open(directory: &Path, length: u64) -> Result<Self, StorageError> {
        let context = |error| io_error(format!("cannot read {}", directory.display()), error);
        let ready = Arc::new(Ready {
            directory: directory.to_owned(),
            length,
            files: Mutex::default(),
        });
        let mut old = Vec::new();
        for entry in fs::read_dir(directory).map_err(context)? {
            let entry = entry.map_err(context)?;
            if entry.file_name().to_string_lossy().starts_with("spare-") {
                old.push((entry.path(), entry.metadata().map_err(context)?.len()));
            }
        }
        // Under their old names a new one could meet them.
        old.sort();
        for (at, (path, found_length)) in old.into_iter().enumerate() {
            let kept = directory.join(format!("spare-kept-{at}"));
            let usable = found_length == length && at < KEPT && fs::rename(&path, &kept).is_ok();
            if usable {
                ready.files.lock().paths.push(kept);
            } else {
                let _ = fs::remove_file(path);
            }
        }
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
            let path = self.ready.new_path();
            segment::fill(&path, length)?;
            return Ok(path);
        }
        let ready = self.ready.files.lock().paths.pop();
        let path = match ready {
            Some(path) => path,
            None => {
                let path = self.ready.new_path();
                segment::fill(&path, self.ready.length)?;
                path
            }
        };
        self.order();
        Ok(path)
    }

    /// Takes back a file whose records are needed no more.
    pub fn give_back(&self, path: &Path) {
        let is_usual = fs::metadata(path).is_ok_and(|metadata| metadata.len() == self.ready.length);
        let has_place = self.ready.files.lock().paths.len() < KEPT;
        if is_usual && has_place {
            let spare = self.ready.new_path();
            if fs::rename(path, &spare).is_ok() {
                self.ready.files.lock().paths.push(spare);
                return;
            }
        }
        // A file that cannot be removed is found obsolete at the next start.
        let _ = fs::remove_file(path);
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
