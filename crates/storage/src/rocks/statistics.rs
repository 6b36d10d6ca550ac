//! Numbers for metrics. Names end in their unit; `_total` counts since the store was opened.

use rocksdb::statistics::Ticker;
use rocksdb::{Cache, DB, properties};

/// Gauges read from RocksDB's properties.
fn gauges() -> [(&'static str, &'static rocksdb::properties::PropName); 10] {
    [
        ("storage_live_bytes", properties::ESTIMATE_LIVE_DATA_SIZE),
        ("storage_files_bytes", properties::TOTAL_SST_FILES_SIZE),
        (
            "storage_memtable_bytes",
            properties::CUR_SIZE_ALL_MEM_TABLES,
        ),
        (
            "storage_pinned_memtable_bytes",
            properties::SIZE_ALL_MEM_TABLES,
        ),
        ("storage_records", properties::ESTIMATE_NUM_KEYS),
        (
            "storage_compaction_pending_bytes",
            properties::ESTIMATE_PENDING_COMPACTION_BYTES,
        ),
        (
            "storage_compactions_running",
            properties::NUM_RUNNING_COMPACTIONS,
        ),
        ("storage_flushes_running", properties::NUM_RUNNING_FLUSHES),
        ("storage_writes_stopped", properties::IS_WRITE_STOPPED),
        (
            "storage_background_errors_total",
            properties::BACKGROUND_ERRORS,
        ),
    ]
}

/// Counters kept by RocksDB when statistics are on.
const COUNTERS: [(&str, Ticker); 10] = [
    ("storage_cache_hits_total", Ticker::BlockCacheHit),
    ("storage_cache_misses_total", Ticker::BlockCacheMiss),
    (
        "storage_filter_skips_total",
        Ticker::BloomFilterPrefixUseful,
    ),
    ("storage_seeks_total", Ticker::NumberDbSeek),
    ("storage_iterators_total", Ticker::NoIteratorCreated),
    ("storage_written_bytes_total", Ticker::BytesWritten),
    ("storage_stall_microseconds_total", Ticker::StallMicros),
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

/// All numbers; `settings` holds the counters when they are on.
#[allow(
    clippy::cast_precision_loss,
    reason = "metrics are floats; beyond 2^53 a byte does not matter"
)]
pub fn collect(
    db: &DB,
    cache: &Cache,
    settings: Option<&rocksdb::Options>,
) -> Vec<(&'static str, f64)> {
    let mut numbers = vec![
        ("storage_cache_bytes", cache.get_usage() as f64),
        (
            "storage_cache_pinned_bytes",
            cache.get_pinned_usage() as f64,
        ),
    ];
    for (name, property) in gauges() {
        if let Ok(Some(value)) = db.property_int_value(property) {
            numbers.push((name, value as f64));
        }
    }
    if let Some(settings) = settings {
        for (name, ticker) in COUNTERS {
            numbers.push((name, settings.get_ticker_count(ticker) as f64));
        }
    }
    numbers
}
