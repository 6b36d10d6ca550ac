//! The index of a database's uploads: which of its files are in the object store, uploaded once and
//! removed after the database has removed them.
//!
//! The database works on its own disk. The store contains copies for workers, below the database's
//! identity and session, so that copies of an earlier session are never mistaken for current ones:
//!
//! ```text
//! DATABASE/SESSION/files/000012.sst            an input, uploaded whole when a job first needs it
//! DATABASE/SESSION/ends/7                      ends of files that job 7 was the first to show
//! DATABASE/SESSION/options/OPTIONS-000009
//! DATABASE/SESSION/jobs/7/manifest, view       for job 7
//! DATABASE/SESSION/jobs/7/ATTEMPT/000003.sst   an output, which stays as a copy once installed
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::answer::OutputFile;
use crate::file_io::read_at;
use crate::object_store::objects::{Object, ObjectError, Transfer, local};
use crate::object_store::parallel;
use crate::object_store::view::{Copies, FilePart, Named, View};
use crate::rocksdb_files::table::anatomy;

/// The family that RocksDB always opens.
const DEFAULT: &str = "default";

/// The index of a database's uploads.
pub(super) struct UploadIndex {
    database: PathBuf,
    table: Mutex<Table>,
    /// Serializes scans of the directory: an older scan must not undo a newer one.
    looking: Mutex<()>,
}

#[derive(Default)]
struct Table {
    files: BTreeMap<String, UploadedFile>,
    options: BTreeMap<String, Object>,
    /// Jobs that are not over.
    flying: BTreeSet<u64>,
    newest: u64,
    /// Objects of files that are gone, with the newest job that may still look for them.
    gone: Vec<(u64, String)>,
    /// Outputs that are about to become files of the database, by their numbers on disk.
    staged: BTreeMap<u64, Object>,
}

/// A sorted file of the database.
#[derive(Debug, Clone)]
struct UploadedFile {
    size: u64,
    family: Option<String>,
    /// Where its end begins, and its sum.
    end: u64,
    end_sum: u32,
    /// The end in an object of many, and where.
    pack: Option<(String, u64)>,
    /// All of it.
    whole: Option<Object>,
}

/// A file that was not in the table.
struct Found {
    name: String,
    inode: u64,
    uploaded: UploadedFile,
    /// The end itself.
    bytes: Vec<u8>,
}

impl UploadIndex {
    /// For the database in a directory; nothing of it is in the store.
    pub(super) fn new(database: &Path) -> Self {
        Self {
            database: database.to_owned(),
            table: Mutex::default(),
            looking: Mutex::default(),
        }
    }

    /// Uploads what workers need for a job and the store lacks.
    ///
    /// # Errors
    /// [`ObjectError`]; finished uploads are kept for the next job.
    pub(super) fn put(
        &self,
        transfer: &Transfer,
        job: u64,
        family: &str,
        inputs: &[String],
        options: u64,
    ) -> Result<Copies, ObjectError> {
        self.begin(job);
        // Twice, before and after reading the manifest: a file that the manifest names is in one of
        // the scans.
        let mut found = self.look(&BTreeSet::new())?;
        let (name, manifest) = self.manifest()?;
        let names = found.iter().map(|new| new.name.clone()).collect();
        found.extend(self.look(&names)?);
        let place = format!("jobs/{job}");
        let object = transfer.put_bytes(&format!("{place}/manifest"), manifest)?;
        let view = View {
            manifest: Named { name, object },
            options: self.put_options(transfer, options)?,
            files: {
                self.put_ends(transfer, job, found)?;
                self.put_inputs(transfer, inputs)?;
                self.parts(family, inputs)?
            },
        };
        let bytes = postcard::to_stdvec(&view).map_err(|error| ObjectError::Away {
            key: place.clone(),
            why: error.to_string(),
        })?;
        let view = transfer.put_bytes(&format!("{place}/view"), bytes)?;
        Ok(Copies { job: place, view })
    }

    fn begin(&self, job: u64) {
        let mut table = self.table.lock();
        table.flying.insert(job);
        table.newest = table.newest.max(job);
    }

    /// New files except `just_found`; removes files from the table that are gone.
    fn look(&self, just_found: &BTreeSet<String>) -> Result<Vec<Found>, ObjectError> {
        let _one = self.looking.lock();
        let mut present = BTreeSet::new();
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.database).map_err(local(&self.database))? {
            let entry = entry.map_err(local(&self.database))?;
            let Ok(name) = entry.file_name().into_string() else {
                continue; // not one of RocksDB's
            };
            if !is_table(&name) {
                continue;
            }
            present.insert(name.clone());
            if just_found.contains(&name) || self.table.lock().files.contains_key(&name) {
                continue;
            }
            // It may be gone again, or not be whole yet: then no manifest names it.
            if let Ok(Some(new)) = read_end(&entry.path(), name) {
                found.push(new);
            }
        }
        self.table.lock().keep(&present);
        Ok(found)
    }

    /// The name of the manifest, and its bytes so far.
    fn manifest(&self) -> Result<(String, Vec<u8>), ObjectError> {
        let current = self.database.join("CURRENT");
        let mut tries = 3; // RocksDB replaces a manifest that has grown long
        loop {
            let name = fs::read_to_string(&current).map_err(local(&current))?;
            let name = name.trim_end().to_owned();
            let path = self.database.join(&name);
            match fs::read(&path) {
                Ok(bytes) => return Ok((name, bytes)),
                Err(error) if tries == 0 => return Err(local(&path)(error)),
                Err(_) => tries -= 1,
            }
        }
    }

    fn put_options(&self, transfer: &Transfer, number: u64) -> Result<Named, ObjectError> {
        let name = format!("OPTIONS-{number:06}");
        let known = self.table.lock().options.get(&name).cloned();
        let object = match known {
            Some(object) => object,
            None => {
                let key = format!("options/{name}");
                let object = transfer.put_file(&key, &self.database.join(&name))?;
                let mut table = self.table.lock();
                table.options.insert(name.clone(), object.clone());
                object
            }
        };
        Ok(Named { name, object })
    }

    /// Puts the ends of new files as one object.
    fn put_ends(
        &self,
        transfer: &Transfer,
        job: u64,
        found: Vec<Found>,
    ) -> Result<(), ObjectError> {
        let key = format!("ends/{job}");
        let mut pack = Vec::new();
        let mut uploaded = Vec::new();
        for mut new in found {
            let whole = self.table.lock().staged.remove(&new.inode);
            new.uploaded.whole = whole.filter(|whole| whole.bytes == new.uploaded.size);
            if new.uploaded.whole.is_none() {
                new.uploaded.pack = Some((key.clone(), pack.len() as u64));
                pack.extend_from_slice(&new.bytes);
            }
            uploaded.push((new.name, new.uploaded));
        }
        if !pack.is_empty() {
            transfer.put_bytes(&key, pack)?;
        }
        let mut table = self.table.lock();
        for (name, one) in uploaded {
            table.files.entry(name).or_insert(one); // another job may have found it too
        }
        Ok(())
    }

    fn put_inputs(&self, transfer: &Transfer, inputs: &[String]) -> Result<(), ObjectError> {
        parallel::each(inputs, |name| {
            let is_there = |uploaded: &UploadedFile| uploaded.whole.is_some();
            if self.table.lock().files.get(name).is_some_and(is_there) {
                return Ok(());
            }
            let object = transfer.put_file(&format!("files/{name}"), &self.database.join(name))?;
            if let Some(uploaded) = self.table.lock().files.get_mut(name) {
                uploaded.whole = Some(object);
            }
            Ok(())
        })
    }

    /// The part of each file that a worker fetches.
    fn parts(&self, family: &str, inputs: &[String]) -> Result<Vec<FilePart>, ObjectError> {
        let table = self.table.lock();
        for name in inputs {
            if table.files.get(name).is_none_or(|one| one.whole.is_none()) {
                let name = name.clone();
                return Err(ObjectError::Missing(name)); // RocksDB would have to lose it
            }
        }
        let concerns = |one: &UploadedFile| {
            let known = one.family.as_deref();
            known.is_none_or(|known| known == family || known == DEFAULT)
        };
        let files = table.files.iter().filter(|(_, one)| concerns(one));
        let parts = files.filter_map(|(name, one)| one.part(name, inputs.contains(name)));
        Ok(parts.collect())
    }

    /// Outputs of a job were fetched to `directory` and are about to be renamed.
    pub(super) fn stage(
        &self,
        directory: &Path,
        outputs: &[OutputFile],
        key: impl Fn(&str) -> String,
    ) {
        let mut table = self.table.lock();
        for output in outputs {
            let found = fs::metadata(directory.join(&output.name));
            if let (Ok(found), Some(sum)) = (found, output.copy_sum) {
                let object = Object {
                    key: key(&output.name),
                    bytes: output.bytes,
                    sum,
                };
                table.staged.insert(found.ino(), object);
            }
        }
    }

    /// A job is over: its outputs are files of the database, or are not needed. Removes the job's
    /// objects that are not kept, and objects that no unfinished job needs.
    ///
    /// # Errors
    /// [`ObjectError`]: the objects are left for a sweep.
    pub(super) fn end(&self, transfer: &Transfer, job: u64) -> Result<(), ObjectError> {
        let found = self.look(&BTreeSet::new())?;
        {
            let mut table = self.table.lock();
            for new in found {
                // Others are shown, and packed, by the next job.
                if let Some(whole) = table.staged.remove(&new.inode) {
                    let whole = Some(whole).filter(|whole| whole.bytes == new.uploaded.size);
                    let uploaded = UploadedFile {
                        whole,
                        ..new.uploaded
                    };
                    table.files.entry(new.name).or_insert(uploaded);
                }
            }
            table.flying.remove(&job);
            let below = format!("jobs/{job}/");
            table
                .staged
                .retain(|_, object| !object.key.starts_with(&below));
        }
        self.sweep(transfer, &format!("jobs/{job}"))?;
        self.release(transfer)
    }

    /// Removes copies of files that the database has removed.
    ///
    /// # Errors
    /// [`ObjectError`]: it is left for a sweep.
    pub(super) fn tidy(&self, transfer: &Transfer) -> Result<(), ObjectError> {
        self.look(&BTreeSet::new())?;
        self.release(transfer)
    }

    fn release(&self, transfer: &Transfer) -> Result<(), ObjectError> {
        let gone = self.table.lock().release();
        transfer.remove(&gone)
    }

    /// Removes objects below a name that belong to nothing.
    ///
    /// # Errors
    /// [`ObjectError`]: the objects are left for the next sweep.
    pub(super) fn sweep(&self, transfer: &Transfer, below: &str) -> Result<(), ObjectError> {
        let there = transfer.list(below)?;
        // After the listing: a job names an object in the index before it uploads it.
        let stray: Vec<String> = {
            let table = self.table.lock();
            let wanted = table.wanted();
            let is_stray = |key: &String| !wanted.contains(key.as_str()) && !table.is_flying(key);
            there.into_iter().filter(is_stray).collect()
        };
        transfer.remove(&stray)
    }
}

impl Table {
    /// Drops files that are not present.
    fn keep(&mut self, present: &BTreeSet<String>) {
        let newest = self.newest;
        let mut keys = Vec::new();
        self.files.retain(|name, one| {
            let is_kept = present.contains(name);
            if !is_kept {
                keys.extend(one.pack.take().map(|(key, _)| key));
                keys.extend(one.whole.take().map(|whole| whole.key));
            }
            is_kept
        });
        let wanted = self.wanted().into_iter().map(str::to_owned);
        let wanted: BTreeSet<String> = wanted.collect();
        keys.retain(|key| !wanted.contains(key));
        self.gone.extend(keys.into_iter().map(|key| (newest, key)));
    }

    /// Keys that no job looks for any more.
    fn release(&mut self) -> Vec<String> {
        let oldest = self.flying.first().copied().unwrap_or(u64::MAX);
        let gone = std::mem::take(&mut self.gone);
        let (kept, released) = gone.into_iter().partition(|(newest, _)| *newest >= oldest);
        self.gone = kept;
        released.into_iter().map(|(_, key)| key).collect()
    }

    fn wanted(&self) -> BTreeSet<&str> {
        let files = self.files.values();
        let packs = files
            .clone()
            .filter_map(|one| one.pack.as_ref().map(|(key, _)| key.as_str()));
        let wholes = files.filter_map(|one| one.whole.as_ref().map(|one| one.key.as_str()));
        let options = self.options.values().map(|one| one.key.as_str());
        let staged = self.staged.values().map(|one| one.key.as_str());
        let gone = self.gone.iter().map(|(_, key)| key.as_str());
        let kept = packs.chain(wholes).chain(options).chain(staged);
        kept.chain(gone).collect()
    }

    /// Whether a key belongs to a job that is not over, or to a file that it is putting.
    fn is_flying(&self, key: &str) -> bool {
        match key.split('/').collect::<Vec<_>>()[..] {
            ["jobs" | "ends", job, ..] => job.parse().is_ok_and(|job| self.flying.contains(&job)),
            _ => !self.flying.is_empty(),
        }
    }
}

impl UploadedFile {
    fn part(&self, name: &str, is_input: bool) -> Option<FilePart> {
        let part = |from, sum, key: &str, skip| FilePart {
            name: name.to_owned(),
            size: self.size,
            from,
            sum,
            key: key.to_owned(),
            skip,
        };
        match (&self.whole, &self.pack) {
            (Some(whole), _) if is_input => Some(part(0, whole.sum, &whole.key, 0)),
            (_, Some((key, skip))) => Some(part(self.end, self.end_sum, key, *skip)),
            (Some(whole), None) => Some(part(self.end, self.end_sum, &whole.key, self.end)),
            (None, None) => None,
        }
    }
}

fn is_table(name: &str) -> bool {
    let path = Path::new(name);
    path.extension().is_some_and(|extension| extension == "sst")
}

/// Reads the end of a file; nothing when it is not whole yet.
fn read_end(path: &Path, name: String) -> std::io::Result<Option<Found>> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    let size = meta.len();
    let Some(anatomy) = anatomy(&file, size)? else {
        return Ok(None);
    };
    let bytes = read_at(&file, anatomy.tail, size.saturating_sub(anatomy.tail))?;
    let uploaded = UploadedFile {
        size,
        family: anatomy.family,
        end: anatomy.tail,
        end_sum: crc32fast::hash(&bytes),
        pack: None,
        whole: None,
    };
    Ok(Some(Found {
        name,
        inode: meta.ino(),
        uploaded,
        bytes,
    }))
}
