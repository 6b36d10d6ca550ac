//! Sorted files with rows that were dropped are rewritten without them, when no compaction has come by.

use rocksdb::DB;

use super::RocksEngine;
use super::search::all_versions;
use crate::error::StorageError;
use crate::model::KeyRange;
use crate::physical;

/// As [`crate::Engine::compact_dead_rows`]. Other compactions go on meanwhile.
pub fn compact(engine: &RocksEngine) -> Result<(), StorageError> {
    let watermark = engine.store.watermark();
    let dead = engine.dead.load_full();
    let ranges: Vec<_> = dead
        .dropped_by(watermark)
        .map(|one| physical::bounds(&KeyRange::prefix(&one.prefix)))
        .collect();
    if ranges.is_empty() {
        return Ok(());
    }
    // Rows in memory are behind no filter.
    engine.flush()?;
    for (lower, upper) in ranges {
        assert!(
            upper.as_ref().is_none_or(|upper| lower < *upper),
            "a prefix has physical keys of its own"
        );
        // Files that have several prefixes lose the rows of all of them at once.
        if has_any(&engine.store.db, &lower, upper.as_deref()) {
            engine.compact_files(Some(lower), upper, false);
        }
    }
    engine.store.readers.clear();
    Ok(())
}

/// Whether there is a physical key in `[lower, upper)`, or none can be read.
fn has_any(db: &DB, lower: &[u8], upper: Option<&[u8]>) -> bool {
    let mut iterator = all_versions(db);
    iterator.seek(lower);
    match iterator.key() {
        Some(key) => upper.is_none_or(|upper| key < upper),
        None => iterator.status().is_err(),
    }
}
