//! Rows that no transaction reads or writes, in the same order of versions.
//!
//! Who owns rows by itself, such as the Redis server its keys, needs no validation: nobody else
//! writes them. What it needs is a version above all before, so that of one key a later write is
//! the newer one, and that versions are published, so that those which nobody sees are let go of.

use manxdb_storage::{Appended, StorageError, Version, WriteBatch};

use super::LocalPath;

/// A key and its value, `None` to delete it.
pub type Row = (Vec<u8>, Option<Vec<u8>>);

/// Rows in the log, perhaps not on disk.
#[derive(Debug)]
pub struct AppendedRows {
    appended: Appended,
    version: Version,
}

impl AppendedRows {
    /// The version that they have.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }
}

impl LocalPath {
    /// Writes rows under one new version; `None` deletes. They outlive the process then, and power loss
    /// after [`LocalPath::sync_rows`]. Only for keys that no intent names and no snapshot reads.
    ///
    /// # Errors
    /// As [`manxdb_storage::Engine::append`]; `rows` is left as it was then, and empty otherwise.
    pub fn append_rows(&self, rows: &mut Vec<Row>) -> Result<AppendedRows, StorageError> {
        let mut order = self.order.lock();
        let version = Version(order.assigned.0 + 1);
        order.assigned = version;
        let writes = rows.drain(..).map(|(key, value)| (version, key, value));
        let mut batch = WriteBatch {
            writes: writes.collect(),
        };
        let appended = match self.active_observer() {
            // Whoever looks at all commits sees what these write.
            Some(_) => self.append(&mut order, &batch),
            None => self.append_by(&mut order, |engine| engine.append_latest(&mut batch)),
        };
        match appended {
            Ok(appended) => Ok(AppendedRows { appended, version }),
            Err(error) => {
                let untaken = batch.writes.into_iter().map(|(_, key, value)| (key, value));
                rows.extend(untaken);
                Err(error)
            }
        }
    }

    /// Waits until rows, and all commits before them, are on disk, and shows that to new
    /// snapshots. Of several appended rows the last is enough.
    ///
    /// # Errors
    /// As [`manxdb_storage::Engine::sync`]; nothing more is written then.
    pub fn sync_rows(&self, rows: &AppendedRows) -> Result<(), StorageError> {
        if let Err(failure) = self.engine.sync(&rows.appended) {
            self.order.lock().break_off(&failure);
            return Err(failure);
        }
        assert!(rows.version > Version::ZERO, "rows were appended");
        self.publish(rows.version);
        self.collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use manxdb_storage::{Engine as _, MemoryEngine, Version};

    use crate::{LocalOptions, LocalPath};

    #[test]
    fn a_row_written_often_is_kept_once_and_the_last_one_wins() {
        let engine = Arc::new(MemoryEngine::new());
        let path = LocalPath::open(engine.clone(), LocalOptions::default()).unwrap();
        for number in 0..100_u8 {
            let mut rows = vec![(b"R".to_vec(), Some(vec![number]))];
            let appended = path.append_rows(&mut rows).unwrap();
            assert!(rows.is_empty());
            path.sync_rows(&appended).unwrap();
        }
        let found = engine.get(b"R", Version::MAX).unwrap().unwrap();
        assert_eq!(found.value, [99]);
        assert_eq!(path.visible(), Version(100));
        engine.compact();
        assert_eq!(engine.version_count(), 1);
    }
}
