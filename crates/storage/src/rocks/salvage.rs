//! What can still be read of a store that does not open any more, as a new store.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rocksdb::{Cache, DB, DBCompressionType, ReadTier};

use super::filter::CollectorFactory;
use super::graves::Graves;
use super::writer::{self, Progress};
use super::{DATA_FOLDER, ENGINE_NAME, Options, RocksEngine, error, options};
use crate::engine::{Engine as _, StorageError, Version};
use crate::log::{self, Place};
use crate::{files, format, physical};

/// What became of a damaged store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Salvaged {
    /// Files nothing could be read of, by name.
    pub lost: Vec<String>,
    /// Newest version there is.
    pub latest: Version,
}

/// Makes a store in `into` of every file below `from` that can be read. `from` is left as it is.
///
/// What was only in a damaged file is missing: a row may be gone, or be an older version of
/// itself, and an index may lead to no row. So what comes out is for copying data out of it, not
/// for going on with.
///
/// # Errors
/// [`StorageError::InUse`] while `from` is served; [`StorageError::Engine`] when `from` opens
/// by itself, or `into` exists; those of copying and writing files.
pub fn salvage(from: &Path, into: &Path) -> Result<Salvaged, StorageError> {
    refuse_what_opens(from)?;
    fs::create_dir(into)
        .map_err(|error| files::io_error(format!("cannot create {}", into.display()), error))?;
    let data = into.join(DATA_FOLDER);
    copy_store(&from.join(DATA_FOLDER), &data)?;
    format::open_or_create(into, ENGINE_NAME, &into.join("nothing"))?;
    let settings = settings();
    DB::repair(&settings, &data)
        .map_err(|error| error::map(&format!("cannot salvage {}", from.display()), &error))?;
    let mut lost = lost_files(&data)?;
    let latest = {
        let db = DB::open(&settings, &data)
            .map_err(|error| error::map(&format!("cannot open {}", data.display()), &error))?;
        lost.extend(take_from_log(&from.join(log::FOLDER), &db)?);
        note_latest(&db)?
    };
    let opened = RocksEngine::open(into, &Options::default())?;
    debug_assert!(opened.latest().is_ok_and(|found| found == latest));
    Ok(Salvaged { lost, latest })
}

/// A store that opens loses more by this than it wins: of a file with one damaged block
/// everything else can be read by serving it.
fn refuse_what_opens(from: &Path) -> Result<(), StorageError> {
    if !from.join(DATA_FOLDER).exists() {
        let place = from.display();
        return Err(StorageError::Engine(format!("{place} holds no store")));
    }
    match RocksEngine::open(from, &Options::default()) {
        Ok(_) => Err(StorageError::Engine(format!(
            "{} opens: serve it and copy out what can be read, for example with mysqldump --force",
            from.display()
        ))),
        Err(in_use @ StorageError::InUse(_)) => Err(in_use),
        Err(_) => Ok(()),
    }
}

fn copy_store(from: &Path, to: &Path) -> Result<(), StorageError> {
    fs::create_dir(to)
        .map_err(|error| files::io_error(format!("cannot create {}", to.display()), error))?;
    for path in files::below(from)? {
        let is_data = path.components().count() == 1
            && path.file_name() != Some(OsStr::new("LOCK"))
            && !path.to_string_lossy().starts_with("LOG");
        if is_data {
            files::copy(&from.join(&path), &to.join(&path))?;
        }
    }
    Ok(())
}

/// The store's own settings, under a watermark at which nothing is collected.
fn settings() -> rocksdb::Options {
    let cache = Cache::new_hyper_clock_cache(32 << 20, 0);
    let collector = CollectorFactory::new(Arc::new(AtomicU64::new(0)), Arc::new(Graves::default()));
    let options = Options::default();
    let compression = DBCompressionType::None;
    options::database(&options, &cache, compression, collector)
}

fn lost_files(data: &Path) -> Result<Vec<String>, StorageError> {
    let folder = data.join("lost");
    if !folder.exists() {
        return Ok(Vec::new());
    }
    // Logs are put there too, once they are read.
    let is_table = |path: &PathBuf| path.extension().is_some_and(|end| end == "sst");
    let lost = files::below(&folder)?.into_iter().filter(is_table);
    Ok(lost.map(|path| path.display().to_string()).collect())
}

/// Writes what can be read of the log, also what the sorted files hold: it is the same; the files
/// nothing could be read of.
fn take_from_log(folder: &Path, db: &DB) -> Result<Vec<String>, StorageError> {
    let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
    if !folder.exists() || !files::below(folder)?.iter().any(is_log) {
        // A store of format 1 never had one.
        let applied = Progress::read(db, ReadTier::All)
            .unwrap_or_default()
            .applied;
        return Ok(applied
            .iter()
            .map(|_| folder.display().to_string())
            .collect());
    }
    let anywhere = Place {
        segment: 0,
        offset: 0,
    };
    let lost = log::salvage(folder, &mut |batch| {
        let make = || writer::stored_batch(&batch, Version::ZERO, anywhere).0;
        writer::put(db, make).map(|_| ())
    })?;
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().display().to_string();
    Ok(lost.iter().map(name).collect())
}

/// Finds the newest version there is and notes it: the record of it may have been in what is
/// lost, and versions must not be given twice. The new store's log begins behind it.
fn note_latest(db: &DB) -> Result<Version, StorageError> {
    // A damaged record of it tells nothing; what is stored does.
    let noted = Progress::read(db, ReadTier::All).unwrap_or_default();
    let mut latest = noted.latest;
    let mut iterator = db.raw_iterator();
    iterator.seek_to_first();
    while let Some(key) = iterator.key() {
        if let Some((_, version)) = physical::split(key) {
            latest = latest.max(version);
        }
        iterator.next();
    }
    iterator
        .status()
        .map_err(|error| error::map("cannot read what was salvaged", &error))?;
    let progress = Progress {
        latest,
        applied: None,
    };
    writer::put(db, || progress.stored())?;
    db.flush()
        .map_err(|error| error::map("cannot write what was salvaged", &error))?;
    Ok(latest)
}
