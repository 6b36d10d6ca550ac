//! Sorted files with rows that were dropped are rewritten without them, when no compaction has come by.

use rocksdb::{BottommostLevelCompaction, CompactOptions};

use super::RocksEngine;
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
    let mut options = CompactOptions::default();
    options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
    options.set_exclusive_manual_compaction(false);
    for (lower, upper) in ranges {
        let db = &engine.store.db;
        let compact = || db.compact_range_opt(Some(lower), upper, &options);
        engine.store.quarantine.hurry(compact);
    }
    engine.store.readers.clear();
    Ok(())
}
