//! An external database: a database of another program, which the service knows by its files alone.
//!
//! | question | answered by |
//! |---|---|
//! | may a worker compact it, and with which options | its options file ([`crate::external::compatibility`]) |
//! | the keys of a job's inputs, and how full level 0 is | its manifest ([`crate::rocksdb_files::manifest`]) |
//! | how many entries the inputs have | the properties of the files ([`crate::rocksdb_files::table`]) |
//!
//! A job with an unknown fact stays local: a worker's outputs are installed only after a comparison
//! with the inputs.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::edge::{
    DatabaseCallbacks, Inputs, JobFiles, JobInfo, Level0, OpenDatabase, TableFunctions,
};
use crate::external::compatibility::{files_stall, shape};
use crate::rocksdb_files::manifest::{Family, Listed, Manifest};
use crate::rocksdb_files::settings::Settings;
use crate::rocksdb_files::table::anatomy;

/// A database of another program.
pub(super) struct ExternalDb {
    directory: PathBuf,
    has_one_path: bool,
    tables: TableFunctions,
    seen: Mutex<Seen>,
}

struct Seen {
    manifest: Manifest,
    /// Files on level 0 at which a family's writes stop, as its options last said.
    stalls: BTreeMap<String, u32>,
}

impl ExternalDb {
    /// The database in `directory`. `has_one_path`: its program sets neither `db_paths` nor
    /// `cf_paths`. `tables` are functions of the program's RocksDB.
    #[must_use]
    pub(super) fn new(directory: &Path, has_one_path: bool, tables: TableFunctions) -> Arc<Self> {
        let seen = Seen {
            manifest: Manifest::new(directory),
            stalls: BTreeMap::new(),
        };
        Arc::new(Self {
            directory: directory.to_owned(),
            has_one_path,
            tables,
            seen: Mutex::new(seen),
        })
    }

    /// The facts about a job's inputs.
    ///
    /// # Errors
    /// The fact that cannot be read.
    fn known(&self, names: &[String]) -> Result<Inputs, String> {
        let mut seen = self.seen.lock();
        seen.manifest.refresh()?;
        let listed = |name: &String| {
            let number = name
                .strip_suffix(".sst")
                .and_then(|number| number.parse().ok());
            let mut families = seen.manifest.families();
            let found = number.and_then(|number| families.find_map(|one| one.files.get(&number)));
            found.ok_or_else(|| format!("its manifest does not list {name}"))
        };
        let files: Result<Vec<&Listed>, String> = names.iter().map(listed).collect();
        let keys = range(&files?);
        drop(seen);
        Ok(Inputs {
            keys: Some(keys.ok_or("a job has no inputs")?),
            entries: self.entries(names)?,
        })
    }

    /// Entries of files, deleted ranges left out; nothing when RocksDB may pass whole files over: it
    /// does when a file is one deleted range and nothing else.
    fn entries(&self, names: &[String]) -> Result<Option<u64>, String> {
        let mut sum = 0_u64;
        for name in names {
            let path = self.directory.join(name);
            let named = |error: std::io::Error| format!("{}: {error}", path.display());
            let file = File::open(&path).map_err(named)?;
            let size = file.metadata().map_err(named)?.len();
            let content = anatomy(&file, size).map_err(named)?;
            let content = content.and_then(|anatomy| anatomy.content);
            let content = content.ok_or_else(|| format!("{name} does not say what is in it"))?;
            let points = content.entries.saturating_sub(content.ranges);
            if points == 0 {
                return Ok(None);
            }
            sum = sum.saturating_add(points);
        }
        Ok(Some(sum))
    }
}

/// Smallest and largest key of files.
fn range(files: &[&Listed]) -> Option<(Vec<u8>, Vec<u8>)> {
    let smallest = files.iter().map(|file| &file.smallest).min()?;
    let largest = files.iter().map(|file| &file.largest).max()?;
    Some((smallest.clone(), largest.clone()))
}

impl DatabaseCallbacks for ExternalDb {
    fn parameters(&self, job: &JobInfo, job_files: &JobFiles<'_>) -> Result<Vec<u8>, String> {
        let settings = Settings::of(job_files.options);
        let shape = shape(&settings, &job.family, self.has_one_path)?;
        if let Some(files) = files_stall(&settings, &job.family) {
            self.seen.lock().stalls.insert(job.family.clone(), files);
        }
        Ok(shape.encode())
    }

    fn noted(&self, _: &[u8]) {} // its profile says nothing

    fn tables(&self) -> TableFunctions {
        self.tables
    }
}

/// An external database while it is open.
pub(super) struct OpenExternalDb(pub Arc<ExternalDb>);

impl OpenDatabase for OpenExternalDb {
    fn inputs(&self, names: &[String]) -> Result<Inputs, String> {
        self.0.known(names)
    }

    fn level0(&self) -> BTreeMap<String, Level0> {
        let mut seen = self.0.seen.lock();
        if seen.manifest.refresh().is_err() {
            return BTreeMap::new();
        }
        let Seen { manifest, stalls } = &*seen;
        let families = manifest.families();
        families
            .map(|family| (family.name.clone(), level0_of(family, stalls)))
            .collect()
    }
}

fn level0_of(family: &Family, stalls: &BTreeMap<String, u32>) -> Level0 {
    Level0 {
        files: u32::try_from(family.level0()).unwrap_or(u32::MAX),
        // Never, as long as no job of it has said.
        files_stall: stalls.get(&family.name).copied().unwrap_or(u32::MAX),
        arrived: family.arrived,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocksdb::{DB, Options, WriteBatch};

    fn database(directory: &Path) -> DB {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_disable_auto_compactions(true);
        DB::open(&options, directory).unwrap()
    }

    fn put(db: &DB, keys: std::ops::Range<u32>) {
        for key in keys {
            db.put(key.to_be_bytes(), b"value").unwrap();
        }
    }

    fn names(db: &DB) -> Vec<String> {
        let files = db.live_files().unwrap().into_iter();
        files
            .map(|file| file.name.trim_start_matches('/').to_owned())
            .collect()
    }

    #[test]
    fn keys_and_entries_of_inputs_are_known_without_asking_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let db = database(directory.path());
        put(&db, 10..30);
        db.flush().unwrap();
        let external_db = ExternalDb::new(directory.path(), false, crate::edge::linked_tables());
        let first = external_db.known(&names(&db)).unwrap();
        assert_eq!(first.entries, Some(20));
        put(&db, 20..50);
        let mut ranges = WriteBatch::default();
        ranges.delete_range(5_u32.to_be_bytes(), 7_u32.to_be_bytes());
        db.write(ranges).unwrap();
        db.flush().unwrap();
        let both = external_db.known(&names(&db)).unwrap();
        let range = (5_u32.to_be_bytes().to_vec(), 49_u32.to_be_bytes().to_vec());
        assert_eq!(both.keys, Some(range));
        assert_eq!(both.entries, Some(50));
        let open = OpenExternalDb(external_db);
        assert_eq!(open.inputs(&names(&db)), Ok(both));
        let unknown = ["999999.sst".to_owned()];
        assert!(open.inputs(&unknown).unwrap_err().contains("999999"));
    }

    #[test]
    fn a_file_that_is_one_deleted_range_may_be_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let db = database(directory.path());
        put(&db, 0..9);
        db.flush().unwrap();
        let mut ranges = WriteBatch::default();
        ranges.delete_range([0], [9]);
        db.write(ranges).unwrap();
        db.flush().unwrap();
        let external_db = ExternalDb::new(directory.path(), false, crate::edge::linked_tables());
        let known = external_db.known(&names(&db)).unwrap();
        assert!(known.keys.is_some());
        assert_eq!(known.entries, None);
    }

    #[test]
    fn level_0_counts_once_a_job_has_said_where_writes_stop() {
        let directory = tempfile::tempdir().unwrap();
        let db = database(directory.path());
        (0..3).for_each(|round| {
            put(&db, round..round + 9);
            db.flush().unwrap();
        });
        let external_db = ExternalDb::new(directory.path(), false, crate::edge::linked_tables());
        let open = OpenExternalDb(Arc::clone(&external_db));
        let level0 = || open.level0()["default"];
        assert_eq!(level0().files_stall, u32::MAX);
        let files = std::fs::read_dir(directory.path()).unwrap().flatten();
        let files = files.map(|file| file.path());
        let mut files = files.filter(|path| path.to_string_lossy().contains("OPTIONS-"));
        let options = std::fs::read_to_string(files.next().unwrap()).unwrap();
        let job = JobInfo {
            family: "default".to_owned(),
            ..JobInfo::default()
        };
        let (inputs, options) = (&names(&db)[..], &options[..]);
        external_db
            .parameters(&job, &JobFiles { inputs, options })
            .unwrap();
        let level0 = level0();
        assert_eq!(
            (level0.files, level0.files_stall, level0.arrived),
            (3, 20, 3)
        );
    }
}
