//! What was deleted or replaced goes from all files, and it is looked whether it has.
//!
//! Compactions in the background drop what nobody sees any more only where they come by, and a
//! deletion, which has the key of what it deletes, stays until it has met all older versions. So all
//! files are rewritten, and what is left is looked at, not concluded:
//!
//! 1. *Log.* It goes on in a new file; once the sorted files hold what came before, its files are
//!    removed, with spare ones, which hold old records too.
//! 2. *Rows.* All sorted files are compacted. Deletions that had to stay are removed by the next
//!    flush ([`super::tombstones`]). When a scan of all versions then finds nothing that was deleted
//!    or replaced at or below the mark, bytes of it are only where RocksDB's own deletes hide them;
//!    one more compaction of all files ends both. No file from before it may be left, in RocksDB's
//!    list or in the folder.
//! 3. *Manifest.* It has the lowest and highest key of each file, also of those that are gone. It is
//!    written anew, and the old one removed.

use std::collections::BTreeSet;
use std::path::Path;

use manxdb_compaction_edge::set_manifest_size;
use rocksdb::DB;

use super::options::{MANIFEST_AMPLIFICATION_PERCENT, MANIFEST_BYTES};
use super::search::{all_versions, listed};
use super::writer::PAUSE;
use super::{RocksEngine, error};
use crate::collection::{Collector, Scope, VersionVerdict};
use crate::error::StorageError;
use crate::model::Version;
use crate::{files, physical};

/// Compactions of everything: the first drops, the next removes deletions that had to stay, up to as
/// many as are noted at a time.
const ROUNDS_MAX: usize = 32;

/// Tries to have the manifest written anew.
const MANIFEST_TRIES: usize = 8;

/// Pauses while RocksDB removes files that it has let go of: ten seconds.
const PAUSES_MAX: usize = 2_000;
const _: () = assert!(
    PAUSE.as_millis() * PAUSES_MAX as u128 == 10_000,
    "a purge waits as long as is said of it"
);

/// As [`crate::Engine::purge`].
pub fn purge(engine: &RocksEngine, mark: Version) -> Result<bool, StorageError> {
    if engine.store.watermark() < mark {
        return Ok(false);
    }
    let ended = engine.writer.lock().begin_clean()?;
    engine.flush()?;
    if let Some(ended) = ended
        && !engine.writer.lock().discard(&engine.store.db, ended)?
    {
        return Ok(false);
    }
    let is_gone = rewrite(engine, mark)? && renew_manifest(engine)?;
    assert!(
        engine.store.watermark() >= mark,
        "the watermark does not fall while files are rewritten by it"
    );
    Ok(is_gone)
}

/// Sorted files: all rewritten, and nothing of before in them.
fn rewrite(engine: &RocksEngine, mark: Version) -> Result<bool, StorageError> {
    let db = &engine.store.db;
    for _ in 0..ROUNDS_MAX {
        // Also when nothing was written: it takes deletions that a compaction had to keep.
        engine.flush_if(|_| true)?;
        let is_clean = nothing_is_hidden(db, mark)?;
        let before = live_files(db)?;
        assert!(!before.is_empty(), "a flush has made a file");
        engine.compact()?;
        if !before.is_disjoint(&live_files(db)?) {
            return Ok(false);
        }
        if is_clean {
            return are_gone(engine, &|name| before.contains(name));
        }
    }
    Ok(false)
}

/// Whether sorted files show no version that one at or below `mark` hides, and no deletion there.
fn nothing_is_hidden(db: &DB, mark: Version) -> Result<bool, StorageError> {
    let mut iterator = all_versions(db);
    // What a compaction of everything would drop.
    let mut collector = Collector::new(mark, Scope::Whole);
    iterator.seek_to_first();
    while let Some((key, value)) = iterator.item() {
        if collector.judge(key, value) != VersionVerdict::Keep {
            return Ok(false);
        }
        iterator.next();
    }
    let read = iterator.status();
    read.map_err(|error| error::map("cannot read all sorted files", &error))?;
    Ok(true)
}

/// Names of the sorted files in use.
fn live_files(db: &DB) -> Result<BTreeSet<String>, StorageError> {
    let names = listed(db)?.into_iter();
    Ok(names
        .map(|file| file.name.trim_start_matches('/').to_owned())
        .collect())
}

/// Waits until no file below RocksDB's folder has a name that `is_old`; false when one stays.
fn are_gone(engine: &RocksEngine, is_old: &dyn Fn(&str) -> bool) -> Result<bool, StorageError> {
    for _ in 0..PAUSES_MAX {
        let found = files::below(&engine.directory.join(super::DATA_FOLDER))?;
        let names = found.iter().filter_map(|path| path.file_name()?.to_str());
        if !names.into_iter().any(is_old) {
            return Ok(true);
        }
        engine.flusher.wait(PAUSE);
    }
    Ok(false)
}

/// The number in the name of a file of RocksDB's.
fn number_of(name: &str) -> Option<u64> {
    let name = name.strip_prefix("MANIFEST-").unwrap_or(name);
    name.trim_end_matches(".sst").parse().ok()
}

fn renew_manifest(engine: &RocksEngine) -> Result<bool, StorageError> {
    let db = &engine.store.db;
    let failed = |why| StorageError::Engine(format!("the manifest keeps its size: {why}"));
    set_manifest_size(db, 1, 0).map_err(failed)?;
    let renewed = try_to_renew(engine);
    set_manifest_size(db, MANIFEST_BYTES as u64, MANIFEST_AMPLIFICATION_PERCENT).map_err(failed)?;
    renewed
}

/// Changes the list of files until RocksDB has begun a manifest behind a file that is made now: it
/// lists what is live then.
fn try_to_renew(engine: &RocksEngine) -> Result<bool, StorageError> {
    engine.flush_if(|_| true)?;
    let live = live_files(&engine.store.db)?;
    let newest = live.iter().filter_map(|name| number_of(name)).max();
    let Some(newest) = newest else {
        return Ok(false);
    };
    for _ in 0..MANIFEST_TRIES {
        engine.flush_if(|_| true)?;
        engine.compact_latest()?;
        let manifest = manifest(&engine.directory.join(super::DATA_FOLDER))?;
        if manifest.is_some_and(|number| number > newest) {
            return are_gone(engine, &|name| {
                name.starts_with("MANIFEST-") && number_of(name) < manifest
            });
        }
    }
    Ok(false)
}

/// The number of the manifest in use.
fn manifest(data: &Path) -> Result<Option<u64>, StorageError> {
    let place = data.join("CURRENT");
    let current = std::fs::read_to_string(&place)
        .map_err(|error| files::io_error(format!("cannot read {}", place.display()), error))?;
    Ok(number_of(current.trim_end()))
}

impl RocksEngine {
    /// Compacts the files that have the store's own record, which is in every flush: RocksDB changes
    /// its list of files, and removes what it has let go of.
    fn compact_latest(&self) -> Result<(), StorageError> {
        let (lower, mut upper) = (physical::LATEST_KEY.to_vec(), physical::LATEST_KEY.to_vec());
        upper.push(0);
        self.compact_between(Some(lower), Some(upper))
    }
}

#[cfg(test)]
mod tests;
