//! The collector of old versions as RocksDB's compaction filter.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use rocksdb::CompactionDecision;
use rocksdb::compaction_filter::CompactionFilter;
use rocksdb::compaction_filter_factory::{CompactionFilterContext, CompactionFilterFactory};

use super::tombstones::Tombstones;
use crate::collection::{Collector, Scope, VersionVerdict};
use crate::dead_rows::DeadRows;
use crate::model::Version;

/// What the filter is called: a change of what it drops changes it.
pub const FILTER_NAME: &CStr = c"manxdb.old-versions.2";

/// Makes a collector for every compaction, at the watermark of its start and with the dead rows of
/// then. The watermark only rises, and what is dead stays so: a compaction that started with older
/// ones keeps more, never less.
pub struct CollectorFactory {
    watermark: Arc<AtomicU64>,
    /// As the database said it, where the compaction runs remotely; else RocksDB says it.
    scope: Option<Scope>,
    tombstones: Arc<Tombstones>,
    dead: Arc<ArcSwap<DeadRows>>,
}

impl CollectorFactory {
    pub fn new(
        watermark: Arc<AtomicU64>,
        tombstones: Arc<Tombstones>,
        dead: Arc<ArcSwap<DeadRows>>,
    ) -> Self {
        Self {
            watermark,
            scope: None,
            tombstones,
            dead,
        }
    }

    /// For one compaction of a store that another process has open.
    pub fn remote(
        watermark: Version,
        scope: Scope,
        tombstones: Arc<Tombstones>,
        dead: DeadRows,
    ) -> Self {
        let watermark = Arc::new(AtomicU64::new(watermark.0));
        let dead = Arc::new(ArcSwap::from_pointee(dead));
        Self {
            scope: Some(scope),
            ..Self::new(watermark, tombstones, dead)
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
            collector: Collector::new(watermark, scope).dropping(&self.dead.load()),
            tombstones: Arc::clone(&self.tombstones),
        }
    }

    fn name(&self) -> &CStr {
        FILTER_NAME
    }
}

pub struct CollectorFilter {
    collector: Collector,
    tombstones: Arc<Tombstones>,
}

impl CompactionFilter for CollectorFilter {
    fn filter(&mut self, _level: u32, key: &[u8], value: &[u8]) -> CompactionDecision {
        match self.collector.judge(key, value) {
            VersionVerdict::Keep => CompactionDecision::Keep,
            VersionVerdict::KeepDelete => {
                self.tombstones.note(key);
                CompactionDecision::Keep
            }
            VersionVerdict::Drop => CompactionDecision::Remove,
        }
    }

    fn name(&self) -> &CStr {
        FILTER_NAME
    }
}
