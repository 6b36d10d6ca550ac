//! A worker's own directory, for downloads and for outputs until they are uploaded.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";

/// The directory of one worker, removed with it. The next worker that starts beside it removes what
/// a killed one left.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    // Held as long as this lives; the system lets go of it when the process is killed.
    _lock: File,
}

impl Scratch {
    /// Makes a directory below `parent`, which workers may share.
    ///
    /// # Errors
    /// It cannot be written to.
    pub(super) fn new(parent: &Path, name: &str) -> io::Result<Self> {
        fs::create_dir_all(parent)?;
        for entry in fs::read_dir(parent)? {
            remove_if_left(&entry?.path());
        }
        let path = parent.join(name);
        fs::create_dir(&path)?;
        let lock = File::create_new(path.join(LOCK))?;
        lock.lock()?;
        Ok(Self { path, _lock: lock })
    }

    /// Makes an empty directory in it.
    ///
    /// # Errors
    /// The disk is full, or it is there.
    pub(super) fn make(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Removes a directory that [`Scratch::make`] made.
    ///
    /// # Errors
    /// Something of it is left.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_dir_all(self.path.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path); // the next worker removes what is left
    }
}

/// Removes a worker's directory when no worker has it. One that is just being made has no lock
/// yet and is left alone.
fn remove_if_left(path: &Path) {
    let Ok(lock) = OpenOptions::new().write(true).open(path.join(LOCK)) else {
        return;
    };
    match lock.try_lock() {
        Ok(()) => {
            if let Err(error) = fs::remove_dir_all(path) {
                tracing::warn!(%error, path = %path.display(), "a killed worker's files are left");
            }
        }
        Err(TryLockError::WouldBlock) => {} // it works
        Err(TryLockError::Error(error)) => tracing::debug!(%error, "a lock cannot be tried"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_worker_left_goes_and_what_others_have_stays() {
        let parent = tempfile::tempdir().unwrap();
        let alive = Scratch::new(parent.path(), "alive").unwrap();
        fs::write(alive.make("job").unwrap().join("file"), "x").unwrap();
        let dead = parent.path().join("dead");
        fs::create_dir(&dead).unwrap();
        File::create_new(dead.join(LOCK)).unwrap();
        let other = parent.path().join("of nobody here");
        fs::create_dir(&other).unwrap();
        let next = Scratch::new(parent.path(), "next").unwrap();
        assert!(alive.path.join("job/file").exists());
        assert!(!dead.exists() && other.exists());
        drop((alive, next));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
