//! Measures reads of the durable engine: `cargo run --release -p manxdb-storage --example reads`.
//!
//! Arguments: number of rows (1,000,000), reads for each line (1,000,000).
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a measurement takes the time, prints it, and stops at the first error"
)]

use std::ops::Bound;
use std::time::Instant;

use manxdb_storage::{
    Direction, Durability, Engine, KeyRange, Options, RocksEngine, Version, WriteBatch,
};

const VALUE: [u8; 100] = [0x5A; 100];

/// A small generator, so that every run reads the same keys.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// A key as a table with an integer primary key has it.
fn key(row: u64) -> [u8; 13] {
    let mut key = [0x10, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0];
    key[5..].copy_from_slice(&(row | 1 << 63).to_be_bytes());
    key
}

/// Processor time of this thread in nanoseconds, as Linux counts it.
fn processor_nanoseconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(f64::NAN)
}

/// Prints the time and the processor time of one turn, in microseconds.
fn measure(what: &str, count: u64, mut each: impl FnMut(u64)) {
    let start = Instant::now();
    let processor = processor_nanoseconds();
    for turn in 0..count {
        each(turn);
    }
    let processor = (processor_nanoseconds() - processor) / 1e3 / count as f64;
    let wall = start.elapsed().as_secs_f64() * 1e6 / count as f64;
    println!("{what:<44} {wall:>9.3} µs  CPU {processor:>8.3} µs");
}

fn fill(engine: &RocksEngine, rows: u64) {
    let mut version = 0;
    let mut row = 0;
    while row < rows {
        let end = rows.min(row + 1000);
        version += 1;
        let writes = (row..end)
            .map(|row| (Version(version), key(row).to_vec(), Some(VALUE.to_vec())))
            .collect();
        engine
            .write(&WriteBatch { writes }, Durability::Async)
            .unwrap();
        row = end;
    }
}

fn scan(engine: &RocksEngine, from: u64, length: usize, direction: Direction) {
    let range = match direction {
        Direction::Forward => KeyRange {
            start: Bound::Included(key(from).to_vec()),
            end: Bound::Unbounded,
        },
        Direction::Reverse => KeyRange {
            start: Bound::Unbounded,
            end: Bound::Included(key(from).to_vec()),
        },
    };
    let mut cursor = engine.scan(&range, Version::MAX, direction).unwrap();
    for _ in 0..length {
        if cursor.next().unwrap().is_none() {
            break;
        }
    }
}

fn reads(engine: &RocksEngine, rows: u64, count: u64) {
    let mut random = Random(1);
    measure("get, present", count, |_| {
        let row = random.below(rows);
        assert!(engine.get(&key(row), Version::MAX).unwrap().is_some());
    });
    measure("get, absent", count, |_| {
        let row = rows + random.below(rows);
        assert!(engine.get(&key(row), Version::MAX).unwrap().is_none());
    });
    for length in [1, 10, 100] {
        for direction in [Direction::Forward, Direction::Reverse] {
            measure(
                &format!("scan of {length}, {direction:?}"),
                count / 20,
                |_| scan(engine, random.below(rows), length, direction),
            );
        }
    }
}

fn hot_row(engine: &RocksEngine, count: u64) {
    let base = engine.latest().unwrap().0;
    let hot = key(u64::MAX >> 2);
    for version in base + 1..=base + 100_000 {
        let writes = vec![(Version(version), hot.to_vec(), Some(VALUE.to_vec()))];
        engine
            .write(&WriteBatch { writes }, Durability::Async)
            .unwrap();
    }
    measure("get of a row with 100,000 versions, newest", count, |_| {
        assert!(engine.get(&hot, Version::MAX).unwrap().is_some());
    });
    let mut random = Random(2);
    measure("get of a row with 100,000 versions, any", count, |_| {
        let at = Version(base + 1 + random.below(100_000));
        assert_eq!(engine.get(&hot, at).unwrap().unwrap().version, at);
    });
    measure("scan of 1 behind 100,000 versions", count / 20, |_| {
        scan(engine, u64::MAX >> 2, 2, Direction::Forward);
        scan(engine, u64::MAX >> 2, 2, Direction::Reverse);
    });
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().unwrap());
    let rows = arguments.next().unwrap_or(1_000_000);
    let count = arguments.next().unwrap_or(1_000_000);
    let directory = tempfile::tempdir().unwrap();
    let engine = RocksEngine::open(directory.path(), &Options::default()).unwrap();
    let start = Instant::now();
    fill(&engine, rows);
    println!(
        "filled {rows} rows in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    println!("-- as written (memtable over files)");
    reads(&engine, rows, count);
    engine.compact().unwrap();
    println!("-- compacted");
    reads(&engine, rows, count);
    println!("-- one write between two gets");
    let mut random = Random(3);
    let base = engine.latest().unwrap().0 + 1;
    measure("write (async) and get", count / 10, |turn| {
        let row = random.below(rows);
        let writes = vec![(
            Version(base + turn),
            key(row).to_vec(),
            Some(VALUE.to_vec()),
        )];
        engine
            .write(&WriteBatch { writes }, Durability::Async)
            .unwrap();
        assert!(engine.get(&key(row), Version::MAX).unwrap().is_some());
    });
    measure("write (sync) of one row", 200, |turn| {
        let version = Version(base + count + turn);
        let writes = vec![(version, key(turn).to_vec(), Some(VALUE.to_vec()))];
        engine
            .write(&WriteBatch { writes }, Durability::Sync)
            .unwrap();
    });
    hot_row(&engine, count / 4);
    engine.compact().unwrap();
    println!("-- all compacted, versions kept");
    hot_row(&engine, count / 4);
    for (name, value) in engine.stats() {
        println!("{name} {value}");
    }
}
