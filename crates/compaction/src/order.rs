//! A worker's order: names that mean the same on both machines, and no paths.

use std::path::{Component, Path, PathBuf};

use manxdb_core::Digest;
use manxdb_jobs::job::{DatabaseId, Fingerprint};
use serde::{Deserialize, Serialize};

use crate::answer::ANSWERS;
use crate::object_store::view::Copies;

#[cfg(feature = "worker")]
pub use crate::edge::Prepared;
pub use crate::edge::{CompactionProfile, Plain, STAGING, Shaped};

/// A job for a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// A storage that both sides reach, by the name that operators gave it.
    pub volume: String,
    /// The database's directory, relative to the volume; on an object store, where the copies of
    /// its files are.
    pub database: String,
    /// With an object store: the job's copies.
    pub copies: Option<Copies>,
    /// Name of the compaction profile, for options that the options file cannot hold.
    pub profile: String,
    /// For the profile alone.
    pub parameters: Vec<u8>,
    /// RocksDB's own description.
    pub input: Vec<u8>,
}

/// Major and minor version of the RocksDB that is linked; its C interface does not say.
pub(crate) const ROCKSDB: (u64, u64) = (11, 8);

/// A profile as a database names it to others.
#[derive(Debug, Clone, Copy)]
pub struct ProfileId {
    /// The profile's name.
    pub name: &'static str,
    /// The fingerprint that a worker must offer.
    pub fingerprint: Fingerprint,
}

impl ProfileId {
    /// The identity of a profile. It holds no `dyn CompactionProfile`, so that a program without
    /// workers does not link their code.
    pub fn of<F: CompactionProfile + ?Sized>(profile: &F) -> Self {
        Self {
            name: profile.name(),
            fingerprint: fingerprint(profile),
        }
    }
}

/// What both sides must have in common: the release of RocksDB, how outputs are summed, and all that
/// a profile is made of.
#[must_use]
pub fn fingerprint<F: CompactionProfile + ?Sized>(profile: &F) -> Fingerprint {
    let (major, minor) = ROCKSDB;
    let mut digest = Digest::default();
    digest.number(major).number(minor);
    let shared = [profile.name(), ANSWERS];
    for text in shared.into_iter().chain(profile.parts().iter().copied()) {
        digest.number(text.len() as u64).bytes(text.as_bytes());
    }
    Fingerprint(digest.value())
}

/// A database's identity on a shared directory: its path relative to the volume. A copy of the
/// database has another one.
#[must_use]
pub fn database_id(volume: &str, relative: &str) -> DatabaseId {
    let mut digest = Digest::default();
    digest.number(volume.len() as u64).bytes(volume.as_bytes());
    DatabaseId(digest.bytes(relative.as_bytes()).value())
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

/// The name of a path relative to a root, by which other machines know it.
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
    use rocksdb::Options;

    #[test]
    fn no_name_leads_out_of_its_volume() {
        let root = Path::new("/volume");
        assert_eq!(below(root, "a/b").unwrap(), root.join("a/b"));
        assert_eq!(below(root, "").unwrap(), root);
        for name in ["/etc", "../x", "a/../../x", "a\0b"] {
            assert!(below(root, name).is_err(), "{name}");
        }
    }

    struct Other(&'static [&'static str]);

    impl CompactionProfile for Other {
        fn name(&self) -> &'static str {
            "plain.1"
        }

        fn parts(&self) -> &'static [&'static str] {
            self.0
        }

        fn prepare(&self, parameters: &[u8]) -> Result<Prepared, String> {
            Plain.prepare(parameters)
        }
    }

    #[test]
    fn a_fingerprint_tells_every_part_apart() {
        let parts: [&'static [&'static str]; 5] = [&[], &["a"], &["b"], &["a", "b"], &["ab"]];
        let prints = parts.map(|parts| fingerprint(&Other(parts)));
        assert_eq!(prints[0], fingerprint(&Plain));
        for (place, print) in prints.iter().enumerate() {
            assert!(!prints[..place].contains(print), "{:?}", parts[place]);
        }
    }

    #[test]
    fn a_database_is_the_directory_it_lives_in() {
        assert_eq!(database_id("fast", "a"), database_id("fast", "a"));
        assert_ne!(database_id("fast", "a"), database_id("fast", "b"));
        assert_ne!(database_id("fas", "ta"), database_id("fast", "a"));
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
