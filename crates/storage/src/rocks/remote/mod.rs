//! Compactions of this store by workers on other machines. A worker runs the same code on the same
//! inputs, so its outputs equal those of a local compaction.
//!
//! | question | answered in |
//! |---|---|
//! | the profile that a worker compacts this store with | [`profile`] |
//! | how tombstones that a worker had to keep are reported | [`notes`] |
//! | what the service asks the store | here |

mod notes;
mod profile;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use manxdb_compaction_edge::{
    CompactionProfile, DatabaseCallbacks, DatabaseService, Inputs, JobFiles, JobInfo, Level0,
    OpenDatabase, Pool, STAGING, TableFunctions, inputs_among, linked_tables,
};

use super::options::FILES_BEFORE_STOP;
use super::store::Store;
use super::tombstones::Tombstones;
use crate::dead_rows::DeadRows;
use crate::error::StorageError;
use crate::files;
use crate::model::Version;
use profile::Parameters;
pub use profile::Versions;

/// Callbacks that the service uses whether the store is open or not.
struct StoreCallbacks {
    watermark: Arc<AtomicU64>,
    tombstones: Arc<Tombstones>,
    dead: Arc<ArcSwap<DeadRows>>,
}

impl DatabaseCallbacks for StoreCallbacks {
    fn parameters(&self, job: &JobInfo, _: &JobFiles<'_>) -> Result<Vec<u8>, String> {
        let watermark = Version(self.watermark.load(Ordering::Acquire));
        let parameters = Parameters::new(watermark, job.is_full, &self.dead.load());
        Ok(parameters.encode())
    }

    fn noted(&self, notes: &[u8]) {
        match notes::decode(notes) {
            Ok(keys) => keys.iter().for_each(|key| self.tombstones.note(key)),
            Err(why) => tracing::warn!(why, "deletes that a worker kept are not purged yet"),
        }
    }

    fn tables(&self) -> TableFunctions {
        linked_tables()
    }
}

/// The open store, for the service.
struct Files(Arc<Store>);

impl OpenDatabase for Files {
    fn inputs(&self, names: &[String]) -> Result<Inputs, String> {
        let live = self.0.db.live_files();
        Ok(live.map_or_else(|_| Inputs::default(), |live| inputs_among(live, names)))
    }

    fn level0(&self) -> BTreeMap<String, Level0> {
        let files = self.0.db.property_value("rocksdb.num-files-at-level0");
        let files = files.ok().flatten().and_then(|files| files.parse().ok());
        let level0 = Level0 {
            files: files.unwrap_or(0),
            files_stall: FILES_BEFORE_STOP.unsigned_abs(),
            arrived: self.0.layers().ingested,
        };
        BTreeMap::from([(rocksdb::DEFAULT_COLUMN_FAMILY_NAME.to_owned(), level0)])
    }
}

/// The service of a store that is about to be opened.
///
/// # Errors
/// [`StorageError::RemoteCompaction`].
pub fn serve(
    pool: &dyn Pool,
    data: &Path,
    watermark: &Arc<AtomicU64>,
    tombstones: &Arc<Tombstones>,
    dead: &Arc<ArcSwap<DeadRows>>,
) -> Result<Arc<dyn DatabaseService>, StorageError> {
    // The service names it to others by where it really is.
    std::fs::create_dir_all(data)
        .map_err(|error| files::io_error(format!("cannot make {}", data.display()), error))?;
    let callbacks = StoreCallbacks {
        watermark: Arc::clone(watermark),
        tombstones: Arc::clone(tombstones),
        dead: Arc::clone(dead),
    };
    let profile: Arc<dyn CompactionProfile> = Arc::new(Versions::default());
    pool.serve(data, profile, Arc::new(callbacks))
        .map_err(StorageError::RemoteCompaction)
}

/// Removes outputs that workers left in the staging directory before this start, when compactions
/// were remote. The store is open, so no other process uses the directory.
pub fn sweep(data: &Path) {
    let staging = data.join(STAGING);
    match std::fs::remove_dir_all(&staging) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let directory = staging.display();
            tracing::warn!(%error, %directory, "outputs of remote compactions stay");
        }
        _ => {}
    }
}

/// The service of a store that is open; lets go of the store when it is dropped.
pub struct StoreService(Arc<dyn DatabaseService>);

impl StoreService {
    /// Shows the store to its service.
    pub fn new(service: Arc<dyn DatabaseService>, store: &Arc<Store>) -> Self {
        service.opened(Box::new(Files(Arc::clone(store))));
        Self(service)
    }

    /// Numbers for metrics, by name and labels.
    pub fn numbers(&self) -> Vec<(String, u64)> {
        self.0.numbers()
    }
}

impl Drop for StoreService {
    fn drop(&mut self) {
        self.0.closing();
    }
}
