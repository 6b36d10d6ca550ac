//! What readers and the flusher share: memtables in front of sorted files.
//!
//! ```text
//! active    written to
//! frozen    full, newest first: being written to sorted files, the oldest first
//! RocksDB   sorted files only: its own memtable stays empty
//! ```
//!
//! Versions are written in ascending order, so what a newer layer says of a key hides all older
//! layers: a read asks them in turn and stops at the first answer. It takes the list of layers
//! before it looks into RocksDB: a memtable that is gone from the list is in the files then. One
//! that is both in the list and in the files says the same twice.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use manxdb_compaction_edge::set_background_jobs;
use manxdb_core::check::{deep, ensure};
use rocksdb::DB;

use super::empty_ranges::EmptyRanges;
use super::many;
use super::merge::MergedCursor;
use super::point::PointReaders;
use super::progress::Progress;
use super::quarantine::Quarantine;
use super::tombstones::Tombstones;
use crate::engine::Cursor;
use crate::error::StorageError;
use crate::memtable::{Lookup, Memtable, Shared};
use crate::model::{Direction, KeyRange, Rows, Version, Versioned, WriteBatch};
use crate::{files, physical};

/// Full memtables that wait to be written out, at most; with the active one three, as
/// [`super::Options`] promises.
pub const FROZEN_MAX: usize = 2;

/// File of a memtable that is being written out, in RocksDB's folder; no name RocksDB knows.
const FLUSHING: &str = "flushing";

/// A memtable that gets no more batches.
#[derive(Debug, Clone)]
pub struct Frozen {
    /// What it holds.
    pub memtable: Arc<Memtable>,
    /// What the store holds with it.
    pub progress: Progress,
}

/// Where to look for a key, as of one moment.
#[derive(Debug)]
pub struct Layers {
    /// Written to.
    pub active: Arc<Memtable>,
    /// Newest first.
    pub frozen: Vec<Frozen>,
    /// How many memtables were written out and are not listed any more: a view of RocksDB from
    /// before misses the last of them.
    pub ingested: u64,
    /// Whether sorted files hold anything.
    pub has_files: bool,
}

impl Layers {
    /// The memtables that hold anything, newest first.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        let frozen = self.frozen.iter().map(|frozen| &frozen.memtable);
        let all = std::iter::once(&self.active).chain(frozen);
        all.filter(|memtable| !memtable.is_empty())
    }

    /// What every list of layers has.
    ///
    /// # Errors
    /// The invariant that is broken.
    pub fn check(&self) -> Result<(), String> {
        ensure(self.frozen.len() <= FROZEN_MAX, || {
            format!(
                "{} memtables wait, of {FROZEN_MAX} that may",
                self.frozen.len()
            )
        })?;
        let is_newer = |one: &Frozen, next: &Frozen| next.progress.is_at_most(one.progress);
        ensure(self.frozen.is_sorted_by(is_newer), || {
            let progress: Vec<Progress> = self.frozen.iter().map(|it| it.progress).collect();
            format!("a memtable goes on where the one before it ended: {progress:?}")
        })?;
        ensure(self.has_files || self.ingested == 0, || {
            format!(
                "{} memtables are in files, and there is none",
                self.ingested
            )
        })?;
        let is_active = |frozen: &Frozen| Arc::ptr_eq(&frozen.memtable, &self.active);
        ensure(!self.frozen.iter().any(is_active), || {
            "a memtable that is written out gets no more batches".to_owned()
        })
    }

    fn get(&self, shared: &Shared, key: &[u8], at: Version) -> Lookup {
        let mut hash = None;
        for memtable in self.memtables() {
            let hash = *hash.get_or_insert_with(|| shared.hash(key));
            match memtable.get(hash, key, at) {
                Lookup::Unknown => {}
                known => return known,
            }
        }
        Lookup::Unknown
    }
}

/// Memtables in front of RocksDB.
pub struct Store {
    /// Dropped before `db`.
    pub readers: PointReaders,
    layers: ArcSwap<Layers>,
    /// What all memtables share.
    pub shared: Arc<Shared>,
    /// Deletes that compactions could not drop.
    pub tombstones: Arc<Tombstones>,
    /// Ranges that scans found empty.
    pub empty_ranges: EmptyRanges,
    watermark: Arc<AtomicU64>,
    /// The settings RocksDB was opened with.
    pub settings: rocksdb::Options,
    /// Bytes of the files made of memtables.
    pub flushed_bytes: AtomicU64,
    data: PathBuf,
    /// Sorted files that compactions found damaged.
    pub quarantine: Arc<Quarantine>,
    /// Flushes and compactions that RocksDB runs at a time, those held back left out.
    jobs: u16,
    /// The same with them, as RocksDB was told last.
    jobs_told: AtomicU16,
    /// The sorted files.
    pub db: Arc<DB>,
}

impl Drop for Store {
    fn drop(&mut self) {
        // RocksDB waits for its threads when it closes.
        self.quarantine.close();
    }
}

impl Store {
    /// Over RocksDB just opened in the folder `data` with `settings`, which runs so many flushes and
    /// compactions at a time.
    pub fn new(
        db: DB,
        settings: rocksdb::Options,
        data: PathBuf,
        watermark: &Arc<AtomicU64>,
        tombstones: &Arc<Tombstones>,
        quarantine: Arc<Quarantine>,
        jobs: u16,
    ) -> Self {
        let shared = Arc::default();
        let layers = Layers {
            active: Arc::new(Memtable::new(&shared)),
            frozen: Vec::new(),
            ingested: 0,
            has_files: has_rows(&db),
        };
        Self {
            readers: PointReaders::new(),
            layers: ArcSwap::from_pointee(layers),
            shared,
            tombstones: Arc::clone(tombstones),
            empty_ranges: EmptyRanges::default(),
            watermark: Arc::clone(watermark),
            settings,
            flushed_bytes: AtomicU64::new(0),
            data,
            quarantine,
            jobs,
            jobs_told: AtomicU16::new(jobs),
            db: Arc::new(db),
        }
    }

    /// Gives RocksDB threads in place of those that wait with compactions of damaged files.
    pub fn make_up_for_held_compactions(&self) {
        let jobs = self.jobs.saturating_add(self.quarantine.held_max());
        if self.jobs_told.swap(jobs, Ordering::Relaxed) == jobs {
            return;
        }
        if let Err(error) = set_background_jobs(&self.db, jobs) {
            tracing::warn!(error, jobs, "RocksDB keeps its number of threads");
        }
    }

    /// The layers of now.
    pub fn layers(&self) -> arc_swap::Guard<Arc<Layers>> {
        self.layers.load()
    }

    /// Below it nobody reads.
    pub fn watermark(&self) -> Version {
        Version(self.watermark.load(Ordering::Acquire))
    }

    /// Nobody will read below `watermark` any more.
    pub fn set_watermark(&self, watermark: Version) {
        self.watermark.fetch_max(watermark.0, Ordering::AcqRel);
    }

    /// Where a memtable is written before RocksDB takes it over.
    pub fn flushing(&self) -> PathBuf {
        flushing(&self.data)
    }

    /// Puts a batch into the active memtable; what nobody at or above `watermark` sees then goes.
    /// The newest version. One caller at a time, who also freezes.
    pub fn apply(&self, batch: &WriteBatch, watermark: Version) -> Version {
        let layers = self.layers();
        let mut latest = Version::ZERO;
        for (version, key, value) in &batch.writes {
            let value = value.as_deref();
            layers.active.write(*version, key, value, watermark);
            latest = latest.max(*version);
            assert!(
                !deep() || layers.active.has_written(*version, key, value),
                "a batch is read as it was written"
            );
        }
        self.empty_ranges.written(batch);
        latest
    }

    /// As [`Store::apply`] for keys that are read at the last version alone. Takes the values: what is
    /// left says still which keys were put.
    pub fn apply_latest(&self, batch: &mut WriteBatch) -> Version {
        let layers = self.layers();
        let mut latest = Version::ZERO;
        for (version, key, value) in &mut batch.writes {
            let value = value.as_mut().map(std::mem::take);
            let value = value.map(Vec::into_boxed_slice);
            layers.active.put(*version, key, value, Version::MAX);
            latest = latest.max(*version);
        }
        assert!(
            latest > Version::ZERO,
            "a batch that was logged has a version"
        );
        self.empty_ranges.written(batch);
        latest
    }

    /// Begins a new memtable; the one so far holds the store up to `progress`.
    pub fn freeze(&self, progress: Progress) {
        if deep() {
            assert_eq!(self.layers().active.check(), Ok(()));
        }
        let active = Arc::new(Memtable::new(&self.shared));
        self.layers.rcu(|layers| {
            let memtable = Arc::clone(&layers.active);
            let mut frozen = vec![Frozen { memtable, progress }];
            frozen.extend(layers.frozen.iter().cloned());
            let layers = Layers {
                active: Arc::clone(&active),
                frozen,
                ..**layers
            };
            assert_eq!(layers.check(), Ok(()));
            layers
        });
        self.empty_ranges.memtable_begun();
    }

    /// The sorted files hold `written`, the oldest frozen memtable.
    pub fn ingested(&self, written: &Arc<Memtable>) {
        self.layers.rcu(|layers| {
            let oldest = layers.frozen.last();
            assert!(
                oldest.is_some_and(|oldest| Arc::ptr_eq(&oldest.memtable, written)),
                "memtables are written out in the order in which they were frozen"
            );
            let kept = layers.frozen.len().saturating_sub(1);
            let layers = Layers {
                active: Arc::clone(&layers.active),
                frozen: layers.frozen[..kept].to_vec(),
                ingested: layers.ingested + 1,
                has_files: true,
            };
            assert_eq!(layers.check(), Ok(()));
            layers
        });
    }

    /// As [`crate::Engine::get`].
    pub fn get(&self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError> {
        let layers = self.layers();
        match layers.get(&self.shared, key, at) {
            Lookup::Found(found) => Ok(Some(found)),
            Lookup::Deleted => Ok(None),
            Lookup::Unknown if !layers.has_files => Ok(None),
            Lookup::Unknown => self.readers.get(&self.db, key, at, layers.ingested),
        }
    }

    /// As [`crate::Engine::get_many`].
    pub fn get_many(
        &self,
        keys: &[&[u8]],
        at: Version,
    ) -> Result<Vec<Option<Versioned>>, StorageError> {
        let layers = self.layers();
        let mut found = Vec::with_capacity(keys.len());
        let (mut places, mut rest) = (Vec::new(), Vec::new());
        for (place, key) in keys.iter().enumerate() {
            found.push(match layers.get(&self.shared, key, at) {
                Lookup::Found(found) => Some(found),
                Lookup::Deleted => None,
                Lookup::Unknown => {
                    places.push(place);
                    rest.push(*key);
                    None
                }
            });
        }
        if layers.has_files && !rest.is_empty() {
            let older = many::get_many(&self.db, &self.readers, &rest, at, layers.ingested)?;
            assert_eq!(
                older.len(),
                places.len(),
                "the files answer each key they are asked"
            );
            for (place, older) in places.into_iter().zip(older) {
                found[place] = older;
            }
        }
        assert_eq!(
            found.len(),
            keys.len(),
            "a read of many keys answers each of them"
        );
        Ok(found)
    }

    /// As [`crate::Engine::scan`].
    pub fn scan(
        &self,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Box<dyn Cursor + '_> {
        let memtables = self.empty_ranges.memtables();
        let layers = self.layers();
        let cursor = MergedCursor::new(&self.db, &layers, range, at, direction);
        Box::new(cursor.noting(&self.empty_ranges, memtables, range, at))
    }

    /// As [`crate::Engine::scan_many`].
    pub fn scan_many(
        &self,
        ranges: &[KeyRange],
        at: Version,
        limit: usize,
    ) -> Result<Vec<Rows>, StorageError> {
        let pages = many::scan_many(&self.db, &self.layers(), ranges, at, limit)?;
        assert_eq!(
            pages.len(),
            ranges.len(),
            "a read of many ranges answers each of them"
        );
        Ok(pages)
    }
}

fn flushing(data: &std::path::Path) -> PathBuf {
    data.join(FLUSHING)
}

/// Removes what a crash left of a memtable half written out: the log still has it.
///
/// # Errors
/// [`StorageError::ReadOnly`] or [`StorageError::Io`].
pub fn remove_half_written(data: &std::path::Path) -> Result<(), StorageError> {
    let place = flushing(data);
    match std::fs::remove_file(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let context = format!("cannot remove {}", place.display());
            Err(files::io_error(context, error))
        }
        _ => Ok(()),
    }
}

/// Whether RocksDB holds more than its own record; also when that cannot be read.
fn has_rows(db: &DB) -> bool {
    let mut iterator = db.raw_iterator();
    iterator.seek_to_first();
    if iterator.key() == Some(physical::LATEST_KEY) {
        iterator.next();
    }
    iterator.valid() || iterator.status().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_defect_of_a_list_of_layers_is_found() {
        let shared = Arc::default();
        let frozen = |memtable: &Arc<Memtable>| Frozen {
            memtable: Arc::clone(memtable),
            progress: Progress::default(),
        };
        let fine = || Layers {
            active: Arc::new(Memtable::new(&shared)),
            frozen: Vec::new(),
            ingested: 0,
            has_files: false,
        };
        assert_eq!(fine().check(), Ok(()));
        let lost = Layers {
            ingested: 1,
            ..fine()
        };
        assert!(lost.check().is_err_and(|why| why.contains("there is none")));
        let mut many = fine();
        let other = Arc::new(Memtable::new(&shared));
        many.frozen = vec![frozen(&other); FROZEN_MAX + 1];
        assert!(many.check().is_err_and(|why| why.contains("that may")));
        let mut written = fine();
        written.frozen = vec![frozen(&written.active)];
        assert!(
            written
                .check()
                .is_err_and(|why| why.contains("no more batches"))
        );
    }
}
