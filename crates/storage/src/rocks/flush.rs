//! A memtable becomes a sorted file.
//!
//! The file is written beside those of RocksDB and synced, then RocksDB takes it over under a name
//! of its own: all of it or nothing, in its catalogue, synced too. Until then the log has what is
//! in it; a crash before leaves a file that the next start removes.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering;

use manxdb_core::check::deep;
use rocksdb::{IngestExternalFileOptions, ReadTier, SstFileWriter, properties};

use super::progress::Progress;
use super::store::{Frozen, Store};
use super::{error, tombstones};
use crate::error::StorageError;
use crate::memtable::Nodes;
use crate::model::{Direction, KeyRange, Version};
use crate::physical::{self, LATEST_KEY, Record};

/// Makes a sorted file of `frozen` and of the removal of deletes that wait for it
/// ([`super::tombstones`]), and hands it to RocksDB.
///
/// # Errors
/// [`StorageError::Behind`] while too many files wait for a compaction; what writing meets.
/// Nothing is changed then.
pub fn write_out(store: &Store, frozen: &Frozen) -> Result<(), StorageError> {
    store.make_up_for_held_compactions();
    if let Ok(Some(1..)) = store.db.property_int_value(properties::IS_WRITE_STOPPED) {
        return Err(StorageError::Behind(
            "too many sorted files wait for a compaction".to_owned(),
        ));
    }
    let place = store.flushing();
    let notes = store.tombstones.take();
    let purged = tombstones::purge(&store.db, &notes, store.watermark());
    let written = write_file(store, frozen, purged.into(), &place)
        .and_then(|bytes| ingest(store, &place).map(|()| bytes));
    match written {
        Ok(bytes) => {
            store.flushed_bytes.fetch_add(bytes, Ordering::Relaxed);
            // A block that cannot be read says nothing about this.
            if let Ok(held) = Progress::read(&store.db, ReadTier::Persisted) {
                assert_eq!(
                    held, frozen.progress,
                    "the sorted files say that they hold the memtable"
                );
            }
            Ok(())
        }
        Err(error) => {
            store.tombstones.put_back(notes);
            // Half a file takes space; the error that stopped the writing is the one to report.
            let _ = std::fs::remove_file(&place);
            Err(error)
        }
    }
}

fn write_file(
    store: &Store,
    frozen: &Frozen,
    purged: VecDeque<Vec<u8>>,
    place: &Path,
) -> Result<u64, StorageError> {
    let context = |error| error::map(&format!("cannot write {}", place.display()), &error);
    assert!(
        purged.iter().is_sorted_by(|one, next| one < next),
        "what is removed comes in order and once, as a sorted file has it"
    );
    let mut file = SstFileWriter::create(&store.settings);
    file.open(place).map_err(context)?;
    let mut records = Records {
        purged,
        put: |key: &[u8], value: Option<&[u8]>| match value {
            Some(value) => file.put(key, value),
            None => file.delete(key),
        },
    };
    put_all(store, frozen, &mut records).map_err(context)?;
    file.finish().map_err(context)?;
    Ok(file.file_size())
}

/// Takes records in their order and puts removals between them.
struct Records<F> {
    /// Physical keys to remove, in order.
    purged: VecDeque<Vec<u8>>,
    put: F,
}

impl<F: FnMut(&[u8], Option<&[u8]>) -> Result<(), rocksdb::Error>> Records<F> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), rocksdb::Error> {
        while let Some(first) = self.purged.front().filter(|first| first.as_slice() <= key) {
            // What is written anew need not be removed.
            if first.as_slice() < key {
                (self.put)(first, None)?;
            }
            self.purged.pop_front();
        }
        (self.put)(key, Some(value))
    }

    fn end(&mut self) -> Result<(), rocksdb::Error> {
        let mut rest = std::mem::take(&mut self.purged).into_iter();
        rest.try_for_each(|key| (self.put)(&key, None))
    }
}

fn put_all<F: FnMut(&[u8], Option<&[u8]>) -> Result<(), rocksdb::Error>>(
    store: &Store,
    frozen: &Frozen,
    records: &mut Records<F>,
) -> Result<(), rocksdb::Error> {
    records.put(LATEST_KEY, &frozen.progress.stored())?;
    let watermark = store.watermark();
    let (mut key, mut stored) = (Vec::new(), Vec::new());
    let mut nodes = Nodes::new(&frozen.memtable, &KeyRange::all(), Direction::Forward);
    while let Some(node) = nodes.next() {
        key.clear();
        physical::push_prefix(node.key(), &mut key);
        let prefix_bytes = key.len();
        assert!(
            key.as_slice() > LATEST_KEY,
            "the store's own record comes first in a file"
        );
        assert!(
            !deep() || physical::is_prefix_of(&key, node.key()),
            "a row is read under the key that it was written under"
        );
        node.needed(watermark, |version: Version, value: Option<&[u8]>| {
            // Versions behind the one that the file says would be given again after a restart.
            assert!(
                version <= frozen.progress.latest,
                "a file says the highest version in it"
            );
            key.truncate(prefix_bytes);
            physical::push_version(version, &mut key);
            let record = value.map_or(Record::Delete, Record::Put);
            physical::encode_value(&key, record, &mut stored);
            records.put(&key, &stored)
        })?;
    }
    records.end()
}

fn ingest(store: &Store, place: &Path) -> Result<(), StorageError> {
    let mut options = IngestExternalFileOptions::default();
    options.set_move_files(true);
    store
        .db
        .ingest_external_file_opts(&options, vec![place])
        .map_err(|error| error::map("cannot take a sorted file over", &error))
}
