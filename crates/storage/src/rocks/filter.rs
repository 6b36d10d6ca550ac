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
    graves: Arc<Graves>,
}

impl CollectorFactory {
    pub fn new(watermark: Arc<AtomicU64>, graves: Arc<Graves>) -> Self {
        Self { watermark, graves }
    }
}

impl CompactionFilterFactory for CollectorFactory {
    type Filter = CollectorFilter;

    fn create(&mut self, context: CompactionFilterContext) -> CollectorFilter {
        let scope = if context.is_full_compaction {
            Scope::Whole
        } else {
            Scope::Part
        };
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
