//! How the store is set up in RocksDB, and why.

use rocksdb::statistics::StatsLevel;
use rocksdb::{
    BlockBasedOptions, BlockBasedTablePinningTier, Cache, DBCompressionType, DBRecoveryMode,
    LogLevel, SliceTransform,
};

use super::filter::{CollectorFactory, FILTER_NAME};
use super::store::FROZEN_MAX;
use crate::physical;

/// Sizes an operator may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Memory for blocks read from disk, indexes and filters included, in bytes.
    pub block_cache_bytes: usize,
    /// Size of one memtable in bytes; up to three exist at a time.
    pub write_buffer_bytes: usize,
    /// Size of one sorted file in bytes.
    pub file_bytes: u64,
    /// Sorted files that gather on level 0 until they are compacted, each of a memtable.
    pub level0_files: u16,
    /// Threads that flush and compact.
    pub background_jobs: u16,
    /// Size of one file of the commit log in bytes.
    pub log_segment_bytes: u64,
    /// Whether cache hits and the like are counted, at a few nanoseconds a read.
    pub statistics: bool,
}

const _: () = assert!(
    FROZEN_MAX + 1 == 3,
    "memory is planned for as many memtables as `write_buffer_bytes` says"
);

impl Default for Options {
    fn default() -> Self {
        Self {
            block_cache_bytes: 256 << 20,
            write_buffer_bytes: 64 << 20,
            file_bytes: 64 << 20,
            level0_files: 4,
            background_jobs: 2,
            log_segment_bytes: 16 << 20,
            statistics: true,
        }
    }
}

/// A manifest of this size is written anew, with what holds alone; one that holds more than that,
/// when it has grown by [`MANIFEST_AMPLIFICATION_PERCENT`]. It is read whole when the store is opened,
/// and by a worker for each of its compactions.
pub(super) const MANIFEST_BYTES: usize = 64 << 10;

/// How much a manifest grows, over what it had when it was written anew (RocksDB's
/// `max_manifest_space_amp_pct`, and its default).
pub(super) const MANIFEST_AMPLIFICATION_PERCENT: u16 = 500;

/// The first level below level 0 has as many at least.
const BASE_BYTES: u64 = 256 << 20;

/// Flushed files waiting for a compaction at which writes wait too.
pub(super) const FILES_BEFORE_STOP: i32 = 36;

/// Options of the database.
pub(super) fn database(
    options: &Options,
    cache: &Cache,
    compression: DBCompressionType,
    collector: CollectorFactory,
) -> rocksdb::Options {
    let mut database = rocksdb::Options::default();
    database.set_paranoid_checks(true);
    recovery(&mut database);

    // Memtables are ours ([`crate::memtable`]); RocksDB's own only serve to salvage a store.
    database.set_write_buffer_size(options.write_buffer_bytes);
    database.set_max_write_buffer_number(3);
    database.set_target_file_size_base(options.file_bytes);
    database.set_level_compaction_dynamic_level_bytes(true);
    database.set_level_zero_file_num_compaction_trigger(i32::from(options.level0_files));
    // As large as what comes from level 0 at once, which is merged with all of it.
    let level0_bytes = u64::from(options.level0_files) * options.write_buffer_bytes as u64;
    database.set_max_bytes_for_level_base(level0_bytes.max(BASE_BYTES));
    database.set_max_background_jobs(i32::from(options.background_jobs.max(2)));
    // The collector may drop deletes only while one of them sees a whole compaction.
    database.set_max_subcompactions(1);
    unsaved(&mut database, cache, collector);
    database.set_compression_type(compression);
    database.set_bytes_per_sync(1 << 20);
    // Where it would stop writes, no memtable is handed to it ([`super::flush`]). Stopped, one can
    // come back; slowed down, it cannot be called back when the disk turns out to be full.
    database.set_level_zero_stop_writes_trigger(FILES_BEFORE_STOP);
    database.set_level_zero_slowdown_writes_trigger(FILES_BEFORE_STOP);
    database.set_soft_pending_compaction_bytes_limit(0);

    database.set_max_manifest_file_size(MANIFEST_BYTES);
    database.set_keep_log_file_num(4);
    database.set_max_log_file_size(4 << 20);
    database.set_log_level(LogLevel::Warn);
    database.set_stats_dump_period_sec(0);
    database.set_stats_persist_period_sec(0);
    if options.statistics {
        database.enable_statistics();
        database.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    }
    database
}

/// What the prefix extractor is called in sorted files.
const PREFIX: &str = "manxdb.key-without-version.1";

/// All that decides what a compaction writes and that RocksDB keeps in no file of options. A change
/// of what any of it means changes its name here.
pub(super) const UNSAVED: [&str; 4] = [
    "comparator: bytes",
    "filter: manxdb.old-versions.2, dropped prefixes, expired rows",
    "prefix: manxdb.key-without-version.1",
    "tables: format 6, blocks of 8 KiB, bloom filters of 10 bits by prefix",
];

/// Options that a file of options cannot hold: whoever compacts sets them.
pub(super) fn unsaved(database: &mut rocksdb::Options, cache: &Cache, collector: CollectorFactory) {
    for (part, name) in [("filter", FILTER_NAME.to_str()), ("prefix", Ok(PREFIX))] {
        let named = name.map(|name| format!("{part}: {name}"));
        assert!(
            named.is_ok_and(|named| UNSAVED.iter().any(|part| part.starts_with(&named))),
            "a worker is told the {part} that it sets here"
        );
    }
    database.set_compaction_filter_factory(collector);
    // A point read seeks inside one prefix: filters are built over prefixes.
    let prefix = SliceTransform::create(PREFIX, prefix_of, Some(has_prefix));
    database.set_prefix_extractor(prefix);
    database.set_block_based_table_factory(&tables(cache));
}

/// RocksDB's own log is not written: ours ([`crate::log`]) is. A directory of format 1 may still
/// hold one, which is read once; a damaged record in it is an error rather than a silent loss.
fn recovery(database: &mut rocksdb::Options) {
    database.set_wal_recovery_mode(DBRecoveryMode::TolerateCorruptedTailRecords);
}

fn tables(cache: &Cache) -> BlockBasedOptions {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(cache);
    tables.set_bloom_filter(10.0, false);
    tables.set_whole_key_filtering(false);
    tables.set_format_version(6);
    tables.set_block_size(8 << 10);
    // Indexes and filters count against the cache but are never looked up in it or evicted.
    tables.set_cache_index_and_filter_blocks(true);
    tables.set_unpartitioned_pinning_tier(BlockBasedTablePinningTier::All);
    tables
}

fn prefix_of(key: &[u8]) -> &[u8] {
    physical::split(key).map_or(key, |(prefix, _)| prefix)
}

fn has_prefix(key: &[u8]) -> bool {
    physical::split(key).is_some()
}
