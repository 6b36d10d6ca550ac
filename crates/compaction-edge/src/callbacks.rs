//! The interface between a database and its compaction service.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::hook::{JobInfo, Service};
use crate::inputs::Inputs;
use crate::profile::CompactionProfile;
use crate::tables::TableFunctions;

/// Directory beside a database's files in which workers write: on the same file system, because
/// outputs are renamed from there.
pub const STAGING: &str = "compactions-elsewhere";

/// The files that describe a job: RocksDB has written them when it asks for the job.
#[derive(Debug, Clone, Copy)]
pub struct JobFiles<'a> {
    /// Names of the inputs in its directory.
    pub inputs: &'a [String],
    /// The file of options that its inputs are compacted by.
    pub options: &'a str,
}

/// A database, open or not, as its service asks it.
pub trait DatabaseCallbacks: Send + Sync {
    /// The parameters of the profile at the time of a job.
    ///
    /// # Errors
    /// Why this job must be done by the database itself.
    fn parameters(&self, job: &JobInfo, job_files: &JobFiles<'_>) -> Result<Vec<u8>, String>;

    /// The outputs of a job were installed. `notes` is what the profile's worker reported beside
    /// them; the database must verify it, because it may be late, lost or wrong.
    fn noted(&self, notes: &[u8]);

    /// Functions of the RocksDB that the database is open in: it reads outputs through before they
    /// are installed.
    fn tables(&self) -> TableFunctions;
}

/// A database that its profile needs to know nothing of, in the RocksDB that is linked.
#[cfg(feature = "rocksdb")]
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCallbacks;

#[cfg(feature = "rocksdb")]
impl DatabaseCallbacks for NoCallbacks {
    fn parameters(&self, _: &JobInfo, _: &JobFiles<'_>) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    fn noted(&self, _: &[u8]) {}

    fn tables(&self) -> TableFunctions {
        crate::rocks::linked_tables()
    }
}

/// Level 0 of a column family, where flushed files wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Level0 {
    /// Files there.
    pub files: u32,
    /// Files at which writes are slowed down or stopped.
    pub files_stall: u32,
    /// Files that ever arrived, counted from any time on: what matters is how many are new.
    pub arrived: u64,
}

/// A database while it is open.
pub trait OpenDatabase: Send {
    /// What the database knows about the files `names`. The service verifies outputs against these
    /// facts, and verifies less where a fact is missing.
    ///
    /// # Errors
    /// A fact that the database must know is missing; the message says which. Then the database
    /// compacts the job itself.
    fn inputs(&self, names: &[String]) -> Result<Inputs, String>;

    /// How full level 0 of each column family is, by the family's name.
    fn level0(&self) -> BTreeMap<String, Level0>;
}

/// A service as the database it belongs to sees it.
pub trait DatabaseService: Service {
    /// The database is open. It is held until [`DatabaseService::closing`].
    fn opened(&self, database: Box<dyn OpenDatabase>);

    /// The database is about to be closed: the service does not use it after this call returns.
    fn closing(&self);

    /// Numbers for metrics, by name and labels.
    fn numbers(&self) -> Vec<(String, u64)>;
}

/// Makes services.
pub trait Pool {
    /// The service of the database in the directory `database`, which is about to be opened.
    ///
    /// # Errors
    /// It cannot be handed out from where it is.
    fn serve(
        &self,
        database: &Path,
        profile: Arc<dyn CompactionProfile>,
        callbacks: Arc<dyn DatabaseCallbacks>,
    ) -> Result<Arc<dyn DatabaseService>, String>;
}
