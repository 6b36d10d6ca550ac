//! Numbers for metrics. Names end in their unit; `_total` counts since the store was opened.

use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::statistics::Ticker;
use rocksdb::{Cache, properties};

use super::store::Store;

/// Gauges read from RocksDB's properties.
fn gauges() -> [(&'static str, &'static rocksdb::properties::PropName); 6] {
    [
        ("storage_live_bytes", properties::ESTIMATE_LIVE_DATA_SIZE),
        ("storage_files_bytes", properties::TOTAL_SST_FILES_SIZE),
        (
            "storage_compaction_pending_bytes",
            properties::ESTIMATE_PENDING_COMPACTION_BYTES,
        ),
        (
            "storage_compactions_running",
            properties::NUM_RUNNING_COMPACTIONS,
        ),
        ("storage_writes_stopped", properties::IS_WRITE_STOPPED),
        (
            "storage_background_errors_total",
            properties::BACKGROUND_ERRORS,
        ),
    ]
}

/// Counters kept by RocksDB when statistics are on.
const COUNTERS: [(&str, Ticker); 8] = [
    ("storage_cache_hits_total", Ticker::BlockCacheHit),
    ("storage_cache_misses_total", Ticker::BlockCacheMiss),
    (
        "storage_filter_skips_total",
        Ticker::BloomFilterPrefixUseful,
    ),
    ("storage_seeks_total", Ticker::NumberDbSeek),
    ("storage_iterators_total", Ticker::NoIteratorCreated),
    (
        "storage_compaction_read_bytes_total",
        Ticker::CompactReadBytes,
    ),
    (
        "storage_compaction_written_bytes_total",
        Ticker::CompactWriteBytes,
    ),
    (
        "storage_versions_collected_total",
        Ticker::CompactionKeyDropUser,
    ),
];

/// All numbers of RocksDB, its counters when they are kept, and of the memtables.
#[allow(
    clippy::cast_precision_loss,
    reason = "metrics are floats; beyond 2^53 a byte does not matter"
)]
pub fn collect(store: &Store, cache: &Cache, with_counters: bool) -> Vec<(&'static str, f64)> {
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let layers = store.layers();
    let frozen = || layers.frozen.iter().map(|frozen| &frozen.memtable);
    let frozen_bytes: usize = frozen().map(|memtable| memtable.bytes()).sum();
    let keys: usize = frozen().map(|memtable| memtable.keys()).sum();
    let in_files = store.db.property_int_value(properties::ESTIMATE_NUM_KEYS);
    let in_files = in_files.ok().flatten().unwrap_or(0);
    let active_bytes = layers.active.bytes();
    let keys = (keys + layers.active.keys()) as f64;
    let to_purge = store.tombstones.len() as f64;
    let mut numbers = vec![
        ("storage_cache_bytes", cache.get_usage() as f64),
        (
            "storage_cache_pinned_bytes",
            cache.get_pinned_usage() as f64,
        ),
        ("storage_memtable_bytes", active_bytes as f64),
        (
            "storage_pinned_memtable_bytes",
            (active_bytes + frozen_bytes) as f64,
        ),
        ("storage_memtables_frozen", layers.frozen.len() as f64),
        ("storage_records", in_files as f64 + keys),
        (
            "storage_flushes_running",
            f64::from(u8::from(!layers.frozen.is_empty())),
        ),
        ("storage_flushes_total", layers.ingested as f64),
        (
            "storage_flush_written_bytes_total",
            read(&store.flushed_bytes),
        ),
        (
            "storage_versions_collapsed_total",
            read(&store.shared.collapsed),
        ),
        ("storage_tombstones_to_purge", to_purge),
        (
            "storage_deletes_passed_total",
            read(&store.empty_ranges.deletes_passed),
        ),
        ("storage_empty_ranges", store.empty_ranges.len() as f64),
        // As releases before this one called it.
        ("storage_deletes_to_bury", to_purge),
        (
            "storage_damaged_files",
            store.quarantine.files().len() as f64,
        ),
    ];
    for (name, property) in gauges() {
        if let Ok(Some(value)) = store.db.property_int_value(property) {
            numbers.push((name, value as f64));
        }
    }
    if with_counters {
        for (name, ticker) in COUNTERS {
            let count = store.settings.get_ticker_count(ticker);
            numbers.push((name, count as f64));
        }
    }
    numbers
}
