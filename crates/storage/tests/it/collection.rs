//! What is left of deleted rows in a store that is never compacted as a whole.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use manxdb_storage::{
    Direction, Durability, Engine, KeyRange, Options, RocksEngine, Version, WriteBatch,
};

fn write(engine: &RocksEngine, version: u64, key: &[u8], value: Option<&[u8]>) {
    let writes = vec![(Version(version), key.to_vec(), value.map(<[u8]>::to_vec))];
    engine
        .write(&WriteBatch { writes }, Durability::Async)
        .unwrap();
}

fn stat(engine: &RocksEngine, name: &str) -> f64 {
    let stats = engine.stats();
    stats.iter().find(|(found, _)| *found == name).unwrap().1
}

const OTHERS: u16 = 500;

/// Rows behind those under test, of bytes that do not compress.
fn fill_several_files(engine: &RocksEngine) {
    let mut random = 1u64;
    let mut noise = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        random.to_be_bytes()[0]
    };
    for row in 0..OTHERS {
        let key = [b"zebra", &row.to_be_bytes()[..]].concat();
        let value: Vec<u8> = (0..1000).map(|_| noise()).collect();
        write(engine, 1 + u64::from(row), &key, Some(&value));
    }
}

#[test]
fn deletes_go_even_when_only_parts_of_the_store_are_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        file_bytes: 64 << 10,
        ..Options::default()
    };
    let engine = RocksEngine::open(directory.path(), &options).unwrap();
    fill_several_files(&engine);
    engine.compact().unwrap();
    let rows = 20u64;
    for row in 0..rows {
        write(
            &engine,
            1_000 + row,
            &[b'a', u8::try_from(row).unwrap()],
            Some(b"x"),
        );
    }
    engine.compact_range(&KeyRange::prefix(b"a")).unwrap();
    for row in 0..rows {
        write(
            &engine,
            1_100 + row,
            &[b'a', u8::try_from(row).unwrap()],
            None,
        );
    }
    engine.set_watermark(Version(1_150));
    engine.compact_range(&KeyRange::prefix(b"a")).unwrap();
    assert!(
        stat(&engine, "storage_tombstones_to_purge") >= 20.0,
        "the deletes were noted"
    );
    for version in 1_200..1_210 {
        write(&engine, version, b"other", Some(b"x"));
    }
    engine.flush().unwrap();
    assert!(
        stat(&engine, "storage_tombstones_to_purge") < 1.0,
        "and purged when those after them are written out"
    );
    engine.compact_range(&KeyRange::prefix(b"a")).unwrap();
    // Of the rows nothing is left: only other keys and the engine's own record.
    assert!(
        stat(&engine, "storage_records") <= f64::from(OTHERS) + 13.0,
        "{:?}",
        engine.stats()
    );
    for row in 0..rows {
        let key = [b'a', u8::try_from(row).unwrap()];
        assert_eq!(engine.get(&key, Version::MAX).unwrap(), None);
    }
    assert!(engine.get(b"zebra\0\0", Version::MAX).unwrap().is_some());
}

fn order(number: u32) -> Vec<u8> {
    [b"queue".as_slice(), &number.to_be_bytes()].concat()
}

/// A queue: what is read is the first row, which is then deleted, and others come behind the last.
#[test]
fn the_front_of_a_queue_is_found_without_stepping_over_all_that_was_deleted() {
    const ORDERS: u32 = 1_000;
    let directory = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(directory.path(), &Options::default()).unwrap();
    let mut version = 0;
    let mut next = |key: Vec<u8>, value: Option<&[u8]>| {
        version += 1;
        write(&engine, version, &key, value);
        version
    };
    for number in 0..100 {
        next(order(number), Some(b"x"));
    }
    let mut most = 0.0_f64;
    for number in 0..ORDERS {
        let at = next(order(number + 100), Some(b"x"));
        let before = stat(&engine, "storage_deletes_passed_total");
        let queue = KeyRange::prefix(b"queue");
        let mut cursor = engine
            .scan(&queue, Version(at), Direction::Forward)
            .unwrap();
        let front = cursor.next().unwrap().map(|entry| entry.key.to_vec());
        drop(cursor);
        assert_eq!(front, Some(order(number)));
        most = most.max(stat(&engine, "storage_deletes_passed_total") - before);
        next(order(number), None);
        if number == ORDERS / 2 {
            engine.flush().unwrap();
        }
    }
    println!("a scan stepped over {most} deletes at most");
    assert!(most > 0.0, "there are deletes to step over");
    // Without what earlier scans have noted it is as many as were deleted: 999.
    assert!(most <= 64.0, "a scan stepped over {most} deletes");
    // An order that comes in front of all others ends what was noted.
    let at = next(order(7), Some(b"x"));
    let all = KeyRange::prefix(b"queue");
    let mut cursor = engine.scan(&all, Version(at), Direction::Forward).unwrap();
    assert_eq!(cursor.next().unwrap().unwrap().key, order(7));
    assert_eq!(cursor.next().unwrap().unwrap().key, order(ORDERS));
}
