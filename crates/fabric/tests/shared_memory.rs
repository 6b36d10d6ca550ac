//! Memory shared between processes: what every carrier is tested for, and what happens when one
//! of the processes dies, hangs, or is none of ours.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)] // processes, and tests

mod common;

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;

use common::{OTHER, Process, SERVER, add, at, listen, role, run, say, until};
use manxdb_fabric::conformance::{self, Bench, CHECKS, REGISTERED};
use manxdb_fabric::shm::{ConnectError, MemoryServer, SharedMemory};
use manxdb_fabric::{
    Address, BatchId, Completion, Fabric, Fault, Grants, Misuse, Operation, OperationOutcome,
    ServerId, WORD_LENGTH,
};
use tempfile::TempDir;

fn socket(directory: &TempDir) -> PathBuf {
    directory.path().join("memory")
}

fn server(path: &Path) -> MemoryServer {
    MemoryServer::start(path, SERVER, REGISTERED).unwrap()
}

fn client(path: &Path, number: u64) -> SharedMemory {
    let mut memory = SharedMemory::default();
    assert_eq!(memory.connect(path, number).unwrap(), SERVER);
    memory
}

#[test]
#[ignore = "started by the other tests, with a role"]
fn what_another_process_does() {
    let Some((role, path)) = role() else { return };
    let path = Path::new(&path);
    match role.as_str() {
        "server" => {
            let _server = server(path);
            say("ready");
            listen();
        }
        // Adds to a word until it is killed.
        "client" => {
            let mut memory = client(path, OTHER);
            add(&mut memory);
            say("ready");
            loop {
                add(&mut memory);
            }
        }
        other => panic!("no role is called {other}"),
    }
}

#[test]
fn shared_memory_does_what_every_carrier_does() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let server = server(&path);
    conformance::run(
        &|number| {
            until(|| !server.clients().contains(&number));
            Box::new(client(&path, number))
        },
        SERVER,
    );
}

/// A carrier that has forgotten that the word of an ordered write comes last.
struct Disordered(SharedMemory);

impl Fabric for Disordered {
    fn grants(&self) -> Grants {
        self.0.grants()
    }

    fn registered(&self, server: ServerId) -> Option<u64> {
        self.0.registered(server)
    }

    fn post(&mut self, batch: BatchId, operations: Vec<Operation>) -> Result<(), Misuse> {
        let [
            Operation::WriteThenSet {
                at,
                bytes,
                word_at,
                word,
            },
        ] = operations.as_slice()
        else {
            return self.0.post(batch, operations);
        };
        let word = Operation::Write {
            at: Address {
                offset: *word_at,
                ..*at
            },
            bytes: word.to_le_bytes().to_vec(),
        };
        let bytes = Operation::Write {
            at: *at,
            bytes: bytes.clone(),
        };
        for operation in [word, bytes] {
            self.0.post(batch, vec![operation])?;
        }
        self.0.poll();
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.0.poll()
    }
}

#[test]
fn a_carrier_without_order_is_found_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let server = server(&path);
    let make = |number| -> Box<dyn Fabric + Send> {
        until(|| !server.clients().contains(&number));
        Box::new(Disordered(client(&path, number)))
    };
    let (_, check) = CHECKS[6];
    // Two threads must meet for it: as often as it takes.
    until(|| {
        let bench = Bench::new(&make, SERVER);
        catch_unwind(AssertUnwindSafe(|| check(&bench))).is_err()
    });
}

#[test]
fn it_grants_what_transactions_need() {
    let granted = SharedMemory::default().grants();
    assert!(granted.include(Grants::TRANSACTIONS).is_ok());
}

#[test]
fn a_large_read_that_meets_a_write_is_torn() {
    // Not a promise, but what everything above must be ready for: a test of torn reads that this
    // carrier cannot provoke would be blind.
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let _server = server(&path);
    let bytes = 16 << 10;
    let is_seen = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut memory = client(&path, 1);
            let mut byte = 0_u8;
            while !is_seen.load(std::sync::atomic::Ordering::Relaxed) {
                byte = byte.wrapping_add(1);
                let bytes = vec![byte; bytes];
                run(&mut memory, Operation::Write { at: at(0), bytes });
            }
        });
        let mut memory = client(&path, 2);
        until_torn(&mut memory, bytes as u64);
        is_seen.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

fn until_torn(memory: &mut SharedMemory, bytes: u64) {
    loop {
        let OperationOutcome::Read(found) = run(memory, Operation::Read { at: at(0), bytes })
        else {
            panic!("a read ended as something else");
        };
        if found.iter().any(|byte| *byte != found[0]) {
            return;
        }
    }
}

#[test]
fn the_end_of_a_server_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let other = Process::start("server", &path);
    let mut memory = client(&path, 1);
    assert_eq!(add(&mut memory), OperationOutcome::Word(0));
    drop(other);
    while add(&mut memory) != OperationOutcome::Failed(Fault::Gone(SERVER)) {
        thread::yield_now();
    }
}

#[test]
fn a_client_that_is_shut_out_writes_nothing_more() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let server = server(&path);
    let _other = Process::start("client", &path);
    assert_eq!(server.clients(), [OTHER]);
    server.fence(OTHER).unwrap();
    let word = server.read(0, WORD_LENGTH);
    assert_ne!(word, [0; 8]);
    for _ in 0..1_000 {
        thread::yield_now();
        assert_eq!(server.read(0, WORD_LENGTH), word);
    }
    server.fence(OTHER).unwrap(); // it is gone: nothing to do
    assert!(server.clients().is_empty());
}

#[test]
fn who_is_shut_out_before_it_comes_is_not_let_in() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let server = server(&path);
    server.fence(1).unwrap();
    let late = SharedMemory::default().connect(&path, 1);
    assert!(matches!(late, Err(ConnectError::Failed(..))), "{late:?}");
    assert!(server.clients().is_empty());
    drop(client(&path, 2));
}

#[test]
fn a_client_that_hangs_does_not_come_back_to_write() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let server = server(&path);
    let other = Process::start("client", &path);
    other.signal(rustix::process::Signal::STOP);
    server.fence(OTHER).unwrap();
    let word = server.read(0, WORD_LENGTH);
    other.signal(rustix::process::Signal::CONT); // it is dead, but not buried
    for _ in 0..1_000 {
        thread::yield_now();
        assert_eq!(server.read(0, WORD_LENGTH), word);
    }
}

#[test]
fn a_client_that_ends_is_forgotten_and_its_number_is_free_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let server = server(&path);
    let first = client(&path, 1);
    assert_eq!(server.clients(), [1]);
    let twice = SharedMemory::default().connect(&path, 1);
    assert!(matches!(twice, Err(ConnectError::Failed(..))), "{twice:?}");
    drop(first);
    until(|| server.clients().is_empty());
    drop(client(&path, 1));
    until(|| server.clients().is_empty());
    drop(Process::start("client", &path));
    until(|| server.clients().is_empty());
}

#[test]
fn who_is_shut_out_lets_go_and_lives_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let server = server(&path);
    let mut memory = client(&path, 1);
    assert_eq!(add(&mut memory), OperationOutcome::Word(0));
    server.fence(1).unwrap();
    assert_eq!(
        add(&mut memory),
        OperationOutcome::Failed(Fault::Fenced(SERVER))
    );
    assert_eq!(server.read(0, WORD_LENGTH), 1_u64.to_le_bytes());
    assert!(SharedMemory::default().connect(&path, 1).is_err());
    let mut again = client(&path, 2);
    assert_eq!(add(&mut again), OperationOutcome::Word(1));
    server.fence(3).unwrap(); // nobody
}

#[test]
fn nobody_who_is_shut_out_at_work_writes_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let server = server(&path);
    for number in 0..200 {
        let mut memory = client(&path, number);
        let worker = thread::spawn(move || {
            let mut count = 0_u64;
            while let OperationOutcome::Word(_) = add(&mut memory) {
                count += 1;
            }
            count
        });
        while server.read(0, WORD_LENGTH) == [0; 8] {
            thread::yield_now();
        }
        server.fence(number).unwrap();
        let word = server.read(0, WORD_LENGTH);
        assert!(worker.join().unwrap() > 0 || number > 0);
        assert_eq!(server.read(0, WORD_LENGTH), word, "client {number}");
    }
}

#[test]
fn strangers_get_no_memory_and_cost_no_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let server = server(&path);
    for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"MANXMEM\x02????????", b""] {
        let mut stranger = UnixStream::connect(&path).unwrap();
        stranger.write_all(words).unwrap();
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer); // a reset is an end, too
        assert_eq!(answer, b"", "{words:?}");
    }
    assert!(server.clients().is_empty());
    let mut memory = client(&path, 1);
    assert_eq!(add(&mut memory), OperationOutcome::Word(0));
}

#[test]
fn a_server_that_is_none_is_no_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let failed = |path: &Path| {
        SharedMemory::default()
            .connect(path, 1)
            .unwrap_err()
            .to_string()
    };
    assert!(failed(&path).contains("memory"), "{}", failed(&path));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 16]);
            stream.write_all(b"HTTP/1.1 400\r\n\r\n").unwrap();
        });
        assert!(
            failed(&path).contains("of this release"),
            "{}",
            failed(&path)
        );
    });
}

#[test]
fn a_server_that_stands_still_is_silent_and_not_gone() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    let other = Process::start("server", &path);
    let mut before = client(&path, 1);
    other.signal(rustix::process::Signal::STOP);
    let late = SharedMemory::default().connect(&path, 2);
    assert!(matches!(late, Err(ConnectError::Silent(_))), "{late:?}");
    assert_eq!(
        add(&mut before),
        OperationOutcome::Word(0),
        "its memory is there"
    );
    other.signal(rustix::process::Signal::CONT);
    let mut late = client(&path, 3);
    assert_eq!(add(&mut late), OperationOutcome::Word(1));
    drop(other);
    let late = SharedMemory::default().connect(&path, 4);
    assert!(matches!(late, Err(ConnectError::Gone(..))), "{late:?}");
}

#[test]
fn a_server_leaves_no_socket_behind() {
    let directory = tempfile::tempdir().unwrap();
    let path = socket(&directory);
    drop(server(&path));
    assert!(!path.exists());
    drop(server(&path));
}
