//! Point reads of the sorted files at a version: one seek on an iterator that is kept for the next
//! read.
//!
//! A read at `v` wants the newest version at or below `v`, so it is a seek, not RocksDB's `Get`.
//! Making an iterator costs more than seeking with it, so iterators are pooled. An iterator shows
//! the files as of its creation or last refresh. They change what a read finds only when a
//! memtable becomes a file, so an iterator serves all reads that ask for no more memtables than it
//! has seen; else it is refreshed.
//!
//! A pooled iterator pins the files it was built on, also those that compactions have replaced, so
//! the pool is emptied after every [`PINNED_BYTES`] written and after a compaction asked for by an
//! operator.

use std::sync::Arc;

use parking_lot::Mutex;
use rocksdb::{DB, DBRawIterator, ReadOptions};

use super::error;
use crate::error::StorageError;
use crate::model::{Version, Versioned};
use crate::physical::{self, Record};

/// Readers kept for the next read; more than this many at once are made and dropped.
const POOLED_READERS: usize = 64;

/// Bytes written before readers are dropped so that what they pin can be freed.
const PINNED_BYTES: usize = 8 << 20;

/// Iterators for point reads.
pub struct PointReaders {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    readers: Vec<Reader>,
    /// Raised when the pool is emptied: readers lent out before do not come back.
    generation: u64,
    written_bytes: usize,
}

struct Reader {
    // Dropped before `_db`: fields drop in the order they are declared.
    iterator: DBRawIterator<'static>,
    /// How many memtables were in the files when the iterator was made, at least.
    ingested: u64,
    generation: u64,
    seek: Vec<u8>,
    _db: Arc<DB>,
}

impl Reader {
    fn new(db: &Arc<DB>, ingested: u64, generation: u64) -> Self {
        let mut options = ReadOptions::default();
        // Without bounds the iterator ends where the prefix ends, and consults the filters.
        options.set_prefix_same_as_start(true);
        Self {
            iterator: iterator_of(db, options),
            ingested,
            generation,
            seek: Vec::new(),
            _db: Arc::clone(db),
        }
    }

    fn get(&mut self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError> {
        self.seek.clear();
        physical::push_prefix(key, &mut self.seek);
        let prefix_bytes = self.seek.len();
        physical::push_version(at, &mut self.seek);
        self.iterator.seek(&self.seek);
        let Some((found, value)) = self.iterator.item() else {
            let status = self.iterator.status();
            return status.map(|()| None).map_err(|error| {
                let prefix = physical::hex(self.seek.get(..prefix_bytes).unwrap_or_default());
                error::map(&format!("cannot read key {prefix}"), &error)
            });
        };
        match physical::split(found) {
            Some((prefix, version)) if Some(prefix) == self.seek.get(..prefix_bytes) => {
                assert!(
                    version <= at,
                    "a reader sees nothing newer than its snapshot: {version:?} at {at:?}"
                );
                match physical::decode_value(found, value)? {
                    Record::Delete => Ok(None),
                    Record::Put(payload) => Ok(Some(Versioned {
                        version,
                        value: payload.to_vec(),
                    })),
                }
            }
            _ => Ok(None),
        }
    }
}

#[allow(unsafe_code)]
fn iterator_of(db: &Arc<DB>, options: ReadOptions) -> DBRawIterator<'static> {
    // SAFETY: the reference is used only by the iterator, which lives in a `Reader` beside a
    // clone of this `Arc` and is dropped before it. The `DB` is behind the `Arc`, so it neither
    // moves nor ends while the iterator lives.
    let db: &'static DB = unsafe { &*Arc::as_ptr(db) };
    db.raw_iterator_opt(options)
}

impl PointReaders {
    pub fn new() -> Self {
        Self {
            idle: Mutex::default(),
        }
    }

    /// The newest value of `key` at or below `at` in files that hold `ingested` memtables, which was
    /// read before this call.
    pub fn get(
        &self,
        db: &Arc<DB>,
        key: &[u8],
        at: Version,
        ingested: u64,
    ) -> Result<Option<Versioned>, StorageError> {
        let mut reader = self.take(db, ingested)?;
        let found = reader.get(key, at)?;
        self.give_back(reader);
        Ok(found)
    }

    /// As [`PointReaders::get`] for each of `keys`, all by one reader.
    pub fn get_many(
        &self,
        db: &Arc<DB>,
        keys: &[&[u8]],
        at: Version,
        ingested: u64,
    ) -> Result<Vec<Option<Versioned>>, StorageError> {
        let mut reader = self.take(db, ingested)?;
        let found = keys.iter().map(|key| reader.get(key, at)).collect();
        self.give_back(reader);
        found
    }

    fn take(&self, db: &Arc<DB>, ingested: u64) -> Result<Reader, StorageError> {
        let (reader, generation) = {
            let mut idle = self.idle.lock();
            let (reader, generation) = (idle.readers.pop(), idle.generation);
            assert!(
                reader
                    .as_ref()
                    .is_none_or(|one| one.generation == generation),
                "a pool that was emptied lends nothing from before"
            );
            (reader, generation)
        };
        let Some(mut reader) = reader else {
            return Ok(Reader::new(db, ingested, generation));
        };
        if reader.ingested < ingested {
            reader
                .iterator
                .refresh()
                .map_err(|error| error::map("cannot refresh an iterator", &error))?;
            reader.ingested = ingested;
        }
        Ok(reader)
    }

    fn give_back(&self, reader: Reader) {
        let mut idle = self.idle.lock();
        assert!(
            reader.generation <= idle.generation,
            "no reader is newer than the pool"
        );
        if reader.generation == idle.generation && idle.readers.len() < POOLED_READERS {
            idle.readers.push(reader);
        }
        assert!(
            idle.readers.len() <= POOLED_READERS,
            "idle readers, and the files that they pin, have a limit"
        );
    }

    /// Tells of a write, so that what idle readers pin stays bounded.
    pub fn written(&self, bytes: usize) {
        let full = {
            let mut idle = self.idle.lock();
            idle.written_bytes += bytes;
            idle.written_bytes >= PINNED_BYTES
        };
        if full {
            self.clear();
        }
    }

    /// Drops the idle readers and what they pin.
    pub fn clear(&self) {
        let dropped = {
            let mut idle = self.idle.lock();
            idle.written_bytes = 0;
            idle.generation += 1;
            std::mem::take(&mut idle.readers)
        };
        // Freeing files takes time: not under the lock.
        drop(dropped);
    }
}
