//! Memory servers that run for long: who forms them, who gets room, and what is refused. Deaths are
//! in `tests/memory`, where clients are processes of their own.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;
use std::thread;

use crate::common::{ready, submit};
use manxdb_core::Nanos;
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::MemoryServer;
use manxdb_rack::memory::{Geometry, Memory, MemoryError, SharedTransport, Source, Superblock};
use manxdb_rack::path::RsiPath;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::{CommitPath, ReadSet, TxnError};
use tempfile::TempDir;

const GEOMETRY: Geometry = Geometry {
    servers: 2,
    replicas: 1,
    bytes: 8 << 20,
    places: 6,
    log_copies: 2,
    log_bytes: 64 << 10,
    log_slots: 1,
    versions: 4,
    value: 64,
    node: 1_000,
    lease: Nanos::from_secs(30),
};

fn start(directory: &Path, server: u16, geometry: Geometry) -> MemoryServer {
    let superblock = Superblock {
        name: "test".into(),
        server,
        directory: 0,
        geometry,
    };
    let socket = SharedTransport::socket(directory, server);
    let first = [(0, superblock.encode())];
    MemoryServer::start_filled(&socket, ServerId(server), geometry.bytes, &first).unwrap()
}

fn rack() -> (TempDir, Vec<MemoryServer>) {
    let directory = tempfile::tempdir().unwrap();
    let servers = (0..GEOMETRY.servers).map(|server| start(directory.path(), server, GEOMETRY));
    let servers = servers.collect();
    (directory, servers)
}

fn open(directory: &TempDir, seed: u64) -> Result<Memory<SharedTransport>, MemoryError> {
    Memory::open(SharedTransport::new(directory.path()), seed)
}

fn said<T>(result: Result<T, MemoryError>) -> String {
    match result {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn all_who_open_at_once_are_of_one_formation() {
    let (directory, _servers) = rack();
    thread::scope(|scope| {
        for seed in 0..8 {
            let directory = &directory;
            scope.spawn(move || open(directory, seed).unwrap());
        }
    });
    assert_eq!(open(&directory, 9).unwrap().name(), "test");
}

#[test]
fn a_server_that_is_empty_again_is_not_believed() {
    for lost in 0..GEOMETRY.servers {
        let (directory, mut servers) = rack();
        let memory = open(&directory, 1).unwrap();
        drop(servers.remove(lost.into()));
        assert!(said(open(&directory, 2)).contains("No such file"));
        let _again = start(directory.path(), lost, GEOMETRY);
        let words = format!("memory server {lost} was started anew");
        assert!(said(open(&directory, 3)).contains(&words));
        assert!(said(memory.join().map(drop)).contains(&words));
    }
}

#[test]
fn servers_that_do_not_belong_together_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let _first = start(directory.path(), 0, GEOMETRY);
    let other = Geometry {
        places: 7,
        ..GEOMETRY
    };
    let second = start(directory.path(), 1, other);
    let words = "places is 7 at memory server 1 and 6 at memory server 0";
    assert!(said(open(&directory, 1)).contains(words));
    drop(second);
    let socket = SharedTransport::socket(directory.path(), 1);
    let wrong = MemoryServer::start(&socket, ServerId(5), GEOMETRY.bytes).unwrap();
    assert!(said(open(&directory, 2)).contains("but memory server 5 answers there"));
    drop(wrong);
    let _stranger = MemoryServer::start(&socket, ServerId(1), GEOMETRY.bytes).unwrap();
    assert!(said(open(&directory, 3)).contains("memory server 1: its memory does not begin"));
}

#[test]
fn places_are_given_until_all_are_taken() {
    let (directory, _servers) = rack();
    let memory = open(&directory, 1).unwrap();
    let members: Vec<_> = (0..GEOMETRY.places)
        .map(|_| memory.join().unwrap())
        .collect();
    let error = said(memory.join().map(drop));
    assert!(
        error.contains("all 6 places are taken") && error.contains("--places"),
        "{error}"
    );
    let mut owners: Vec<_> = members.iter().map(|member| member.owner).collect();
    owners.sort_unstable();
    owners.dedup();
    assert_eq!(owners.len(), 6);
}

fn path(directory: &TempDir, seed: u64) -> RsiPath<manxdb_fabric::shm::SharedMemory> {
    let memory = Arc::new(open(directory, seed).unwrap());
    RsiPath::open(memory as Arc<dyn Source<_>>, 2, GEOMETRY.value).unwrap()
}

fn write(
    path: &RsiPath<manxdb_fabric::shm::SharedMemory>,
    keys: std::ops::Range<u32>,
) -> Result<(), TxnError> {
    let row = |key: u32| (key.to_be_bytes().to_vec(), Some(vec![7; 60]));
    let rows: Vec<_> = keys.map(row).collect();
    submit(path, ReadSet::default(), &rows, Durability::Async).map(drop)
}

#[test]
fn rows_get_room_until_all_memory_is_given_away() {
    let (directory, _servers) = rack();
    let one = path(&directory, 1);
    let two = path(&directory, 2);
    let mut written = 0;
    let error = loop {
        let path = if written % 200 == 0 { &one } else { &two };
        match write(path, written..written + 100) {
            Ok(()) => written += 100,
            Err(error) => break error,
        }
    };
    assert!(
        error
            .to_string()
            .contains("the memory of all 2 memory servers is given away"),
        "{error}"
    );
    assert!(written > 2_000, "{written}");
    let snapshot = ready(two.snapshot()).unwrap();
    let all = ready(two.scan(
        snapshot.version,
        &KeyRange::all(),
        Direction::Forward,
        usize::MAX,
    ));
    let keys: Vec<u32> = all
        .unwrap()
        .iter()
        .map(|(key, _)| u32::from_be_bytes(*key.first_chunk().unwrap()))
        .collect();
    assert_eq!(keys, (0..written).collect::<Vec<_>>());
}

#[test]
fn processes_know_who_else_is_there() {
    let (directory, _servers) = rack();
    let one = path(&directory, 1);
    let others = one.others().unwrap();
    assert!(others.is_alone().unwrap());
    let two = path(&directory, 2);
    assert!(!others.is_alone().unwrap());
    let second = two.others().unwrap().me().unwrap();
    assert!(others.may_live(second).unwrap() && others.may_live(others.me().unwrap()).unwrap());
    assert!(!others.may_live(second + 1).unwrap());
    two.leave();
    // Nobody here reaps who has left.
    assert!(others.may_live(second).unwrap());
}
