//! Plans by statement text, shared by all sessions.
//!
//! A hit costs one hash of the text and one comparison. Entries made under another catalog
//! version are not hits. Each shard is bounded; a full one forgets by second chance.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::compiled::Compiled;
use crate::expr::SqlMode;
use crate::types::Collation;

const SHARDS: usize = 16;
/// Entries a shard holds at most.
const SHARD_ENTRIES_MAX: usize = 256;
/// Longer texts are not kept: they are bulk inserts that will not come again.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// What besides the text decides a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlanKey<'a> {
    /// Statement text, as sent.
    pub text: &'a str,
    /// Current database.
    pub database: Option<&'a str>,
    /// `sql_mode`.
    pub mode: SqlMode,
    /// `collation_connection`.
    pub collation: Collation,
}

struct Entry {
    text: Box<str>,
    database: Option<Box<str>>,
    mode: SqlMode,
    collation: Collation,
    compiled: Arc<Compiled>,
    used: AtomicBool,
}

impl Entry {
    fn matches(&self, key: &PlanKey<'_>) -> bool {
        *self.text == *key.text
            && self.database.as_deref() == key.database
            && self.mode == key.mode
            && self.collation == key.collation
    }
}

#[derive(Default)]
struct Shard {
    entries: HashMap<u64, Entry>,
    /// Hashes in order of arrival, for eviction.
    order: VecDeque<u64>,
}

/// The cache.
pub(crate) struct PlanCache {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
}

impl Default for PlanCache {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
        }
    }
}

impl PlanCache {
    fn hash(&self, key: &PlanKey<'_>) -> u64 {
        self.hasher.hash_one((key.text, key.database))
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        #[allow(clippy::cast_possible_truncation)] // below SHARDS
        let at = (hash >> 60) as usize % SHARDS;
        &self.shards[at]
    }

    /// The plan of `key` made under `catalog_version`.
    pub(crate) fn get(&self, key: &PlanKey<'_>, catalog_version: u64) -> Option<Arc<Compiled>> {
        if key.text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let hash = self.hash(key);
        let shard = self.shard(hash).lock();
        let entry = shard.entries.get(&hash)?;
        if !entry.matches(key) || entry.compiled.catalog_version != catalog_version {
            return None;
        }
        entry.used.store(true, Ordering::Relaxed);
        Some(Arc::clone(&entry.compiled))
    }

    /// Keeps a plan.
    pub(crate) fn put(&self, key: &PlanKey<'_>, compiled: Arc<Compiled>) {
        if key.text.len() > TEXT_BYTES_MAX {
            return;
        }
        let hash = self.hash(key);
        let mut shard = self.shard(hash).lock();
        let entry = Entry {
            text: key.text.into(),
            database: key.database.map(Into::into),
            mode: key.mode,
            collation: key.collation,
            compiled,
            used: AtomicBool::new(false),
        };
        if shard.entries.insert(hash, entry).is_none() {
            shard.order.push_back(hash);
            shard.evict();
        }
    }

    /// Entries held now.
    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.lock().entries.len())
            .sum()
    }
}

impl Shard {
    fn evict(&mut self) {
        while self.entries.len() > SHARD_ENTRIES_MAX {
            let Some(hash) = self.order.pop_front() else {
                return;
            };
            let used = self
                .entries
                .get(&hash)
                .is_some_and(|entry| entry.used.swap(false, Ordering::Relaxed));
            if used {
                self.order.push_back(hash);
            } else {
                self.entries.remove(&hash);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::compiled::Compiled;

    fn key(text: &str) -> PlanKey<'_> {
        PlanKey {
            text,
            database: Some("d"),
            mode: SqlMode::default(),
            collation: Collation::default(),
        }
    }

    #[test]
    fn a_plan_is_found_only_under_what_it_was_made_under() {
        let cache = PlanCache::default();
        cache.put(&key("SELECT 1"), Arc::new(Compiled::for_test(7)));
        assert!(cache.get(&key("SELECT 1"), 7).is_some());
        assert!(cache.get(&key("SELECT 1"), 8).is_none());
        assert!(cache.get(&key("SELECT 2"), 7).is_none());
        let other = PlanKey {
            database: None,
            ..key("SELECT 1")
        };
        assert!(cache.get(&other, 7).is_none());
        let other = PlanKey {
            collation: Collation::Bin,
            ..key("SELECT 1")
        };
        assert!(cache.get(&other, 7).is_none());
    }

    #[test]
    fn the_cache_stays_bounded_and_keeps_what_is_used() {
        let cache = PlanCache::default();
        cache.put(&key("hot"), Arc::new(Compiled::for_test(1)));
        for i in 0..20_000 {
            cache.put(&key(&format!("cold {i}")), Arc::new(Compiled::for_test(1)));
            assert!(cache.get(&key("hot"), 1).is_some(), "after {i}");
        }
        assert!(cache.len() <= SHARDS * SHARD_ENTRIES_MAX);
    }
}
