//! The files of a database according to its manifest: the log of all files that were added and
//! removed, which RocksDB syncs before it uses a file. This reader is not the database: it reads
//! the records that have been written, and later continues from there.
//!
//! The format is RocksDB's own: a log of records in blocks of 32 KiB, each with a checksum; a
//! record consists of numbered fields, of which unknown ones below a limit cannot be skipped.
//! Unexpected content is an error, never a guess.
//!
//! | question | answered in |
//! |---|---|
//! | where a record begins and ends | [`log`] |
//! | what a record changes | [`edit`] |
//! | the state after all records | here |

pub(crate) mod catalogue;
mod edit;
mod log;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use self::edit::apply;
use self::log::{BLOCK, Log};
use crate::file_io::read_at;

/// A file of a column family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Its level.
    pub level: u32,
    /// Its smallest user key.
    pub smallest: Vec<u8>,
    /// Its largest one; a deleted range may end there.
    pub largest: Vec<u8>,
}

/// A column family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Family {
    /// Its name.
    pub name: String,
    /// Its files by their numbers.
    pub files: BTreeMap<u64, Listed>,
    /// Files that were ever added on level 0 without others being removed: by flushes, or from
    /// outside.
    pub arrived: u64,
}

impl Family {
    /// Files on level 0.
    pub(crate) fn level0(&self) -> usize {
        self.files.values().filter(|file| file.level == 0).count()
    }
}

/// A manifest, read so far.
#[derive(Debug)]
pub(crate) struct Manifest {
    directory: PathBuf,
    open: Option<Open>,
    families: BTreeMap<u32, Family>,
}

#[derive(Debug)]
struct Open {
    name: String,
    file: File,
    /// Read up to here: a border between records.
    at: u64,
}

impl Manifest {
    /// Of the database in `directory`; nothing is read yet.
    #[must_use]
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            open: None,
            families: BTreeMap::new(),
        }
    }

    /// Reads the records written since the last call.
    ///
    /// # Errors
    /// The manifest cannot be read or understood; the next call reads it from the beginning.
    pub(crate) fn refresh(&mut self) -> Result<(), String> {
        let done = self.read_on();
        if done.is_err() {
            self.open = None;
        }
        done
    }

    fn read_on(&mut self) -> Result<(), String> {
        let current = self.directory.join("CURRENT");
        let named = |error: std::io::Error| format!("{}: {error}", current.display());
        let name = fs::read_to_string(&current)
            .map_err(named)?
            .trim()
            .to_owned();
        if self.open.as_ref().is_none_or(|open| open.name != name) {
            self.begin(name)?;
        }
        let Some(open) = &mut self.open else {
            return Ok(()); // `begin` opened one
        };
        let named = |error: std::io::Error| format!("{}: {error}", open.name);
        // A record may begin in the middle of a block: blocks are counted from the file's start.
        let skip = open.at % BLOCK as u64;
        let size = open.file.metadata().map_err(named)?.len();
        let from = open.at - skip;
        let bytes = read_at(&open.file, from, size.saturating_sub(from)).map_err(named)?;
        let mut log = Log::new(&bytes, usize::try_from(skip).unwrap_or(0));
        while let Some(record) = log
            .next_record()
            .map_err(|why| format!("{}: {why}", open.name))?
        {
            let applied = apply(&mut self.families, &record);
            applied.ok_or_else(|| format!("{} has a record that is not understood", open.name))?;
        }
        open.at = from + log.read as u64;
        Ok(())
    }

    fn begin(&mut self, name: String) -> Result<(), String> {
        let path = self.directory.join(&name);
        let named = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = File::open(&path).map_err(named)?;
        self.families = BTreeMap::from([(
            0,
            Family {
                name: "default".to_owned(),
                ..Family::default()
            },
        )]);
        self.open = Some(Open { name, file, at: 0 });
        Ok(())
    }

    /// All column families.
    pub(crate) fn families(&self) -> impl Iterator<Item = &Family> {
        self.families.values()
    }
}

#[cfg(test)]
mod tests {
    use super::log::{crc32c, masked};
    use super::*;
    use rocksdb::{ColumnFamilyDescriptor, DB, Options};

    fn options() -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_target_file_size_base(16 << 10);
        options.set_disable_auto_compactions(true); // none between two looks
        options
    }

    fn open(directory: &Path, families: &[&str]) -> DB {
        let families = families.iter();
        let families = families.map(|name| ColumnFamilyDescriptor::new(*name, options()));
        DB::open_cf_descriptors(&options(), directory, families).unwrap()
    }

    fn family<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a Family> {
        manifest.families().find(|family| family.name == name)
    }

    /// The files according to RocksDB.
    fn live(db: &DB, family: &str) -> BTreeMap<u64, Listed> {
        let files = db.live_files().unwrap().into_iter();
        let files = files.filter(|file| file.column_family_name == family);
        let listed = files.map(|file| {
            let number = file.name.trim_start_matches('/').trim_end_matches(".sst");
            let listed = Listed {
                level: file.level.try_into().unwrap(),
                smallest: file.start_key.unwrap(),
                largest: file.end_key.unwrap(),
            };
            (number.parse().unwrap(), listed)
        });
        listed.collect()
    }

    fn write(db: &DB, family: &str, round: u64) {
        let handle = db.cf_handle(family).unwrap();
        for number in 0..400_u64 {
            let key = (number * 7919 + round * 13).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            db.put_cf(handle, key.to_be_bytes(), [7; 100]).unwrap();
        }
        db.flush_cf(handle).unwrap();
    }

    #[test]
    fn files_are_those_that_rocksdb_lists_itself() {
        let directory = tempfile::tempdir().unwrap();
        let families = ["default", "other"];
        let mut db = open(directory.path(), &families);
        let mut manifest = Manifest::new(directory.path());
        let (mut manifests, mut seen) = (std::collections::BTreeSet::new(), 0);
        for round in 0..40 {
            write(&db, families[usize::from(round % 3 == 0)], round);
            if round % 8 == 7 {
                let handle = db.cf_handle("default").unwrap();
                db.compact_range_cf::<&[u8], &[u8]>(handle, None, None);
            }
            if round % 2 == 0 {
                continue; // two at a time
            }
            if round == 21 {
                drop(db);
                db = open(directory.path(), &families); // with another manifest
            }
            manifest.refresh().unwrap();
            manifests.insert(manifest.open.as_ref().unwrap().name.clone());
            for name in families {
                let family = family(&manifest, name).unwrap();
                assert_eq!(family.files, live(&db, name), "{name} in round {round}");
                seen += family.files.len();
            }
        }
        assert!(seen > 200 && manifests.len() > 1, "{seen} {manifests:?}");
        assert!(family(&manifest, "other").unwrap().arrived > 0);
        assert!(family(&manifest, "third").is_none());
    }

    #[test]
    fn what_is_not_whole_yet_is_read_later() {
        let directory = tempfile::tempdir().unwrap();
        let db = open(directory.path(), &["default"]);
        (0..5).for_each(|round| write(&db, "default", round));
        let mut manifest = Manifest::new(directory.path());
        manifest.refresh().unwrap();
        let name = manifest.open.as_ref().unwrap().name.clone();
        let whole = fs::read(directory.path().join(&name)).unwrap();
        let copy = tempfile::tempdir().unwrap();
        fs::write(copy.path().join("CURRENT"), format!("{name}\n")).unwrap();
        let mut read = Manifest::new(copy.path());
        for length in 0..=whole.len() {
            fs::write(copy.path().join(&name), &whole[..length]).unwrap();
            read.refresh().unwrap();
        }
        assert_eq!(read.families, manifest.families);
    }

    #[test]
    fn another_log_is_no_manifest() {
        let directory = tempfile::tempdir().unwrap();
        let mut manifest = Manifest::new(directory.path());
        assert!(manifest.refresh().unwrap_err().contains("CURRENT"));
        fs::write(directory.path().join("CURRENT"), "MANIFEST-1\n").unwrap();
        assert!(manifest.refresh().unwrap_err().contains("MANIFEST-1"));
        let record = [77_u8, 1];
        let sum = masked(crc32c(&[&[1], &record])).to_le_bytes();
        let log = [&sum[..], &[2, 0, 1], &record].concat();
        fs::write(directory.path().join("MANIFEST-1"), log).unwrap();
        let error = manifest.refresh().unwrap_err();
        assert!(error.contains("not understood"), "{error}");
    }
}
