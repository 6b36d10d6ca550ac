//! What can still be read of a store that does not open any more, as a new store.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocksdb::{Cache, DB, DBCompressionType, ReadTier, WriteOptions};

use super::filter::CollectorFactory;
use super::progress::Progress;
use super::writer::{PAUSE, until_taken};
use super::{DATA_FOLDER, ENGINE_NAME, Options, RocksEngine, error, options};
use crate::engine::Engine as _;
use crate::error::StorageError;
use crate::log;
use crate::model::{Version, WriteBatch};
use crate::physical::{self, LATEST_KEY, Record};
use crate::{files, format};

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
        take_over(&db, into, &mut lost)?;
        lost.extend(take_from_log(&from.join(log::FOLDER), &db)?);
        note_latest(&db)?
    };
    let opened = RocksEngine::open(into, &Options::default())?;
    assert_eq!(
        opened.latest().ok(),
        Some(latest),
        "versions of a salvaged store go on behind the newest that was found"
    );
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
    let collector = CollectorFactory::new(Arc::default(), Arc::default(), Arc::default());
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

/// Takes over what the repair called lost and is not: it knows only files that RocksDB wrote by
/// itself, not those made of memtables.
fn take_over(db: &DB, into: &Path, lost: &mut Vec<String>) -> Result<(), StorageError> {
    // Names are numbers in the order of making, which is that of what they hold.
    lost.sort();
    let folder = into.join(DATA_FOLDER).join("lost");
    let probe = into.join("probe");
    let mut removed = Ok(());
    lost.retain(|name| {
        let file = folder.join(name);
        let taken = is_whole(&file, &probe) && db.ingest_external_file(vec![&file]).is_ok();
        if probe.exists() {
            removed = fs::remove_dir_all(&probe);
        }
        !taken
    });
    removed.map_err(|error| files::io_error(format!("cannot remove {}", probe.display()), error))
}

/// Whether all of a file made of a memtable can be read, tried in a store of its own.
fn is_whole(file: &Path, probe: &Path) -> bool {
    let mut settings = settings();
    settings.create_if_missing(true);
    let read = || {
        let db = DB::open(&settings, probe)?;
        db.ingest_external_file(vec![file])?;
        let mut iterator = db.raw_iterator();
        iterator.seek_to_first();
        while iterator.valid() {
            iterator.next();
        }
        iterator.status()
    };
    read().is_ok()
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
    let lost = log::salvage(folder, &mut |batch| put(db, || stored(&batch)))?;
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().display().to_string();
    Ok(lost.iter().map(name).collect())
}

/// `batch` as RocksDB stores it.
fn stored(batch: &WriteBatch) -> rocksdb::WriteBatch {
    let mut out = rocksdb::WriteBatch::new();
    let mut value_bytes = Vec::new();
    for (version, user_key, value) in &batch.writes {
        let key = physical::key(user_key, *version);
        let record = value.as_deref().map_or(Record::Delete, Record::Put);
        physical::encode_value(&key, record, &mut value_bytes);
        out.put(&key, &value_bytes);
    }
    out
}

/// Straight into RocksDB's own memtables, waiting while flushes or compactions are behind.
///
/// Asked to wait, RocksDB would wait without end when writes are stopped because a flush found the
/// disk full. Asked not to, it reports the stop, and a new try meets the error of the flush as soon
/// as there is one. It slows no write down before it stops them ([`super::options`]).
fn put(db: &DB, make: impl Fn() -> rocksdb::WriteBatch) -> Result<(), StorageError> {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options.set_no_slowdown(true);
    until_taken(
        || match db.write_opt(make(), &options) {
            Ok(()) => Ok(Ok(())),
            Err(stop) if stop.kind() == rocksdb::ErrorKind::Incomplete => {
                Ok(Err(stop.into_string()))
            }
            Err(error) => Err(error::map("cannot write what was salvaged", &error)),
        },
        || std::thread::park_timeout(PAUSE),
    )
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
    put(db, || {
        let mut batch = rocksdb::WriteBatch::new();
        batch.put(LATEST_KEY, progress.stored());
        batch
    })?;
    db.flush()
        .map_err(|error| error::map("cannot write what was salvaged", &error))?;
    Ok(latest)
}
