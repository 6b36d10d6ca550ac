//! What sorted files and RocksDB's lists of them still have of keys.

use std::collections::BTreeSet;

use rocksdb::{DB, DBRawIterator, LiveFile, ReadOptions};

use super::{DATA_FOLDER, RocksEngine, error};
use crate::error::StorageError;
use crate::files;
use crate::log;
use crate::model::{KeyRange, Version};
use crate::physical::{self, Record, VERSION_BYTES};
use crate::search::{FileSearch, Judge, KeyPrefixes, SearchedFiles, StoredVersion};

/// As [`crate::Engine::search_files`].
pub fn search(
    engine: &RocksEngine,
    prefixes: &KeyPrefixes,
    judge: &mut Judge<'_>,
) -> Result<FileSearch, StorageError> {
    // The log first: what is written out meanwhile, and then let go of by the log, is in sorted files.
    let (log, spares) = log::search(&engine.directory.join(log::FOLDER), prefixes, judge)?;
    Ok(FileSearch {
        log,
        spares,
        sorted: sorted(&engine.store.db, prefixes, judge)?,
        manifests: manifests(engine, prefixes, judge)?,
    })
}

fn sorted(
    db: &DB,
    prefixes: &KeyPrefixes,
    judge: &mut Judge<'_>,
) -> Result<SearchedFiles, StorageError> {
    let mut iterator = all_versions(db);
    let live = listed(db)?;
    let (mut versions, mut holding, mut key) = (0, BTreeSet::new(), Vec::new());
    for prefix in prefixes.iter() {
        let (lower, upper) = physical::bounds(&KeyRange::prefix(prefix));
        iterator.seek(&lower);
        while let Some((stored, value)) = iterator.item() {
            if upper.as_ref().is_some_and(|upper| stored >= upper) {
                break;
            }
            if let Some((escaped, version)) = physical::split(stored) {
                physical::unescape(escaped, &mut key)?;
                assert!(
                    key.starts_with(prefix),
                    "the physical bounds of a prefix have its keys alone"
                );
                let value = match physical::decode_value(stored, value)? {
                    Record::Put(value) => Some(value),
                    Record::Delete => None,
                };
                let found = StoredVersion {
                    key: &key,
                    version,
                    value,
                };
                if judge(&found) {
                    versions += 1;
                    holding.extend(holders(&live, stored));
                }
            }
            iterator.next();
        }
        let read = iterator.status();
        read.map_err(|error| error::map("cannot read sorted files", &error))?;
    }
    assert!(
        holding.len() <= live.len(),
        "what holds something is one of the files"
    );
    Ok(SearchedFiles {
        files: live.len() as u64,
        // A compaction may have put it into a file that is not listed yet.
        holding: (holding.len() as u64).max(u64::from(versions > 0)),
        versions,
    })
}

/// Over all versions in the order of physical keys, for one reading: the cache keeps what others
/// read.
pub fn all_versions(db: &DB) -> DBRawIterator<'_> {
    let mut options = ReadOptions::default();
    options.set_total_order_seek(true);
    options.fill_cache(false);
    db.raw_iterator_opt(options)
}

/// The sorted files in use.
pub fn listed(db: &DB) -> Result<Vec<LiveFile>, StorageError> {
    let live = db.live_files();
    live.map_err(|error| error::map("cannot list the sorted files", &error))
}

/// The files that may have a physical key: RocksDB does not say which it read it from.
fn holders<'l>(live: &'l [LiveFile], stored: &[u8]) -> impl Iterator<Item = &'l str> {
    let has = move |file: &&LiveFile| {
        let begins = file.start_key.as_deref().is_some_and(|key| key <= stored);
        begins && file.end_key.as_deref().is_some_and(|key| stored <= key)
    };
    live.iter().filter(has).map(|file| file.name.as_str())
}

/// Lists of sorted files have the lowest and the highest key of each, also of files that are gone.
fn manifests(
    engine: &RocksEngine,
    prefixes: &KeyPrefixes,
    judge: &mut Judge<'_>,
) -> Result<SearchedFiles, StorageError> {
    let folder = engine.directory.join(DATA_FOLDER);
    let escaped = prefixes.iter().map(physical::escaped_prefix);
    let escaped = KeyPrefixes::new(escaped.collect());
    let mut searched = SearchedFiles::default();
    for name in files::below(&folder)? {
        if !name
            .to_str()
            .is_some_and(|name| name.starts_with("MANIFEST-"))
        {
            continue;
        }
        let path = folder.join(&name);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            // RocksDB has begun another one, which lists what is live.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(files::io_error(
                    format!("cannot read {}", path.display()),
                    error,
                ));
            }
        };
        searched.add(keys(&bytes, &escaped, judge));
    }
    Ok(searched)
}

/// How many physical keys stand in `bytes` that `judge` wants.
fn keys(bytes: &[u8], escaped: &KeyPrefixes, judge: &mut Judge<'_>) -> u64 {
    let (mut wanted, mut key) = (0, Vec::new());
    for (at, _) in escaped.places(bytes) {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some((prefix, behind)) = physical::first_prefix(rest) else {
            continue;
        };
        let version = behind.first_chunk::<VERSION_BYTES>();
        let version = version.map(|version| Version(!u64::from_be_bytes(*version)));
        if physical::unescape(prefix, &mut key).is_err() {
            continue;
        }
        assert!(
            key.len() < prefix.len(),
            "an escaped key is longer by its terminator"
        );
        let found = StoredVersion {
            key: &key,
            version: version.unwrap_or(Version::ZERO),
            value: None,
        };
        wanted += u64::from(judge(&found));
    }
    wanted
}
