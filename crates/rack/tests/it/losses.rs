//! Memory servers in processes of their own that are killed, or hang, with rows on several of them: money
//! is kept, what was acknowledged is there, and everybody goes on. Over memory that processes share, and
//! with the feature `libfabric` over TCP.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
#![allow(clippy::disallowed_methods)] // processes, threads and clocks, and tests

use std::any::Any;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{ready, submit, until};
use manxdb_core::{Nanos, Random};
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::MemoryServer;
use manxdb_rack::memory::{
    Geometry, Memory, SharedTransport, Source, Superblock, Transport, Watched, watch,
};
use manxdb_rack::path::RsiPath;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::{CommitPath, ReadSet, TxnError};
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
    lease: Nanos::from_secs(12),
};
const ACCOUNTS: u32 = 16;
const START: u64 = 1_000;

/// A memory server, which is told by three variables what it is.
const DIRECTORY: &str = "MANXDB_RACK_TEST_DIRECTORY";
const SERVER: &str = "MANXDB_RACK_TEST_SERVER";
/// Where it was reached before; empty: by TCP nowhere yet. None: by no address.
const ADDRESS: &str = "MANXDB_RACK_TEST_ADDRESS";

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
    let first = [(0, superblock.encode())];
    let (_memory, address) = match std::env::var(ADDRESS) {
        Err(_) => share(Path::new(&directory), server, &first),
        Ok(address) => offer(&address, server, &first),
    };
    println!("ready {address}");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().read(&mut [0]); // until the test is over
    std::process::exit(0);
}

type Offered = (Box<dyn Any>, String);

/// Memory that is shared.
fn share(directory: &Path, server: u16, first: &[(u64, Vec<u8>)]) -> Offered {
    let socket = SharedTransport::socket(directory, server);
    let _ = std::fs::remove_file(&socket);
    let memory = MemoryServer::start_filled(&socket, ServerId(server), GEOMETRY.bytes, first);
    (Box::new(memory.unwrap()), String::new())
}

/// Memory at an address.
#[cfg(feature = "libfabric")]
fn offer(address: &str, server: u16, first: &[(u64, Vec<u8>)]) -> Offered {
    use manxdb_fabric::libfabric::{MemoryServer, Provider};
    let address = if address.is_empty() {
        "127.0.0.1:0"
    } else {
        address
    };
    let address: std::net::SocketAddr = address.parse().unwrap();
    let provider = Provider::at(remote::PROVIDER, address.ip());
    let (door, number) = (address.into(), ServerId(server));
    let memory = MemoryServer::start_filled(&door, number, GEOMETRY.bytes, first, &provider);
    let memory = memory.unwrap();
    let address = memory.address().to_string();
    (Box::new(memory), address)
}

#[cfg(not(feature = "libfabric"))]
fn offer(_: &str, _: u16, _: &[(u64, Vec<u8>)]) -> Offered {
    panic!("there is no libfabric");
}

/// A server's process, and the address that it said.
struct Server {
    child: Child,
    /// Open: who says something that nobody reads ends.
    _said: ChildStdout,
    address: String,
}

/// Starts a server; `address` as in [`ADDRESS`].
fn start(directory: &Path, server: u16, address: Option<&str>) -> Server {
    let mut command = Command::new(std::env::current_exe().unwrap());
    if let Some(address) = address {
        command.env(ADDRESS, address);
    }
    let mut child = command
        .args([
            "--exact",
            "losses::what_another_process_does",
            "--ignored",
            "--nocapture",
        ])
        .env(DIRECTORY, directory)
        .env(SERVER, server.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    let address = loop {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it has ended");
        if let Some((_, address)) = line.split_once("ready ") {
            break address.trim().to_owned();
        }
    };
    Server {
        child,
        _said: said.into_inner(),
        address,
    }
}

/// Memory servers, and a process on them of two clients and a recovery coordinator, as often as wanted.
struct Rack {
    directory: TempDir,
    servers: Vec<Server>,
}

impl Drop for Rack {
    fn drop(&mut self) {
        for server in &mut self.servers {
            let _ = server.child.kill();
            let _ = server.child.wait();
        }
    }
}

/// What a database server has.
struct House<W: Transport> {
    path: RsiPath<W::Fabric>,
    memory: Arc<Memory<W>>,
    watched: Watched,
    stop: AtomicBool,
}

impl Rack {
    fn new(address: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let servers = (0..GEOMETRY.servers).map(|server| start(directory.path(), server, address));
        let servers = servers.collect();
        Self { directory, servers }
    }

    fn strike(&mut self, server: u16, how: Strike) {
        let child = &mut self.servers[usize::from(server)].child;
        match how {
            Strike::Kill => {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            #[cfg(feature = "libfabric")]
            Strike::Stop => remote::stop(child),
        }
    }

    /// One that is lost comes back with empty memory, where it was.
    fn restart(&mut self, server: u16) {
        self.strike(server, Strike::Kill);
        let lost = &mut self.servers[usize::from(server)];
        let address = Some(lost.address.as_str()).filter(|address| !address.is_empty());
        *lost = start(self.directory.path(), server, address);
    }
}

/// What becomes of a server.
#[derive(Clone, Copy)]
enum Strike {
    Kill,
    /// It neither ends nor answers: memory that is shared is there all the same.
    #[cfg(feature = "libfabric")]
    Stop,
}

impl<W: Transport> House<W> {
    fn new(way: W, seed: u64) -> Self {
        let memory = Arc::new(Memory::open(way, seed).unwrap());
        let source: Arc<dyn Source<W::Fabric>> = memory.clone();
        Self {
            path: RsiPath::open(source, 2, GEOMETRY.value).unwrap(),
            memory,
            watched: Watched::default(),
            stop: AtomicBool::new(false),
        }
    }

    /// Its recovery coordinator, and the thread that keeps its places.
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

fn account(number: u64) -> Vec<u8> {
    format!("account {number:02}").into_bytes()
}

fn balance(row: &[u8]) -> u64 {
    u64::from_le_bytes(*row.first_chunk().unwrap())
}

/// Moves one from one account to another, and writes that down; none: somebody was in the way.
fn transfer(path: &dyn CommitPath, accounts: [u64; 2], note: Vec<u8>) -> Result<bool, TxnError> {
    let snapshot = ready(path.snapshot())?;
    let mut reads = ReadSet::default();
    let mut writes = vec![(note, Some(vec![1]))];
    for (number, change) in accounts.into_iter().zip([u64::MAX, 1]) {
        let key = account(number);
        let row = ready(path.get(snapshot.version, &key))?.unwrap();
        let after = balance(&row).wrapping_add(change);
        reads.points.push((key.clone(), snapshot.version));
        writes.push((key, Some(after.to_le_bytes().to_vec())));
    }
    match submit(path, reads, &writes, Durability::Async) {
        Ok(_) => Ok(true),
        Err(TxnError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// How far the workers may go, and when they end. Each transfer leaves a row: without a bound a fast
/// machine would fill all memory before a slow strike is over.
struct Orders {
    granted: AtomicU64,
    stop: AtomicBool,
}

/// Transfers that a worker may make for each thing that is waited for; with three of these the rows
/// of all workers fill less than half of the memory that two servers have.
const GRANT: u64 = 300;

/// Moves money until it is told to end; how much it has moved, and its longest pause.
fn work(path: &dyn CommitPath, own: u64, done: &AtomicU64, orders: &Orders) -> (u64, Duration) {
    let mut random = Random::stream(own, &[1]);
    let (mut count, mut longest, mut last) = (0, Duration::ZERO, Instant::now());
    while !orders.stop.load(Ordering::Relaxed) {
        if count >= orders.granted.load(Ordering::Relaxed) {
            thread::yield_now();
            continue;
        }
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
fn judge(path: &dyn CommitPath, counts: &[u64]) {
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

/// Has all threads end, also when the test fails in their midst.
struct End<'a, W: Transport>(&'a [House<W>], &'a AtomicBool);

impl<W: Transport> Drop for End<'_, W> {
    fn drop(&mut self) {
        let stops = self.0.iter().map(|house| &house.stop);
        for stop in stops.chain([self.1]) {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Two servers are struck one after the other, while two houses are at work.
fn everybody_goes_on<W: Transport>(
    address: Option<&str>,
    strikes: [(u16, Strike); 2],
    way: impl Fn(&Rack) -> W,
) {
    let mut rack = Rack::new(address);
    let houses = [1, 2].map(|seed| House::new(way(&rack), seed));
    let row = |number| (account(number), Some(START.to_le_bytes().to_vec()));
    let rows: Vec<_> = (0..ACCOUNTS.into()).map(row).collect();
    submit(
        &houses[0].path,
        ReadSet::default(),
        &rows,
        Durability::Async,
    )
    .unwrap();
    let orders = Orders {
        granted: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let done: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
    let counts: Vec<u64> = thread::scope(|scope| {
        let _end = End(&houses, &orders.stop);
        for house in &houses {
            house.run(scope);
        }
        let workers = done.iter().zip(0..).map(|(done, own)| {
            let (path, orders) = (&houses[usize::from(own >= 2)].path, &orders);
            scope.spawn(move || work(path, own, done, orders))
        });
        let workers: Vec<_> = workers.collect();
        let go_on = |what: &str, strike: &mut dyn FnMut()| {
            let before: Vec<u64> = done.iter().map(|one| one.load(Ordering::Relaxed)).collect();
            orders.granted.fetch_add(GRANT, Ordering::Relaxed);
            strike();
            until(what, || {
                let mut pairs = done.iter().zip(&before);
                pairs.all(|(one, before)| one.load(Ordering::Relaxed) > before + 20)
            });
        };
        go_on("all work", &mut || {});
        for (server, how) in strikes {
            go_on("all go on", &mut || rack.strike(server, how));
        }
        let have_heard = || {
            let mut epochs = houses.iter().map(|house| &house.watched.epoch);
            epochs.all(|epoch| epoch.load(Ordering::Relaxed) == 2)
        };
        until("all recovery coordinators have heard of it", have_heard);
        orders.stop.store(true, Ordering::Relaxed);
        let ended = workers.into_iter().map(|worker| worker.join().unwrap());
        let ended: Vec<_> = ended.collect();
        println!("{ended:?}");
        ended.into_iter().map(|(count, _)| count).collect()
    });
    for house in &houses {
        judge(&house.path, &counts);
        house.path.leave();
    }
    // One who comes later finds the same, though a server is back without its memory.
    rack.restart(0);
    let late = House::new(way(&rack), 3);
    judge(&late.path, &counts);
}

#[test]
fn two_servers_are_killed_one_after_the_other_and_everybody_goes_on() {
    let strikes = [(1, Strike::Kill), (0, Strike::Kill)];
    everybody_goes_on(None, strikes, |rack| {
        SharedTransport::new(rack.directory.path())
    });
}

/// The same over TCP.
#[cfg(feature = "libfabric")]
mod remote {
    use std::process::Child;

    use manxdb_rack::memory::RemoteTransport;
    use rustix::process::{Pid, Signal, kill_process};

    use super::{Rack, Strike, everybody_goes_on};

    pub const PROVIDER: &str = "tcp;ofi_rxm";

    pub fn stop(child: &Child) {
        kill_process(Pid::from_child(child), Signal::STOP).unwrap();
    }

    fn way(rack: &Rack) -> RemoteTransport {
        let addresses = rack.servers.iter().map(|server| &server.address);
        let doors = addresses.map(|address| {
            let address: std::net::SocketAddr = address.parse().unwrap();
            address.into()
        });
        RemoteTransport::new(PROVIDER, doors.collect()).unwrap()
    }

    #[test]
    fn one_server_is_killed_and_another_one_hangs_and_everybody_goes_on() {
        let strikes = [(1, Strike::Kill), (0, Strike::Stop)];
        everybody_goes_on(Some(""), strikes, way);
    }
}
