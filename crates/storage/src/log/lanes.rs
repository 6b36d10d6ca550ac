//! Waiting for the disk while others go on writing.
//!
//! Who waits holds no lock of the log: the next batch is written meanwhile, and its wait may begin
//! before this one ends. The system then has the next flush of the disk's cache in its queue when
//! one is done, and sends one for all that wait, where otherwise the disk would idle until a
//! thread was woken up to ask.
//!
//! A failed write is told once to each open file. So each lane has the file opened for itself,
//! else one wait would take away the error of another; and after an error no wait of the segment
//! ends well, since what was not told again is not known to be on disk.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::{Counters, disk};
use crate::error::StorageError;

/// Waits for the disk at a time; more wait for one of these.
const LANES: usize = 4;

/// How far a segment is written and on disk, and the ways to wait for it.
#[derive(Debug)]
pub struct Lanes {
    files: [Mutex<File>; LANES],
    written_to: AtomicU64,
    synced_to: AtomicU64,
    has_failed: AtomicBool,
    counters: Arc<Counters>,
}

impl Lanes {
    /// Over the file at `path`, which is on disk up to `end`; each wait is counted.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn open(path: &Path, end: u64, counters: &Arc<Counters>) -> std::io::Result<Self> {
        let open = || File::options().write(true).open(path).map(Mutex::new);
        Ok(Self {
            files: [open()?, open()?, open()?, open()?],
            written_to: AtomicU64::new(end),
            synced_to: AtomicU64::new(end),
            has_failed: AtomicBool::new(false),
            counters: Arc::clone(counters),
        })
    }

    /// How far the segment is known to be on disk.
    pub fn synced_to(&self) -> u64 {
        self.synced_to.load(Ordering::Acquire)
    }

    /// The operating system has the segment up to `end`.
    pub fn written(&self, end: u64) {
        let before = self.written_to.fetch_max(end, Ordering::AcqRel);
        assert!(before < end, "a segment is written from front to back");
        assert!(
            self.synced_to() <= end,
            "nothing is on disk that was not written"
        );
    }

    /// Waits until the segment is on disk up to `end`.
    ///
    /// # Errors
    /// What the operating system reports, now or to an earlier wait: what of the segment is on
    /// disk is not known.
    pub fn sync_to(&self, end: u64, path: &Path) -> std::io::Result<()> {
        if self.synced_to() >= end {
            return Ok(());
        }
        let file = self.free_lane();
        // A wait that began after this batch was written may have ended meanwhile.
        if self.synced_to() >= end {
            return Ok(());
        }
        if self.has_failed.load(Ordering::Acquire) {
            return Err(std::io::Error::other("an earlier sync failed"));
        }
        let written_to = self.written_to.load(Ordering::Acquire);
        // The sync covers what was written before it and nothing else: a caller that asks for more
        // would acknowledge a commit that no sync covers.
        assert!(
            written_to >= end,
            "a sync covers only what was written before it"
        );
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        disk::sync(&file, path).inspect_err(|_| self.has_failed.store(true, Ordering::Release))?;
        self.synced_to.fetch_max(written_to, Ordering::AcqRel);
        let synced_to = self.synced_to();
        assert!(synced_to >= end, "an acknowledged batch is on disk");
        assert!(
            synced_to <= self.written_to.load(Ordering::Acquire),
            "a wait ends at what was written"
        );
        Ok(())
    }

    /// A lane nobody uses, or the first once it is free.
    fn free_lane(&self) -> MutexGuard<'_, File> {
        let free = self.files.iter().find_map(Mutex::try_lock);
        free.unwrap_or_else(|| self.files[0].lock())
    }
}

/// A batch that is in the operating system and may not be on disk yet.
#[derive(Debug, Clone)]
pub struct Unsynced {
    pub(super) lanes: Arc<Lanes>,
    pub(super) path: Arc<Path>,
    pub(super) end: u64,
}

impl Unsynced {
    /// Waits until the batch and all before it are on disk.
    ///
    /// # Errors
    /// [`StorageError::Io`]: whether the batch is there is not known. Nothing may follow it:
    /// [`super::CommitLog::stop`].
    pub fn wait(&self) -> Result<(), StorageError> {
        let synced = self.lanes.sync_to(self.end, &self.path);
        synced.map_err(|error| unknown("sync", &self.path, error))
    }
}

/// Never [`StorageError::Full`] or [`StorageError::ReadOnly`], which promise that nothing was
/// written.
pub fn unknown(what: &str, path: &Path, source: std::io::Error) -> StorageError {
    StorageError::Io {
        context: format!("cannot {what} the commit log {}", path.display()),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::super::power::Watch;
    use super::*;
    use std::path::PathBuf;

    fn lanes(watch: &Watch) -> (Lanes, PathBuf) {
        let path = watch.root().join("segment");
        std::fs::write(&path, [0; 512]).unwrap();
        let lanes = Lanes::open(&path, 64, &Arc::default()).unwrap();
        (lanes, path)
    }

    #[test]
    fn one_wait_serves_all_that_was_written_before_it() {
        let watch = Watch::new();
        let (lanes, path) = lanes(&watch);
        lanes.written(100);
        lanes.written(200);
        for end in [100, 200, 64] {
            lanes.sync_to(end, &path).unwrap();
            assert_eq!((lanes.synced_to(), watch.count()), (200, 1));
        }
        lanes.written(300);
        lanes.sync_to(300, &path).unwrap();
        assert_eq!((lanes.synced_to(), watch.count()), (300, 2));
    }

    #[test]
    #[should_panic(expected = "a sync covers only what was written before it")]
    fn a_batch_that_was_not_written_is_never_acknowledged() {
        let watch = Watch::new();
        let (lanes, path) = lanes(&watch);
        lanes.written(100);
        // A caller that forgot to say that the batch behind 100 is written.
        let _ = lanes.sync_to(200, &path);
    }

    /// The system tells the error once: who asks again would hear that all is well.
    #[test]
    fn after_a_wait_that_failed_none_of_the_segment_ends_well() {
        let watch = Watch::new();
        let (lanes, path) = lanes(&watch);
        lanes.written(100);
        lanes.sync_to(100, &path).unwrap();
        lanes.written(200);
        watch.fail_after(0);
        assert!(lanes.sync_to(200, &path).is_err());
        assert!(watch.has_failed());
        lanes.written(300);
        for end in [200, 300] {
            assert!(lanes.sync_to(end, &path).is_err());
        }
        // What was on disk before stays there.
        lanes.sync_to(100, &path).unwrap();
        assert_eq!(lanes.synced_to(), 100);
    }
}
