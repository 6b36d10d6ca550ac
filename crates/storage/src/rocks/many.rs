//! Many keys or ranges read in one go.
//!
//! Keys close together are walked over with one iterator; a gap of more than a few records is
//! crossed by a seek. Single keys far from each other are better served by the readers of
//! [`super::point`], which consult the filters and make no iterator at all.

use std::ops::Bound;
use std::sync::Arc;

use manxdb_core::check::deep;
use rocksdb::DB;

use super::cursor::RocksCursor;
use super::merge::MergedCursor;
use super::point::PointReaders;
use super::store::Layers;
use crate::engine::Cursor as _;
use crate::error::StorageError;
use crate::model::{Direction, KeyRange, Rows, Version, Versioned};
use crate::physical;

/// Fewer keys than this are read one by one: making an iterator costs about as much as so many
/// seeks with one that exists.
const WALKED_MIN: usize = 4;
/// Possible keys between the first and the last for each wanted one, at most.
const GAP_MAX: u64 = 3;
/// Bytes at the end of a key that are compared as a number.
const TAIL: usize = 8;

/// As [`crate::Engine::get_many`] in files that hold `ingested` memtables, which was read before
/// this call.
pub fn get_many(
    db: &Arc<DB>,
    readers: &PointReaders,
    keys: &[&[u8]],
    at: Version,
    ingested: u64,
) -> Result<Vec<Option<Versioned>>, StorageError> {
    // One walk finds nothing that lies behind it.
    assert!(
        keys.is_sorted_by(|one, next| one < next),
        "keys are given in order, once"
    );
    match keys {
        [first, .., last] if are_close(keys) => {
            let whole = between(first, last);
            let Some(mut cursor) = RocksCursor::new(db, &whole, at, Direction::Forward) else {
                return Ok(vec![None; keys.len()]);
            };
            keys.iter().map(|key| find(&mut cursor, key)).collect()
        }
        _ => readers.get_many(db, keys, at, ingested),
    }
}

/// The value of `key`, which lies behind everything `cursor` read so far.
fn find(cursor: &mut RocksCursor<'_>, key: &[u8]) -> Result<Option<Versioned>, StorageError> {
    let (lower, upper) = physical::bounds(&KeyRange::point(key));
    cursor.go_to(&lower, upper);
    if !cursor.advance()? {
        return Ok(None);
    }
    assert_eq!(cursor.key(), key, "a value is that of the key asked for");
    Ok(Some(Versioned {
        version: cursor.version(),
        value: cursor.value().to_vec(),
    }))
}

/// As [`crate::Engine::scan_many`].
pub fn scan_many(
    db: &DB,
    layers: &Layers,
    ranges: &[KeyRange],
    at: Version,
    limit: usize,
) -> Result<Vec<Rows>, StorageError> {
    let whole = match ranges {
        [] => return Ok(Vec::new()),
        [first, .., last] => KeyRange {
            start: first.start.clone(),
            end: last.end.clone(),
        },
        [only] => only.clone(),
    };
    assert!(
        ranges.is_sorted_by(KeyRange::ends_before),
        "ranges are given in order, and share no key"
    );
    let mut cursor = MergedCursor::new(db, layers, &whole, at, Direction::Forward);
    let mut pages = Vec::with_capacity(ranges.len());
    for range in ranges {
        cursor.go_to(range);
        let mut page = Rows::new();
        while page.len() < limit
            && let Some(entry) = cursor.next()?
        {
            assert!(
                !deep() || range.contains(entry.key),
                "a page has keys of its own range alone"
            );
            page.push((entry.key.to_vec(), entry.value.to_vec()));
        }
        assert!(page.len() <= limit, "a page is no longer than it may be");
        pages.push(page);
    }
    Ok(pages)
}

fn between(first: &[u8], last: &[u8]) -> KeyRange {
    KeyRange {
        start: Bound::Included(first.to_vec()),
        end: Bound::Included(last.to_vec()),
    }
}

/// Whether these ascending keys are likely to be neighbours: they differ in their last bytes
/// only, and not by much.
fn are_close(keys: &[&[u8]]) -> bool {
    let [first, .., last] = keys else {
        return false;
    };
    if keys.len() < WALKED_MIN || first.len() != last.len() {
        return false;
    }
    let (first_head, first_tail) = first.split_at(first.len().saturating_sub(TAIL));
    let (last_head, last_tail) = last.split_at(last.len().saturating_sub(TAIL));
    let between = number(last_tail).saturating_sub(number(first_tail));
    let wanted = u64::try_from(keys.len()).unwrap_or(u64::MAX);
    first_head == last_head && between <= wanted.saturating_mul(GAP_MAX)
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::model::{Durability, WriteBatch};
    use crate::rocks::{Options, RocksEngine};

    fn close(numbers: &[u32]) -> bool {
        let keys: Vec<Vec<u8>> = numbers
            .iter()
            .map(|n| [b"table", n.to_be_bytes().as_slice()].concat())
            .collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        are_close(&keys)
    }

    #[test]
    fn only_neighbours_are_walked_over() {
        assert!(close(&[1, 2, 3, 4]) && close(&[1, 4, 7, 12]));
        assert!(!close(&[1, 2, 3]), "too few");
        assert!(!close(&[1, 2, 3, 99]), "too far");
        assert!(!are_close(&[b"a", b"b", b"c", b"table-000001"]), "uneven");
        assert!(!are_close(&[]));
    }

    fn key(number: u32) -> Vec<u8> {
        [b"table".as_slice(), &number.to_be_bytes()].concat()
    }

    /// Iterators made and seeks done by `work`.
    fn counted(engine: &RocksEngine, work: impl FnOnce()) -> (f64, f64) {
        let counter = |wanted: &str| {
            let stats = engine.stats();
            let found = stats.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, count)| *count).unwrap()
        };
        let both = || {
            (
                counter("storage_iterators_total"),
                counter("storage_seeks_total"),
            )
        };
        let before = both();
        work();
        let after = both();
        (after.0 - before.0, after.1 - before.1)
    }

    #[test]
    fn neighbours_cost_one_seek_and_sparse_keys_no_iterator() {
        let directory = tempfile::tempdir().unwrap();
        let engine = RocksEngine::open(directory.path(), &Options::default()).unwrap();
        let numbers = 0..2_000u32;
        let writes = numbers.map(|n| (Version(1), key(n), Some(b"row".to_vec())));
        let writes = writes.collect();
        engine
            .write(&WriteBatch { writes }, Durability::Async)
            .unwrap();
        engine.flush().unwrap();
        let get_many = |numbers: &[u32]| {
            let keys: Vec<Vec<u8>> = numbers.iter().map(|n| key(*n)).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let found = engine.get_many(&keys, Version(1)).unwrap();
            assert!(found.iter().all(Option::is_some));
        };
        let neighbours: Vec<u32> = (0..200).step_by(2).collect();
        let sparse: Vec<u32> = (0..2_000).step_by(100).collect();
        let walked = counted(&engine, || get_many(&neighbours));
        assert_eq!(walked, (1.0, 1.0), "iterators and seeks of a walk");
        get_many(&sparse[..1]);
        let sought = counted(&engine, || get_many(&sparse));
        assert_eq!(sought, (0.0, 20.0), "iterators and seeks of single reads");
        let ranges: Vec<KeyRange> = (0..100).map(|n| KeyRange::prefix(&key(n))).collect();
        let scanned = counted(&engine, || {
            let pages = engine.scan_many(&ranges, Version(1), 9).unwrap();
            assert!(pages.iter().all(|page| page.len() == 1));
        });
        assert_eq!(scanned, (1.0, 1.0), "iterators and seeks of ranges");
    }
}
