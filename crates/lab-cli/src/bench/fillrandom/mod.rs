//! `manxdb bench fillrandom`: db_bench's load on RocksDB, with or without a pool that compacts.
//!
//! Not on a server: the database is in this process, so that what a pool takes off it shows in
//! nothing but its own CPU, stalls and latencies.

mod database;
mod load;
mod report;
mod verify;

use std::process::ExitCode;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use manxdb_compaction::database::service::RemotePool;
use manxdb_core::Nanos;
use rocksdb::{DB, WriteOptions};

use self::database::{Database, MemoryStats, failed};
use self::load::{Load, key_bytes};
use self::verify::Contents;
use super::histogram::Histogram;
use super::measure::cpu_of;
use crate::cli::FillRandomRun;
use crate::fault::Fault;
use manxdb::config::{self, RemoteCompaction};
use manxdb::process::start_log_of_environment;
use manxdb::serve::compaction;

/// What a run was like.
struct Outcome {
    load: Load,
    /// From the first put to the last, of all threads.
    elapsed: Duration,
    /// Nanoseconds of every put.
    puts: Histogram,
    /// From the last put until nothing was left to compact.
    drain: Duration,
    /// CPU of this process in the load and in the drain; none where the system does not say.
    cpu: Option<(Duration, Duration)>,
    counted: MemoryStats,
    /// Stalls of the load alone.
    stalled: Duration,
    pool: Option<Vec<(String, u64)>>,
    contents: Contents,
}

/// Runs the load, drains, and compares what is there with what was put.
///
/// # Errors
/// Settings that do not fit, RocksDB's errors, and contents that are not as they should be.
pub fn run(args: &FillRandomRun) -> Result<ExitCode, Fault> {
    start_log_of_environment("warn")?;
    let load = Load {
        threads: args.threads,
        puts: args.puts,
        value_bytes: usize::try_from(args.value_bytes).unwrap_or(usize::MAX),
        seed: args.seed,
    };
    let settings = config::compaction(&args.compaction)?;
    let pool = settings.as_ref().map(|settings| pool(args, settings));
    let files = settings.as_ref().map(|settings| settings.level0_files);
    let database = Database::create(args, pool.transpose()?.as_ref(), files)?;
    let outcome = measure(&database, load, args.no_wal)?;
    let text = if args.json {
        report::json(&outcome)
    } else {
        report::text(&outcome)
    };
    println!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// The pool that the flags name.
fn pool(args: &FillRandomRun, settings: &RemoteCompaction) -> Result<RemotePool, Fault> {
    let mut pool = compaction::pool(settings, &args.data)?;
    if args.patient {
        pool.client.hedge = Nanos::ZERO;
        pool.client.deadline = Nanos(u64::MAX / 4);
    }
    Ok(pool)
}

fn measure(database: &Database, load: Load, no_wal: bool) -> Result<Outcome, Fault> {
    let cpu = || cpu_of(Some(std::process::id()));
    let before = cpu();
    let began = Instant::now();
    let puts = fill(&database.db, load, no_wal)?;
    let elapsed = began.elapsed();
    let (loaded, stalls) = (cpu(), database.counted().stall_micros);
    let drain = Instant::now();
    database.drain()?;
    let drain = drain.elapsed();
    let drained = cpu();
    let spent = |from: Option<Duration>, to: Option<Duration>| to?.checked_sub(from?);
    Ok(Outcome {
        load,
        elapsed,
        puts,
        drain,
        cpu: spent(before, loaded).zip(spent(loaded, drained)),
        counted: database.counted(),
        stalled: Duration::from_micros(stalls),
        pool: database.pool(),
        contents: verify::compare(&database.db, load)?,
    })
}

/// Puts everything; the nanoseconds of every put.
fn fill(db: &DB, load: Load, no_wal: bool) -> Result<Histogram, Fault> {
    let start = Barrier::new(usize::try_from(load.threads).unwrap_or(1));
    let seen = std::thread::scope(|scope| {
        let threads = (0..load.threads).map(|thread| {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                put_all(db, load, thread, no_wal)
            })
        });
        let threads: Vec<_> = threads.collect();
        let seen = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        seen.collect::<Vec<_>>()
    });
    let mut all = Histogram::default();
    for one in seen {
        let one = one.map_err(|_| Fault::Other("a thread of the load panicked".to_owned()))?;
        all.merge(&one.map_err(|error| failed(db.path(), &error))?);
    }
    Ok(all)
}

fn put_all(db: &DB, load: Load, thread: u32, no_wal: bool) -> Result<Histogram, rocksdb::Error> {
    let mut options = WriteOptions::default();
    options.disable_wal(no_wal);
    let (mut seen, mut value) = (Histogram::default(), Vec::new());
    for (put, key) in (0..).zip(load.keys(thread)) {
        load.value(thread, put, &mut value);
        let began = Instant::now();
        db.put_opt(key_bytes(key), &value, &options)?;
        seen.add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(seen)
}
