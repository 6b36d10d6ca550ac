//! The list of files a backup consists of, as JSON with a checksum of itself.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::StorageError;

/// Version of the manifest this build writes, and the newest it reads.
const CURRENT: u32 = 1;

/// Name of the manifest in the folder of a backup.
pub const FILE_NAME: &str = "backup.json";

/// What one backup consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this list.
    pub manifest_version: u32,
    /// Name of the backup.
    pub label: String,
    /// When the backup was made, in seconds since 1970, UTC.
    pub created_seconds: u64,
    /// Every write at or below this version is in the backup.
    pub complete_to: u64,
    /// Bytes that had to be added to the backup directory.
    pub added_bytes: u64,
    /// The files of the data directory.
    pub files: Vec<BackupFile>,
}

/// One file of the data directory, and where the backup keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// Path in the data directory.
    pub path: PathBuf,
    /// Path in the backup directory.
    pub stored: PathBuf,
    /// Size in bytes.
    pub size_bytes: u64,
    /// CRC-32 of the content.
    pub crc32: u32,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    backup: Manifest,
    crc32: u32,
}

impl Manifest {
    /// An empty list for a backup of the given name.
    #[must_use]
    pub fn new(label: &str, created_seconds: u64, complete_to: u64) -> Self {
        Self {
            manifest_version: CURRENT,
            label: label.to_owned(),
            created_seconds,
            complete_to,
            added_bytes: 0,
            files: Vec::new(),
        }
    }

    /// The JSON text with its checksum.
    ///
    /// # Errors
    /// [`StorageError::Engine`] when a path is not Unicode.
    pub fn render(&self) -> Result<String, StorageError> {
        let sealed = Sealed {
            backup: self.clone(),
            crc32: self.seal()?,
        };
        serde_json::to_string_pretty(&sealed).map_err(|error| unwritable(&error))
    }

    /// Reads the JSON text; `place` is named in errors.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] when the text is damaged or a path leaves its directory,
    /// [`StorageError::Format`] when a newer release wrote it.
    pub fn parse(text: &str, place: &Path) -> Result<Self, StorageError> {
        let corrupt = |what: &str| StorageError::Corrupt(format!("{}: {what}", place.display()));
        let sealed: Sealed =
            serde_json::from_str(text).map_err(|error| corrupt(&error.to_string()))?;
        let manifest = sealed.backup;
        if manifest.manifest_version > CURRENT {
            return Err(StorageError::Format(format!(
                "{} was written by a newer release of ManxDB: restore it with that release",
                place.display()
            )));
        }
        if manifest.seal()? != sealed.crc32 {
            return Err(corrupt("its checksum does not match"));
        }
        let paths = manifest.files.iter().flat_map(|f| [&f.path, &f.stored]);
        for path in paths {
            let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
            if !path.components().all(plain) {
                return Err(corrupt("a path leaves its directory"));
            }
        }
        Ok(manifest)
    }

    fn seal(&self) -> Result<u32, StorageError> {
        let text = serde_json::to_vec(self).map_err(|error| unwritable(&error))?;
        Ok(crc32fast::hash(&text))
    }
}

fn unwritable(error: &serde_json::Error) -> StorageError {
    StorageError::Engine(format!("cannot write the manifest of a backup: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(path: &str) -> Manifest {
        let mut manifest = Manifest::new("monday", 1_767_225_600, 42);
        manifest.files.push(BackupFile {
            path: PathBuf::from(path),
            stored: PathBuf::from("shared/7"),
            size_bytes: 9,
            crc32: 0xDEAD_BEEF,
        });
        manifest
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let text = sample("rocksdb/7.sst").render().unwrap();
        let read = Manifest::parse(&text, Path::new("backup.json")).unwrap();
        assert_eq!(read, sample("rocksdb/7.sst"));
    }

    #[test]
    fn a_changed_manifest_is_refused() {
        let text = sample("rocksdb/7.sst").render().unwrap();
        let changed = text.replace("42", "43");
        assert_ne!(text, changed);
        let error = Manifest::parse(&changed, Path::new("backup.json")).unwrap_err();
        assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
    }

    #[test]
    fn a_path_outside_its_directory_is_refused() {
        for path in ["../etc/passwd", "/etc/passwd", "a/../../b"] {
            let text = sample(path).render().unwrap();
            assert!(
                Manifest::parse(&text, Path::new("backup.json")).is_err(),
                "{path}"
            );
        }
    }

    #[test]
    fn a_newer_manifest_says_what_to_do() {
        let mut newer = sample("a");
        newer.manifest_version = CURRENT + 1;
        let text = newer.render().unwrap();
        let error = Manifest::parse(&text, Path::new("backup.json")).unwrap_err();
        assert!(
            error.to_string().contains("restore it with that release"),
            "{error}"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_damage_makes_reading_panic(place: proptest::sample::Index, byte: u8) {
            let text = sample("rocksdb/7.sst").render().unwrap();
            let mut bytes = text.clone().into_bytes();
            let place = place.index(bytes.len());
            bytes[place] = byte;
            let damaged = String::from_utf8_lossy(&bytes);
            let read = Manifest::parse(&damaged, Path::new("backup.json"));
            if let Ok(read) = read {
                // White space between the parts of the text does not matter.
                proptest::prop_assert_eq!(read, sample("rocksdb/7.sst"));
            }
        }
    }
}
