//! Rows that nobody sees any more: elements of deleted objects, and what a database had before it was
//! flushed. Rows of garbage name them by the prefix of their keys.
//!
//! Few are deleted one by one. Many are given up as a whole ([`DeadRows`]): compactions drop them, here
//! or at workers, and nothing is written for each of them. Where none comes by for a while, the store
//! is asked for one. When no row is left, the row of garbage goes.
//!
//! Compactions also hear which expired keys are deleted for good, and drop their rows without having
//! met the deletion.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use manxdb_redis::keyspace::rows;
use manxdb_storage::{
    DeadRows, Direction, DroppedPrefix, Engine, ExpiredRows, KeyRange, StorageError, Version,
};

use super::store::{LOOK, PAGE_ROWS, each_page};
use super::sync::{Durable, Syncs};
use super::{RedisStore, Shared};

/// Pause between looks for rows that nobody sees.
const PAUSE: Duration = Duration::from_secs(1);
/// Looks between compactions that are asked for.
const LOOKS_BETWEEN_COMPACTIONS: u32 = 60;

/// Rows of one prefix from which on they are left to compactions.
const MANY_ROWS: usize = if cfg!(test) { 200 } else { 10_000 };
/// Prefixes that are given up at a time, and bytes of one: all are told to each compaction.
const PREFIXES_MAX: usize = 1_000;
const PREFIX_BYTES_MAX: usize = 1 << 10;

/// Until the server stops.
pub fn remove(shared: &Shared, store: &RedisStore, syncs: &Syncs) {
    let mut garbage = Garbage::new(store.engine.as_ref());
    let mut said = false;
    let (mut waited, mut looks) = (PAUSE, 0_u32);
    let is_stopping = || shared.is_stopping.load(Ordering::SeqCst);
    while !is_stopping() {
        if waited < PAUSE {
            waited += LOOK;
            thread::sleep(LOOK);
            continue;
        }
        waited = Duration::ZERO;
        looks = looks.wrapping_add(1);
        let mut looked = garbage.look(store, syncs.durable(), &is_stopping);
        if looks.is_multiple_of(LOOKS_BETWEEN_COMPACTIONS) && looked.is_ok() {
            looked = store.engine.compact_dead_rows();
        }
        if let Err(error) = looked
            && !std::mem::replace(&mut said, true)
        {
            tracing::warn!(%error, "rows of deleted Redis keys are not removed");
        }
    }
}

/// What is left to compactions.
#[derive(Debug)]
struct Garbage {
    /// Rows of garbage with their versions, which are those of the deletions.
    given_up: BTreeMap<Vec<u8>, Version>,
    /// Whether the engine has compactions that drop rows.
    is_dropped_by_engine: bool,
}

impl Garbage {
    fn new(engine: &dyn Engine) -> Self {
        Self {
            given_up: BTreeMap::new(),
            is_dropped_by_engine: engine.set_dead_rows(DeadRows::default()),
        }
    }

    /// Looks at all rows of garbage once.
    fn look(
        &mut self,
        store: &RedisStore,
        durable: Durable,
        is_stopping: &dyn Fn() -> bool,
    ) -> Result<(), StorageError> {
        let engine = store.engine.as_ref();
        for (name, version) in names(engine)? {
            if is_stopping() {
                return Ok(());
            }
            let Some(prefix) = rows::garbage_of(&name) else {
                tracing::error!("a row of garbage names no rows of Redis: it is left alone");
                continue;
            };
            if self.given_up.contains_key(&name) {
                if !keys(engine, prefix, 1)?.is_empty() {
                    continue;
                }
                self.given_up.remove(&name);
            } else {
                let found = keys(engine, prefix, MANY_ROWS)?;
                if found.len() == MANY_ROWS && self.has_room_for(prefix) {
                    self.given_up.insert(name, version);
                    continue;
                }
                if !delete(store, prefix, found, is_stopping)? {
                    return Ok(());
                }
            }
            store.path.append_rows(&mut vec![(name, None)])?;
        }
        engine.set_dead_rows(self.dead(durable));
        Ok(())
    }

    fn has_room_for(&self, prefix: &[u8]) -> bool {
        let has_room = self.given_up.len() < PREFIXES_MAX && prefix.len() <= PREFIX_BYTES_MAX;
        self.is_dropped_by_engine && has_room
    }

    /// What compactions may drop: a deletion that is not on disk could be taken back by a crash.
    fn dead(&self, durable: Durable) -> DeadRows {
        let on_disk = self
            .given_up
            .iter()
            .filter(|(_, at)| **at <= durable.version);
        let dropped = on_disk.filter_map(|(name, version)| {
            let prefix = rows::garbage_of(name)?.to_vec();
            let version = *version;
            Some(DroppedPrefix { prefix, version })
        });
        let dropped: Vec<DroppedPrefix> = dropped.collect();
        assert!(
            dropped.len() <= PREFIXES_MAX,
            "each job is told few prefixes"
        );
        DeadRows {
            dropped,
            expired: durable.expired_until.map(|until| ExpiredRows {
                prefix: rows::meta_prefix().to_vec(),
                until,
                version: durable.version,
                expiry_of: rows::expiry_of,
            }),
        }
    }
}

/// Rows of garbage and their versions: one more than are given up at a time.
fn names(engine: &dyn Engine) -> Result<Vec<(Vec<u8>, Version)>, StorageError> {
    let range = KeyRange::prefix(&rows::garbage_prefix());
    let mut cursor = engine.scan(&range, Version::MAX, Direction::Forward)?;
    let mut names = Vec::new();
    while names.len() < PREFIXES_MAX + PAGE_ROWS
        && let Some(entry) = cursor.next()?
    {
        names.push((entry.key.to_vec(), entry.version));
    }
    Ok(names)
}

/// The first keys that begin with `prefix`.
fn keys(engine: &dyn Engine, prefix: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, StorageError> {
    let range = KeyRange::prefix(prefix);
    let mut cursor = engine.scan(&range, Version::MAX, Direction::Forward)?;
    let mut keys = Vec::new();
    while keys.len() < limit
        && let Some(entry) = cursor.next()?
    {
        keys.push(entry.key.to_vec());
    }
    Ok(keys)
}

/// Deletes the rows `found`, and all others whose keys begin with `prefix`; false when the server stops
/// before the last one.
fn delete(
    store: &RedisStore,
    prefix: &[u8],
    found: Vec<Vec<u8>>,
    is_stopping: &dyn Fn() -> bool,
) -> Result<bool, StorageError> {
    let is_all = found.len() < MANY_ROWS;
    for page in found.chunks(PAGE_ROWS) {
        let mut removed = page.iter().map(|key| (key.clone(), None)).collect();
        store.path.append_rows(&mut removed)?;
        if is_stopping() {
            return Ok(false);
        }
    }
    if is_all {
        return Ok(true);
    }
    let mut failed = Ok(());
    each_page(store.engine.as_ref(), prefix, |page| {
        let mut removed = page.into_iter().map(|(key, _)| (key, None)).collect();
        failed = store.path.append_rows(&mut removed).map(|_| ());
        failed.is_ok() && !is_stopping()
    })?;
    failed?;
    Ok(!is_stopping())
}

#[cfg(test)]
mod tests;
