//! What a transaction costs above its engine, which here is memory: nanoseconds per operation,
//! the median of several rounds. `cargo bench -p manxdb-txn`.
#![allow(clippy::disallowed_methods)] // A benchmark looks at the clock.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use manxdb_storage::{Direction, Durability, Engine, KeyRange, MemoryEngine, Version, WriteBatch};
use manxdb_txn::IsolationLevel::{self, ReadCommitted, RepeatableRead, Serializable};
use manxdb_txn::testing::BlockingWaiter;
use manxdb_txn::{CommitPath, LocalOptions, LocalPath, ReadMode, Transaction, TxnId, Waiter};

const ROWS: u64 = 100_000;
const ROUNDS: usize = 7;

static NEXT: AtomicU64 = AtomicU64::new(1);

struct Bench {
    engine: Arc<MemoryEngine>,
    path: Arc<LocalPath>,
    waiter: Arc<dyn Waiter>,
}

fn key(number: u64) -> Vec<u8> {
    let mut key = b"table/".to_vec();
    key.extend_from_slice(&(number % ROWS).to_be_bytes());
    key
}

/// Spreads consecutive numbers over all rows.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}

impl Bench {
    fn new() -> Self {
        let engine = Arc::new(MemoryEngine::new());
        let mut batch = WriteBatch::default();
        for number in 0..ROWS {
            let row = (Version(1), key(number), Some(vec![7; 100]));
            batch.writes.push(row);
        }
        engine.write(&batch, Durability::Sync).unwrap();
        let path = LocalPath::open(engine.clone(), LocalOptions::default()).unwrap();
        Self {
            engine,
            path: Arc::new(path),
            waiter: Arc::new(BlockingWaiter::default()),
        }
    }

    fn begin(&self, isolation: IsolationLevel) -> Transaction {
        let id = TxnId(NEXT.fetch_add(1, Ordering::Relaxed));
        Transaction::begin(self.path.clone(), id, isolation, self.waiter.clone())
    }

    fn read_one(&self, isolation: IsolationLevel, read_only: bool, number: u64) {
        let txn = self.begin(isolation);
        if read_only {
            txn.declare_read_only();
        }
        txn.start_statement().unwrap();
        black_box(txn.get(&key(number), ReadMode::Plain).unwrap());
        txn.commit(Durability::Sync).unwrap();
    }

    fn update_one(&self, isolation: IsolationLevel, number: u64) {
        let txn = self.begin(isolation);
        txn.start_statement().unwrap();
        let value = txn.get(&key(number), ReadMode::Update).unwrap().unwrap();
        txn.put(key(number), value).unwrap();
        txn.commit(Durability::Sync).unwrap();
    }
}

/// Runs `work` with counting numbers; prints the median time of one run.
fn measure(name: &str, times: u64, work: impl Fn(u64)) {
    let mut nanos: Vec<u128> = (0..ROUNDS)
        .map(|round| {
            let started = Instant::now();
            for number in 0..times {
                work(spread(number + round as u64 * times));
            }
            started.elapsed().as_nanos() / u128::from(times)
        })
        .collect();
    nanos.sort_unstable();
    println!("{name:<58} {:>7} ns", nanos[ROUNDS / 2]);
}

/// The same from several threads at once: time of one run over all threads.
fn measure_threads(name: &str, threads: u64, times: u64, work: impl Fn(u64) + Sync) {
    let work = &work;
    measure(&format!("{name}, {threads} threads"), 1, |round| {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                scope.spawn(move || {
                    for number in 0..times {
                        work(spread(round + thread * times + number));
                    }
                });
            }
        });
    });
    println!("{:<58} (divide by {})", "", threads * times);
}

fn main() {
    let bench = Bench::new();
    let everything = Version::MAX;
    measure("engine alone: get", 200_000, |number| {
        black_box(bench.engine.get(&key(number), everything).unwrap());
    });
    measure("path: snapshot", 1_000_000, |_| {
        black_box(bench.path.snapshot());
    });
    measure("path: get at a version", 200_000, |number| {
        black_box(bench.path.get(everything, &key(number)));
    });
    measure("begin, get, commit: READ COMMITTED", 200_000, |number| {
        bench.read_one(ReadCommitted, false, number);
    });
    measure("begin, get, commit: SERIALIZABLE", 200_000, |number| {
        bench.read_one(Serializable, false, number);
    });
    measure("begin, get, commit: SERIALIZABLE read-only", 200_000, |n| {
        bench.read_one(Serializable, true, n);
    });
    measure("scan of 100 rows: SERIALIZABLE", 2_000, |number| {
        let txn = bench.begin(Serializable);
        let mut range = KeyRange::prefix(b"table/");
        range.start = std::ops::Bound::Included(key(number));
        black_box(
            txn.scan(&range, Direction::Forward, 100, ReadMode::Plain)
                .unwrap(),
        );
    });
    let version = AtomicU64::new(1_000_000_000);
    let other = MemoryEngine::new();
    measure("engine alone: write of one row", 50_000, |number| {
        let version = Version(version.fetch_add(1, Ordering::Relaxed));
        let mut batch = WriteBatch::default();
        batch
            .writes
            .push((version, key(number), Some(vec![7; 100])));
        other.write(&batch, Durability::Sync).unwrap();
    });
    for isolation in [ReadCommitted, RepeatableRead, Serializable] {
        let name = format!("begin, lock, read, write, commit: {isolation:?}");
        measure(&name, 50_000, |n| bench.update_one(isolation, n));
    }
    measure_threads("update: SERIALIZABLE", 4, 20_000, |number| {
        bench.update_one(Serializable, number);
    });
    measure_threads("one hot row: SERIALIZABLE", 4, 5_000, |_| {
        bench.update_one(Serializable, 1);
    });
    measure_threads("read: READ COMMITTED", 4, 50_000, |number| {
        bench.read_one(ReadCommitted, false, number);
    });
}
