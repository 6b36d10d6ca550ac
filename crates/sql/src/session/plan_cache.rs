//! Plans by statement text, shared by all sessions.
//!
//! Texts that differ only in constants share an entry: the text of their template, with the types
//! of the constants beside it ([`crate::parser::Template`]).
//!
//! A hit costs one hash of the text and one comparison. Entries made under another catalog
//! version are not hits. Each shard is bounded; a full one forgets by second chance.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::compiled::Compiled;
use crate::types::SqlMode;
use crate::types::{Collation, DataType};

const SHARDS: usize = 16;
/// Entries a shard holds at most.
const SHARD_ENTRIES_MAX: usize = 256;
/// Longer texts are not kept: they are bulk inserts that will not come again.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// What besides the text decides a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlanKey<'a> {
    /// Statement text, as sent or with `?` for its constants.
    pub text: &'a str,
    /// Types of the constants taken out of the text.
    pub constants: &'a [DataType],
    /// Current database.
    pub database: Option<&'a str>,
    /// `sql_mode`.
    pub mode: SqlMode,
    /// `collation_connection`.
    pub collation: Collation,
}

/// What the cache knows of a text.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    /// Its plan.
    Plan(Arc<Compiled>),
    /// A template that cannot be planned under this version of the catalog: the constants
    /// themselves are needed.
    NoTemplate(u64),
}

impl Found {
    fn catalog_version(&self) -> u64 {
        match self {
            Self::Plan(compiled) => compiled.catalog_version,
            Self::NoTemplate(version) => *version,
        }
    }
}

struct Entry {
    text: Box<str>,
    constants: Box<[DataType]>,
    database: Option<Box<str>>,
    mode: SqlMode,
    collation: Collation,
    found: Found,
    used: AtomicBool,
}

impl Entry {
    fn matches(&self, key: &PlanKey<'_>) -> bool {
        *self.text == *key.text
            && *self.constants == *key.constants
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

    /// What is known of `key` under `catalog_version`.
    pub(crate) fn get(&self, key: &PlanKey<'_>, catalog_version: u64) -> Option<Found> {
        if key.text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let hash = self.hash(key);
        let shard = self.shard(hash).lock();
        let entry = shard.entries.get(&hash)?;
        if !entry.matches(key) || entry.found.catalog_version() != catalog_version {
            return None;
        }
        entry.used.store(true, Ordering::Relaxed);
        Some(entry.found.clone())
    }

    /// Keeps what was found out about `key`.
    pub(crate) fn put(&self, key: &PlanKey<'_>, found: Found) {
        if key.text.len() > TEXT_BYTES_MAX {
            return;
        }
        let hash = self.hash(key);
        let mut shard = self.shard(hash).lock();
        let entry = Entry {
            text: key.text.into(),
            constants: key.constants.into(),
            database: key.database.map(Into::into),
            mode: key.mode,
            collation: key.collation,
            found,
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
            constants: &[],
            database: Some("d"),
            mode: SqlMode::default(),
            collation: Collation::default(),
        }
    }

    fn plan(catalog_version: u64) -> Found {
        Found::Plan(Arc::new(Compiled::for_test(catalog_version)))
    }

    #[test]
    fn a_plan_is_found_only_under_what_it_was_made_under() {
        let cache = PlanCache::default();
        cache.put(&key("SELECT 1"), plan(7));
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
        let other = PlanKey {
            constants: &[DataType::BIGINT],
            ..key("SELECT 1")
        };
        assert!(cache.get(&other, 7).is_none());
    }

    #[test]
    fn the_cache_stays_bounded_and_keeps_what_is_used() {
        let cache = PlanCache::default();
        cache.put(&key("hot"), plan(1));
        for i in 0..20_000 {
            cache.put(&key(&format!("cold {i}")), plan(1));
            assert!(cache.get(&key("hot"), 1).is_some(), "after {i}");
        }
        assert!(cache.len() <= SHARDS * SHARD_ENTRIES_MAX);
    }
}
