//! Rows that come and go in memory that has room for few, and long readers beside writers.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{ready, submit};
use manxdb_core::Nanos;
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_rack::memory::{Geometry, Memory, SharedTransport, Source, Superblock};
use manxdb_rack::path::RsiPath;
use manxdb_storage::{Direction, Durability, KeyRange, Version};
use manxdb_txn::{CommitPath, ReadSet, TxnError};
use tempfile::TempDir;

/// Room for some 12,000 rows.
const GEOMETRY: Geometry = Geometry {
    servers: 2,
    replicas: 1,
    bytes: 6 << 20,
    places: 6,
    log_copies: 2,
    log_bytes: 64 << 10,
    log_slots: 1,
    versions: 3,
    value: 64,
    node: 1_000,
    lease: Nanos::from_secs(60),
};

type Path = RsiPath<SharedMemory>;
type Rows = Vec<(Vec<u8>, Vec<u8>)>;

fn rack() -> (TempDir, Vec<MemoryServer>) {
    let directory = tempfile::tempdir().unwrap();
    let start = |server| {
        let superblock = Superblock {
            name: "test".into(),
            server,
            directory: 0,
            geometry: GEOMETRY,
        };
        let socket = SharedTransport::socket(directory.path(), server);
        let first = [(0, superblock.encode())];
        MemoryServer::start_filled(&socket, ServerId(server), GEOMETRY.bytes, &first).unwrap()
    };
    let servers = (0..GEOMETRY.servers).map(start).collect();
    (directory, servers)
}

fn path(directory: &TempDir, seed: u64) -> Path {
    let memory = Memory::open(SharedTransport::new(directory.path()), seed).unwrap();
    let source: Arc<dyn Source<SharedMemory>> = Arc::new(memory);
    RsiPath::open(source, 2, GEOMETRY.value).unwrap()
}

fn key(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

fn write(path: &Path, writes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<Version, TxnError> {
    submit(path, ReadSet::default(), writes, Durability::Async)
}

fn scan(path: &Path, at: Version) -> Result<Rows, TxnError> {
    ready(path.scan(at, &KeyRange::all(), Direction::Forward, usize::MAX))
}

/// A hundred new rows, and the hundred before them go.
fn turn(path: &Path, number: u32) -> Result<(), TxnError> {
    let new = (number * 100..number * 100 + 100).map(|number| (key(number), Some(vec![7; 40])));
    write(path, &new.collect::<Vec<_>>())?;
    if let Some(before) = number.checked_sub(1) {
        let gone = (before * 100..before * 100 + 100).map(|number| (key(number), None));
        write(path, &gone.collect::<Vec<_>>())?;
    }
    Ok(())
}

/// All processes keep their places and collect.
fn collect_garbage(paths: &[&Path]) -> usize {
    let mut gone = 0;
    for _ in 0..3 {
        for path in paths {
            path.keep();
        }
        gone += paths
            .iter()
            .map(|path| path.collect_garbage().unwrap())
            .sum::<usize>();
    }
    gone
}

#[test]
fn rows_come_and_go_for_ever_in_little_memory() {
    let (directory, _servers) = rack();
    let (one, two) = (path(&directory, 1), path(&directory, 2));
    let untidy = (0..1_000).find(|number| turn(&one, *number).is_err());
    let untidy = untidy.unwrap();
    drop(directory);

    let (directory, _servers) = rack();
    let (one, two_too) = (path(&directory, 1), path(&directory, 2));
    drop(two);
    let mut gone = 0;
    for number in 0..3 * untidy {
        let path = if number % 2 == 0 { &one } else { &two_too };
        turn(path, number).unwrap_or_else(|error| panic!("turn {number}, {gone} gone: {error}"));
        gone += collect_garbage(&[&one, &two_too]);
    }
    assert!(gone > 100, "{gone}");
    let snapshot = ready(two_too.snapshot()).unwrap();
    let left = scan(&two_too, snapshot.version).unwrap();
    let last = 3 * untidy - 1;
    let expected: Vec<Vec<u8>> = (last * 100..last * 100 + 100).map(key).collect();
    assert_eq!(
        left.into_iter().map(|(key, _)| key).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn nothing_goes_that_a_snapshot_of_any_process_sees() {
    let (directory, _servers) = rack();
    let (one, two) = (path(&directory, 1), path(&directory, 2));
    turn(&one, 0).unwrap();
    let snapshot = ready(two.snapshot()).unwrap();
    let before = scan(&two, snapshot.version).unwrap();
    assert_eq!(before.len(), 100);
    for number in 1..10 {
        turn(&one, number).unwrap();
        assert_eq!(collect_garbage(&[&one, &two]), 0, "turn {number}");
    }
    assert_eq!(scan(&two, snapshot.version).unwrap(), before);
    drop(snapshot);
    assert!(collect_garbage(&[&one, &two]) > 100);
    // A process that neither keeps its places nor has left them is waited for.
    let three = path(&directory, 3);
    turn(&one, 10).unwrap();
    collect_garbage(&[&one, &two]);
    turn(&one, 11).unwrap();
    assert_eq!(collect_garbage(&[&one, &two]), 0);
    assert!(collect_garbage(&[&one, &two, &three]) > 0);
}

#[test]
fn what_is_gone_waits_for_no_snapshot_that_is_old_enough() {
    let (directory, _servers) = rack();
    let (one, two) = (path(&directory, 1), path(&directory, 2));
    let two = two.with_snapshot_age(Duration::ZERO);
    turn(&one, 0).unwrap();
    let snapshot = ready(two.snapshot()).unwrap();
    assert_eq!(scan(&two, snapshot.version).unwrap().len(), 100);
    turn(&one, 1).unwrap();
    assert!(collect_garbage(&[&one, &two]) > 0);
    let end = scan(&two, snapshot.version);
    assert!(matches!(end, Err(TxnError::Conflict { .. })), "{end:?}");
}

#[test]
fn a_long_reader_beside_a_busy_writer_reads_what_was_there() {
    let (directory, _servers) = rack();
    let (one, two) = (path(&directory, 1), path(&directory, 2));
    let row = |value: u8| [(key(1), Some(vec![value; 40]))];
    write(&one, &row(0)).unwrap();
    let snapshot = ready(two.snapshot()).unwrap();
    let read = || ready(two.get(snapshot.version, &key(1)));
    for value in 1..100 {
        let path = if value % 3 == 0 { &one } else { &two };
        write(path, &row(value)).unwrap();
        assert_eq!(read().unwrap(), Some(vec![0; 40]), "after {value} writes");
    }
    // At some time it is too old, and hears so.
    let end = (0_u32..5_000).find_map(|number| {
        write(&one, &row(number.to_le_bytes()[0])).unwrap();
        read().err()
    });
    assert!(matches!(end, Some(TxnError::Conflict { .. })), "{end:?}");
}
