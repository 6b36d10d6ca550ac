//! Compactions of this store by workers on other machines: the same code on the same inputs, so
//! what comes back is what would have been written here.
//!
//! | question | answered in |
//! |---|---|
//! | what a worker compacts this store with | [`flavour`] |
//! | how deletes that it had to keep come back | [`notes`] |
//! | what the service asks of the store | here |

mod flavour;
mod notes;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_compaction_edge::{
    Flavour, House, Inputs, JobInfo, Level0, Opened, Pool, Resident, STAGING, TableFunctions, Told,
    inputs_among, linked_tables,
};

use super::graves::Graves;
use super::options::FILES_BEFORE_STOP;
use super::store::Store;
use crate::engine::StorageError;
use crate::files;
use flavour::Parameters;
pub use flavour::Versions;

/// What the service asks of the store, open or not.
struct Room {
    watermark: Arc<AtomicU64>,
    graves: Arc<Graves>,
}

impl House for Room {
    fn parameters(&self, job: &JobInfo, _: &Told<'_>) -> Result<Vec<u8>, String> {
        let parameters = Parameters {
            watermark: self.watermark.load(Ordering::Acquire),
            is_full: job.is_full,
        };
        Ok(parameters.encode())
    }

    fn noted(&self, notes: &[u8]) {
        match notes::decode(notes) {
            Ok(keys) => keys.iter().for_each(|key| self.graves.note(key)),
            Err(why) => tracing::warn!(why, "deletes that a worker kept are not buried yet"),
        }
    }

    fn tables(&self) -> TableFunctions {
        linked_tables()
    }
}

/// What it asks of the store that is open.
struct Files(Arc<Store>);

impl Opened for Files {
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
/// [`StorageError::Elsewhere`].
pub fn serve(
    pool: &dyn Pool,
    data: &Path,
    watermark: &Arc<AtomicU64>,
    graves: &Arc<Graves>,
) -> Result<Arc<dyn Resident>, StorageError> {
    // The service names it to others by where it really is.
    std::fs::create_dir_all(data)
        .map_err(|error| files::io_error(format!("cannot make {}", data.display()), error))?;
    let house = Room {
        watermark: Arc::clone(watermark),
        graves: Arc::clone(graves),
    };
    let flavour: Arc<dyn Flavour> = Arc::new(Versions::default());
    pool.serve(data, flavour, Arc::new(house))
        .map_err(StorageError::Elsewhere)
}

/// Removes what workers left of the time when compactions were done elsewhere. The store is open,
/// so nobody else has it.
pub fn sweep(data: &Path) {
    let staging = data.join(STAGING);
    match std::fs::remove_dir_all(&staging) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let directory = staging.display();
            tracing::warn!(%error, %directory, "outputs of compactions elsewhere stay");
        }
        _ => {}
    }
}

/// The service of a store that is open; lets go of the store when it is dropped.
pub struct Guest(Arc<dyn Resident>);

impl Guest {
    /// Shows the store to its service.
    pub fn new(service: Arc<dyn Resident>, store: &Arc<Store>) -> Self {
        service.opened(Box::new(Files(Arc::clone(store))));
        Self(service)
    }

    /// Numbers for metrics, by name and labels.
    pub fn numbers(&self) -> Vec<(String, u64)> {
        self.0.numbers()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.closing();
    }
}
