//! The staging directory beside a database's files: each attempt writes to a directory of its own
//! in it, and the database removes what attempts leave.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use manxdb_jobs::job::{AttemptId, DatabaseId, SessionId};
use parking_lot::Mutex;

use crate::order::STAGING;

/// Name prefixes of all attempts that this process may wait for. A database can be reopened while
/// the service of its former session still exists: neither removes the other's directories.
static SESSIONS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Tries to empty a directory in which a worker still creates files.
const REMOVALS_MAX: usize = 64;
/// Suffix of the names of directories that are being removed.
const ASIDE: &str = "removed";

/// The staging directory of one session of a database.
pub(super) struct Staging {
    path: PathBuf,
    /// Name prefix of this session's attempts.
    own: String,
}

impl Staging {
    /// Makes it, where RocksDB can rename files into the database.
    ///
    /// # Errors
    /// It cannot be made, or lies on another file system.
    pub(super) fn make(
        database: &Path,
        id: DatabaseId,
        session: SessionId,
    ) -> Result<Self, String> {
        let path = database.join(STAGING);
        let named = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(&path).map_err(|error| named(&path, error))?;
        let device = |path: &Path| {
            let found = fs::metadata(path).map_err(|error| named(path, error))?;
            Ok::<_, String>(found.dev())
        };
        if device(&path)? != device(database)? {
            let path = path.display();
            return Err(format!(
                "{path} is on another file system than the database, so that outputs could not be \
                 renamed into it: it must be a plain directory"
            ));
        }
        let own = format!("{:x}-{:x}-", id.0, session.0);
        SESSIONS.lock().insert(own.clone());
        Ok(Self { path, own })
    }

    /// Where an attempt writes.
    pub(super) fn directory(&self, attempt: AttemptId) -> PathBuf {
        self.path.join(attempt.to_string())
    }

    /// Removes what attempts at finished jobs have left, including late ones: nothing else removes
    /// finished outputs of a worker. `waiting` returns the names of unfinished jobs.
    pub(super) fn sweep(&self, waiting: impl FnOnce() -> Vec<String>) {
        let entries = fs::read_dir(&self.path).into_iter().flatten();
        // Listed before it is asked which jobs are waited for: a directory that is there was made
        // for a job that was asked for earlier.
        let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        let (waiting, sessions) = (waiting(), SESSIONS.lock().clone());
        for name in names {
            let text = name.to_string_lossy();
            let attempt_at = |job: &String| {
                let rest = text.strip_prefix(job.as_str());
                rest.is_some_and(|rest| rest.starts_with('-'))
            };
            let is_of =
                |session: &String| *session != self.own && text.starts_with(session.as_str());
            if !waiting.iter().any(attempt_at) && !sessions.iter().any(is_of) {
                remove(&self.path.join(&name));
            }
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        SESSIONS.lock().remove(&self.own);
    }
}

/// Removes an attempt's directory, although its worker may not know yet that the job is over. The
/// directory is renamed first, so that the worker creates no more files in it except those that it
/// is creating at the moment. A file that stays does no harm, and the next sweep removes it.
fn remove(path: &Path) {
    let aside = path.with_extension(ASIDE);
    let path = match fs::rename(path, &aside) {
        Ok(()) => &aside,
        Err(_) => path, // a former one of this name stands there, or it is gone
    };
    for _ in 0..REMOVALS_MAX {
        let removed = if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
        match removed {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) => {
                return tracing::debug!(%error, path = %path.display(), "left for later");
            }
            Ok(()) => return,
        }
    }
    tracing::debug!(path = %path.display(), "files are still made in it; left for later");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sessions_of_a_database_leave_each_other_alone() {
        let database = tempfile::tempdir().unwrap();
        let make = |session| Staging::make(database.path(), DatabaseId(7), SessionId(session));
        let (first, second) = (make(1).unwrap(), make(2).unwrap());
        let names = ["7-1-1-1-a", "7-2-1-1-b", "7-3-1-1-c", "other"];
        for name in names {
            fs::create_dir(first.path.join(name)).unwrap();
        }
        let left = || {
            let there = names.iter().filter(|name| first.path.join(name).exists());
            there.copied().collect::<Vec<_>>()
        };
        second.sweep(|| vec!["7-2-1".to_owned()]);
        assert_eq!(left(), ["7-1-1-1-a", "7-2-1-1-b"]);
        second.sweep(Vec::new);
        assert_eq!(left(), ["7-1-1-1-a"]);
        first.sweep(|| vec!["7-1-10".to_owned()]);
        assert_eq!(left(), [""; 0]);
    }
}
