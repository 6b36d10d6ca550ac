//! The collector of old versions as RocksDB's compaction filter.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rocksdb::CompactionDecision;
use rocksdb::compaction_filter::CompactionFilter;
use rocksdb::compaction_filter_factory::{CompactionFilterContext, CompactionFilterFactory};

use super::graves::Graves;
use crate::collection::{Collector, Scope, Verdict};
use crate::engine::Version;

/// Makes a collector for every compaction, at the watermark of its start. The watermark only
/// rises, so a compaction that started with an older one keeps more, never less.
pub struct CollectorFactory {
    watermark: Arc<AtomicU64>,
    /// As the database said it, where the compaction runs elsewhere; else RocksDB says it.
    scope: Option<Scope>,
    graves: Arc<Graves>,
}

impl CollectorFactory {
    pub fn new(watermark: Arc<AtomicU64>, graves: Arc<Graves>) -> Self {
        Self {
            watermark,
            scope: None,
            graves,
        }
    }

    /// For one compaction of a store that another process has open.
    pub fn elsewhere(watermark: Version, scope: Scope, graves: Arc<Graves>) -> Self {
        Self {
            watermark: Arc::new(AtomicU64::new(watermark.0)),
            scope: Some(scope),
            graves,
        }
    }
}

impl CompactionFilterFactory for CollectorFactory {
    type Filter = CollectorFilter;

    fn create(&mut self, context: CompactionFilterContext) -> CollectorFilter {
        let scope = self
            .scope
            .unwrap_or_else(|| Scope::of(context.is_full_compaction));
        let watermark = Version(self.watermark.load(Ordering::Acquire));
        CollectorFilter {
            collector: Collector::new(watermark, scope),
            graves: Arc::clone(&self.graves),
        }
    }

    fn name(&self) -> &CStr {
        c"manxdb.old-versions.1"
    }
}

pub struct CollectorFilter {
    collector: Collector,
    graves: Arc<Graves>,
}

impl CompactionFilter for CollectorFilter {
    fn filter(&mut self, _level: u32, key: &[u8], value: &[u8]) -> CompactionDecision {
        match self.collector.judge(key, value) {
            Verdict::Keep => CompactionDecision::Keep,
            Verdict::KeepDelete => {
                self.graves.note(key);
                CompactionDecision::Keep
            }
            Verdict::Drop => CompactionDecision::Remove,
        }
    }

    fn name(&self) -> &CStr {
        c"manxdb.old-versions.1"
    }
}
