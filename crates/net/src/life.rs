//! Which life of a node this is, and that it is the only one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use manxdb_core::channel::Life;
use rustix::fs::{FlockOperation, flock};

/// Why a node cannot have its directory.
#[derive(Debug, thiserror::Error)]
pub enum LifeError {
    /// Another process has it.
    #[error("the data directory {} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The counter is not a number.
    #[error("{}: '{text}' is not how often the node has started; remove the cluster's data \
             directory to begin again", .path.display())]
    Counter {
        /// The file.
        path: PathBuf,
        /// What is in it.
        text: String,
    },
    /// The operating system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A node's directory, for as long as the process lives.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    /// Locked until it is closed.
    _lock: File,
}

impl DataDirectory {
    /// Takes `path`, made when missing, for this process alone.
    ///
    /// # Errors
    /// [`LifeError`].
    pub fn open(path: &Path) -> Result<Self, LifeError> {
        let io = |source| LifeError::Io {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(path).map_err(io)?;
        let lock = File::create(path.join("lock")).map_err(io)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LifeError::InUse(path.to_owned())),
            Err(error) => Err(io(error.into())),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next life is the first, whatever lives there were: for who makes a cluster, which has nothing
    /// to remember. Who only starts a node cannot tell a new directory from one that was lost.
    ///
    /// # Errors
    /// [`LifeError::Io`].
    pub fn expect_first_life(&self) -> Result<(), LifeError> {
        self.write_life(0)
    }

    /// Begins the next life: `first` in a directory without a counter. It is on disk before anybody hears
    /// of it, so no two lives are taken for one. A node that may start again with an empty directory begins
    /// with the seconds of the clock: that life must not be taken for an earlier one.
    ///
    /// # Errors
    /// [`LifeError::Counter`], [`LifeError::Io`].
    pub fn begin_life_from(&self, first: u64) -> Result<Life, LifeError> {
        assert!(first > 0, "lives begin with 1");
        let path = self.path.join("life");
        let io = |source| LifeError::Io {
            path: path.clone(),
            source,
        };
        let before = match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse::<u64>().map_err(|_| LifeError::Counter {
                path: path.clone(),
                text,
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => first - 1,
            Err(error) => return Err(io(error)),
        };
        let life = before + 1;
        self.write_life(life)?;
        Ok(Life(life))
    }

    /// Once this returns, the counter is on disk.
    fn write_life(&self, life: u64) -> Result<(), LifeError> {
        let path = self.path.join("life");
        let io = |source| LifeError::Io {
            path: path.clone(),
            source,
        };
        let next = self.path.join("life.next");
        let mut file = File::create(&next).map_err(io)?;
        file.write_all(format!("{life}\n").as_bytes()).map_err(io)?;
        file.sync_all().map_err(io)?;
        fs::rename(&next, &path).map_err(io)?;
        let directory = File::open(&self.path).map_err(io)?;
        directory.sync_all().map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_is_a_new_life() {
        let directory = tempfile::tempdir().unwrap();
        for life in 1..4 {
            let data = DataDirectory::open(directory.path()).unwrap();
            assert_eq!(data.begin_life_from(1).unwrap(), Life(life));
        }
    }

    #[test]
    fn a_node_that_lost_its_directory_goes_on_behind_its_earlier_lives() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDirectory::open(directory.path()).unwrap();
        assert_eq!(data.begin_life_from(1_000).unwrap(), Life(1_000));
        assert_eq!(data.begin_life_from(2_000).unwrap(), Life(1_001));
        fs::remove_file(directory.path().join("life")).unwrap();
        assert_eq!(data.begin_life_from(2_000).unwrap(), Life(2_000));
    }

    #[test]
    fn a_directory_that_was_made_for_a_first_life_begins_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDirectory::open(directory.path()).unwrap();
        data.expect_first_life().unwrap();
        assert_eq!(data.begin_life_from(1_000).unwrap(), Life(1));
        assert_eq!(data.begin_life_from(1_000).unwrap(), Life(2));
        data.expect_first_life().unwrap();
        assert_eq!(data.begin_life_from(1_000).unwrap(), Life(1));
    }

    #[test]
    fn a_directory_has_one_user() {
        let directory = tempfile::tempdir().unwrap();
        let first = DataDirectory::open(directory.path()).unwrap();
        let second = DataDirectory::open(directory.path()).unwrap_err();
        assert!(second.to_string().contains("is in use"), "{second}");
        drop(first);
        DataDirectory::open(directory.path()).unwrap();
    }

    #[test]
    fn a_damaged_counter_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let data = DataDirectory::open(directory.path()).unwrap();
        fs::write(directory.path().join("life"), "seven").unwrap();
        let error = data.begin_life_from(1).unwrap_err().to_string();
        assert!(error.contains("'seven'"), "{error}");
    }
}
