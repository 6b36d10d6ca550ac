//! What a worker is asked to do: names that mean the same on both machines, and no paths.

use std::path::{Component, Path, PathBuf};

use manxdb_jobs::job::Fingerprint;
use rocksdb::Options;
use serde::{Deserialize, Serialize};

use crate::view::Copies;

/// Directory beside a database's files in which attempts write: on the same file system, because
/// outputs are renamed from there.
pub const STAGING: &str = "compactions-elsewhere";

/// A job for a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// A storage that both sides reach, by the name that operators gave it.
    pub volume: String,
    /// The database's directory, relative to the volume; on an object store, where the copies of
    /// its files are.
    pub database: String,
    /// On an object store: what is there for this job.
    pub copies: Option<Copies>,
    /// Which options a file cannot hold, and what they are made from.
    pub flavour: String,
    /// For the flavour alone.
    pub parameters: Vec<u8>,
    /// RocksDB's own description.
    pub input: Vec<u8>,
}

/// The options of a database that its options file cannot hold: comparator, merge operator,
/// compaction filter, prefix extractor, table format.
pub trait Flavour: Send + Sync {
    /// Its name, which changes whenever its meaning does.
    fn name(&self) -> &'static str;

    /// The options for one job.
    ///
    /// # Errors
    /// The parameters are not what this release writes.
    fn options(&self, parameters: &[u8]) -> Result<Options, String>;
}

/// RocksDB with nothing of one's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Flavour for Plain {
    fn name(&self) -> &'static str {
        "plain.1"
    }

    fn options(&self, _: &[u8]) -> Result<Options, String> {
        Ok(Options::default())
    }
}

/// Major and minor version of the RocksDB that is linked; its C interface does not say.
const ROCKSDB: (u64, u64) = (11, 8);

/// What both sides must have in common: the release of RocksDB.
#[must_use]
pub fn fingerprint() -> Fingerprint {
    let (major, minor) = ROCKSDB;
    Fingerprint((1 << 32) | (major << 16) | minor)
}

/// The path that a relative name stands for below a root, which it cannot leave.
///
/// # Errors
/// It is absolute, or goes up.
pub fn below(root: &Path, relative: &str) -> Result<PathBuf, String> {
    let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let path = Path::new(relative);
    if path.components().all(is_inside) && !relative.contains('\0') {
        Ok(root.join(path))
    } else {
        Err(format!("'{relative}' is no path inside of a volume"))
    }
}

/// The name by which a path below a root is known elsewhere.
///
/// # Errors
/// It is not below the root, or not text.
pub fn relative(root: &Path, path: &Path) -> Result<String, String> {
    let (root, path) = (absolute(root)?, absolute(path)?);
    let inside = path.strip_prefix(&root).map_err(|_| {
        let (path, root) = (path.display(), root.display());
        format!("{path} is not on the volume at {root}")
    })?;
    inside
        .to_str()
        .map(ToOwned::to_owned)
        .ok_or_else(|| format!("{} is not text", path.display()))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    let cannot = |error| format!("{}: {error}", path.display());
    path.canonicalize().map_err(cannot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_its_volume() {
        let root = Path::new("/volume");
        assert_eq!(below(root, "a/b").unwrap(), root.join("a/b"));
        assert_eq!(below(root, "").unwrap(), root);
        for name in ["/etc", "../x", "a/../../x", "a\0b"] {
            assert!(below(root, name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_release_is_the_one_that_is_linked() {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.create_if_missing(true);
        drop(rocksdb::DB::open(&options, directory.path()).unwrap());
        let files = std::fs::read_dir(directory.path()).unwrap();
        let is_options = |path: &PathBuf| path.to_string_lossy().contains("OPTIONS-");
        let path = files
            .map(|file| file.unwrap().path())
            .find(is_options)
            .unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let (major, minor) = ROCKSDB;
        assert!(
            text.contains(&format!("rocksdb_version={major}.{minor}.")),
            "{text}"
        );
    }

    #[test]
    fn a_path_is_named_relative_to_its_volume_and_none_outside_is() {
        let volume = tempfile::tempdir().unwrap();
        let inside = volume.path().join("db");
        std::fs::create_dir(&inside).unwrap();
        assert_eq!(relative(volume.path(), &inside).unwrap(), "db");
        assert!(relative(&inside, volume.path()).is_err());
        assert!(relative(volume.path(), Path::new("/not there")).is_err());
    }
}
