//! Memory servers in processes of their own that are killed, with rows on several of them: money is
//! kept, what was acknowledged is there, and everybody goes on.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods)] // processes, threads and clocks, and tests

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_core::{Nanos, Random};
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_rack::memory::{Geometry, Memory, SharedWay, Source, Superblock, Watched, watch};
use manxdb_rack::path::RsiPath;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::{CommitPath, Intent, IsolationLevel, ReadSet, Reply, TxnError, TxnId};
use tempfile::TempDir;

const GEOMETRY: Geometry = Geometry {
    servers: 4,
    replicas: 3,
    bytes: 12 << 20,
    places: 10,
    log_copies: 3,
    log_bytes: 64 << 10,
    log_slots: 1,
    versions: 4,
    value: 64,
    node: 1_000,
    // Long beside what a busy machine makes a thread wait.
    lease: Nanos::from_secs(4),
};
const ACCOUNTS: u32 = 16;
const START: u64 = 1_000;

/// A memory server, which is told by two variables what it is.
const DIRECTORY: &str = "MANXDB_RACK_TEST_DIRECTORY";
const SERVER: &str = "MANXDB_RACK_TEST_SERVER";

#[test]
#[ignore = "started by the other tests, as a memory server"]
fn what_another_process_does() {
    let (Ok(directory), Ok(server)) = (std::env::var(DIRECTORY), std::env::var(SERVER)) else {
        return;
    };
    let server: u16 = server.parse().unwrap();
    let superblock = Superblock {
        name: "test".into(),
        server,
        directory: 0,
        geometry: GEOMETRY,
    };
    let socket = SharedWay::socket(Path::new(&directory), server);
    let _ = std::fs::remove_file(&socket);
    let first = [(0, superblock.encode())];
    let _memory =
        MemoryServer::start_filled(&socket, ServerId(server), GEOMETRY.bytes, &first).unwrap();
    println!("ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]); // until the test is over
    std::process::exit(0);
}

fn start(directory: &Path, server: u16) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "what_another_process_does",
            "--ignored",
            "--nocapture",
        ])
        .env(DIRECTORY, directory)
        .env(SERVER, server.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_ready = |line: &String| line.contains("ready");
    lines.map_while(Result::ok).find(is_ready).unwrap();
    child
}

/// Memory servers, and a process on them of two clients and a warden, as often as wanted.
struct Rack {
    directory: TempDir,
    servers: Vec<Child>,
}

impl Drop for Rack {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// What a database server has.
struct House {
    path: RsiPath<SharedMemory>,
    memory: Arc<Memory<SharedWay>>,
    watched: Watched,
    stop: AtomicBool,
}

impl Rack {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let servers = (0..GEOMETRY.servers).map(|server| start(directory.path(), server));
        let servers = servers.collect();
        Self { directory, servers }
    }

    fn kill(&mut self, server: u16) {
        let server = &mut self.servers[usize::from(server)];
        server.kill().unwrap();
        server.wait().unwrap();
    }

    fn house(&self, seed: u64) -> House {
        let way = SharedWay::new(self.directory.path());
        let memory = Arc::new(Memory::open(way, seed).unwrap());
        let source: Arc<dyn Source<SharedMemory>> = memory.clone();
        House {
            path: RsiPath::open(source, 2, GEOMETRY.value).unwrap(),
            memory,
            watched: Watched::default(),
            stop: AtomicBool::new(false),
        }
    }
}

impl House {
    /// Its warden, and the thread that keeps its places.
    fn run<'s>(&'s self, scope: &'s thread::Scope<'s, '_>) {
        scope.spawn(|| {
            watch(&self.memory, &self.watched, &self.stop, &|what| {
                println!("{what}");
            });
        });
        scope.spawn(|| {
            while !self.stop.load(Ordering::Relaxed) {
                self.path.keep();
                thread::sleep(Duration::from_nanos(GEOMETRY.lease.0 / 8));
            }
        });
    }
}

fn ready<T>(reply: Reply<T>) -> T {
    match reply {
        Reply::Ready(answer) => answer,
        Reply::Pending(_) => panic!("it answers at once"),
    }
}

type Rows = RsiPath<SharedMemory>;

fn submit(path: &Rows, reads: ReadSet, writes: Vec<(Vec<u8>, Vec<u8>)>) -> Result<(), TxnError> {
    let mut writes: Vec<_> = writes
        .into_iter()
        .map(|(key, row)| (key, Some(row)))
        .collect();
    writes.sort();
    let intent = Intent {
        txn: TxnId(1),
        isolation: IsolationLevel::Serializable,
        reads,
        writes,
        durability: Durability::Async,
    };
    ready(path.submit(intent)).map(drop)
}

fn account(number: u64) -> Vec<u8> {
    format!("account {number:02}").into_bytes()
}

fn balance(row: &[u8]) -> u64 {
    u64::from_le_bytes(*row.first_chunk().unwrap())
}

/// Moves one from one account to another, and writes that down; none: somebody was in the way.
fn transfer(path: &Rows, accounts: [u64; 2], note: Vec<u8>) -> Result<bool, TxnError> {
    let snapshot = ready(path.snapshot())?;
    let mut reads = ReadSet::default();
    let mut writes = vec![(note, vec![1])];
    for (number, change) in accounts.into_iter().zip([u64::MAX, 1]) {
        let key = account(number);
        let row = ready(path.get(snapshot.version, &key))?.unwrap();
        let after = balance(&row).wrapping_add(change);
        reads.points.push((key.clone(), snapshot.version));
        writes.push((key, after.to_le_bytes().to_vec()));
    }
    match submit(path, reads, writes) {
        Ok(()) => Ok(true),
        Err(TxnError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Moves money until it is told to end; how much it has moved, and its longest pause.
fn work(path: &Rows, own: u64, done: &AtomicU64, stop: &AtomicBool) -> (u64, Duration) {
    let mut random = Random::stream(own, &[1]);
    let (mut count, mut longest, mut last) = (0, Duration::ZERO, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let from = random.below(ACCOUNTS.into());
        let to = (from + 1 + random.below(u64::from(ACCOUNTS) - 1)) % u64::from(ACCOUNTS);
        let note = format!("note {own} {count:06}").into_bytes();
        match transfer(path, [from, to], note) {
            Ok(false) | Err(TxnError::Conflict { .. }) => {}
            Ok(true) => {
                count += 1;
                longest = longest.max(last.elapsed());
                last = Instant::now();
                done.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("worker {own} after {count}: {error}"),
        }
    }
    (count, longest)
}

/// All notes are there, each once, and no money came or went.
fn judge(path: &Rows, counts: &[u64]) {
    let snapshot = ready(path.snapshot()).unwrap();
    let range = KeyRange::all();
    let rows = ready(path.scan(snapshot.version, &range, Direction::Forward, usize::MAX)).unwrap();
    let of_accounts = rows.iter().filter(|(key, _)| key.starts_with(b"account"));
    let money: u64 = of_accounts.map(|(_, row)| balance(row)).sum();
    assert_eq!(money, u64::from(ACCOUNTS) * START);
    for (own, count) in counts.iter().enumerate() {
        let prefix = format!("note {own} ").into_bytes();
        let notes = rows.iter().filter(|(key, _)| key.starts_with(&prefix));
        let notes: Vec<_> = notes.map(|(key, _)| key.clone()).collect();
        let expected = (0..*count).map(|number| format!("note {own} {number:06}").into_bytes());
        assert!(notes.into_iter().eq(expected), "worker {own}: {count}");
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn two_servers_are_killed_one_after_the_other_and_everybody_goes_on() {
    let mut rack = Rack::new();
    let houses = [rack.house(1), rack.house(2)];
    let rows = (0..ACCOUNTS.into()).map(|number| (account(number), START.to_le_bytes().to_vec()));
    submit(&houses[0].path, ReadSet::default(), rows.collect()).unwrap();
    let stop = AtomicBool::new(false);
    let done: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
    let counts: Vec<u64> = thread::scope(|scope| {
        for house in &houses {
            house.run(scope);
        }
        let workers = done.iter().zip(0..).map(|(done, own)| {
            let (path, stop) = (&houses[usize::from(own >= 2)].path, &stop);
            scope.spawn(move || work(path, own, done, stop))
        });
        let workers: Vec<_> = workers.collect();
        let go_on = |what: &str| {
            let before: Vec<u64> = done.iter().map(|one| one.load(Ordering::Relaxed)).collect();
            until(what, || {
                let mut pairs = done.iter().zip(&before);
                pairs.all(|(one, before)| one.load(Ordering::Relaxed) > before + 20)
            });
        };
        go_on("all work");
        for server in [1, 0] {
            rack.kill(server);
            go_on("all go on");
        }
        let have_heard = || {
            let mut epochs = houses.iter().map(|house| &house.watched.epoch);
            epochs.all(|epoch| epoch.load(Ordering::Relaxed) == 2)
        };
        until("all wardens have heard of it", have_heard);
        stop.store(true, Ordering::Relaxed);
        let ended = workers.into_iter().map(|worker| worker.join().unwrap());
        let ended: Vec<_> = ended.collect();
        for house in &houses {
            house.stop.store(true, Ordering::Relaxed);
        }
        println!("{ended:?}");
        ended.into_iter().map(|(count, _)| count).collect()
    });
    for house in &houses {
        judge(&house.path, &counts);
        house.path.leave();
    }
    // One who comes later finds the same, though a server is back without its memory.
    rack.servers.push(start(rack.directory.path(), 0));
    let late = rack.house(3);
    judge(&late.path, &counts);
}
