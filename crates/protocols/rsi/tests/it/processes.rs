//! Processes that move money over shared memory, killed and stopped at any moment; and reads that
//! meet writes in real memory.
//!
//! Nothing here waits for a clock: each test goes on when counters say that enough was done.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)] // processes, and tests

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use manxdb_core::Random;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_fabric::{Address, BatchId, Fabric as _, Operation, OperationOutcome, ServerId, WORD};
use manxdb_rsi::{
    Abort, Block, Change, Head, Isolation, Layout, Log, Machine, Recover, Release, Seen, Session,
    Snapshot, Step, ThreadId, Vector,
};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

const SERVER: ServerId = ServerId(0);
const REGISTERED: u64 = 4 << 20;
const THREADS: u16 = 64;

/// What another process is told to be: the socket and its thread.
const SOCKET: &str = "MANXDB_RSI_TEST_SOCKET";
const THREAD: &str = "MANXDB_RSI_TEST_THREAD";

const ACCOUNTS: u64 = 4;
const TOTAL: u64 = 1_000;
/// Numbers of eight bytes, again and again, in more than one line.
const LAYOUT: Layout = match Layout::new(2, 160) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

const RECORDS_AT: u64 = 64 << 10;
const LOGS_AT: u64 = 1 << 20;
const LOG_BYTES: u64 = 4096;
/// A word for each thread: its transactions that it knows to be committed.
const KNOWN_AT: u64 = 2 << 20;

fn at(offset: u64) -> Address {
    let server = SERVER;
    Address { server, offset }
}

fn vector() -> Vector {
    Vector::new(at(0), THREADS).unwrap()
}

/// Accounts first, then a counter for each thread.
fn record(place: u64) -> Address {
    at(RECORDS_AT + place * (LAYOUT.bytes() as u64).next_multiple_of(64))
}

fn counter(thread: ThreadId) -> Address {
    record(ACCOUNTS + u64::from(thread.number()))
}

fn log(thread: ThreadId) -> Log {
    Log::new(
        vec![at(LOGS_AT + u64::from(thread.number()) * LOG_BYTES)],
        LOG_BYTES,
        1,
    )
    .unwrap()
}

fn known(thread: ThreadId) -> u64 {
    KNOWN_AT + u64::from(thread.number()) * WORD
}

fn thread(number: u16) -> ThreadId {
    ThreadId::new(number).unwrap()
}

/// A client: a thread's session and its way to the memory.
struct Client {
    memory: SharedMemory,
    session: Session,
    thread: ThreadId,
}

impl Client {
    fn new(path: &Path, thread: ThreadId) -> Self {
        let mut memory = SharedMemory::default();
        memory.connect(path, u64::from(thread.number())).unwrap();
        let session = Session::new(thread, vector(), 0).unwrap();
        let session = session.with_log(log(thread));
        Self {
            memory,
            session,
            thread,
        }
    }

    /// The same without a log, which has no room for large values.
    fn unlogged(path: &Path, thread: ThreadId) -> Self {
        let session = Session::new(thread, vector(), 0).unwrap();
        Self {
            session,
            ..Self::new(path, thread)
        }
    }

    fn post(&mut self, operations: Vec<Operation>) -> Vec<OperationOutcome> {
        self.memory.post(BatchId(1), operations).unwrap();
        self.memory.poll().unwrap().outcomes
    }

    fn run<W: Machine>(&mut self, mut work: W) -> W::Output {
        let mut outcomes = Vec::new();
        loop {
            outcomes = match work.step(outcomes) {
                Step::Done(output) => return output,
                Step::Post(operations) => self.post(operations),
                Step::Backoff(operations, _) => {
                    thread::yield_now();
                    self.post(operations)
                }
            };
        }
    }

    fn begin(&mut self) -> Snapshot {
        let begin = self.session.begin().unwrap();
        let snapshot = self.run(begin).unwrap();
        self.session.saw(&snapshot);
        snapshot
    }

    fn read(&mut self, snapshot: &Snapshot, at: Address, layout: Layout) -> Result<Seen, Abort> {
        let read = self.session.read(snapshot, at, layout);
        self.run(read)
    }

    fn commit(&mut self, changes: Vec<Change>) -> Result<(), Abort> {
        let commit = self.session.commit(&[], changes, Isolation::Snapshot)?;
        let committed = self.run(commit);
        self.session.ended(&committed);
        committed.map(|_| ())
    }

    /// Moves an amount between two accounts and counts that; whether it is committed.
    fn move_money(&mut self, random: &mut Random) -> Result<(), Abort> {
        let snapshot = self.begin();
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        let places = [record(from), record(to), counter(self.thread)];
        let mut seen = Vec::new();
        for place in places {
            seen.push(self.read(&snapshot, place, LAYOUT)?);
        }
        let amount = random.below(number(&seen[0]) + 1);
        let values = [
            number(&seen[0]) - amount,
            number(&seen[1]) + amount,
            number(&seen[2]) + 1,
        ];
        let changes = seen.into_iter().zip(values).map(|(seen, to)| Change {
            seen,
            value: Some(to.to_le_bytes().repeat(20)),
        });
        self.commit(changes.collect())
    }
}

fn number(seen: &Seen) -> u64 {
    let Some(bytes) = seen.value() else { return 0 };
    let first = *bytes.first_chunk().unwrap();
    assert_eq!(*bytes, first.repeat(20), "a value of two times");
    u64::from_le_bytes(first)
}

/// Memory with empty records and all money in the first account.
fn serve(directory: &TempDir) -> (MemoryServer, PathBuf) {
    let path = directory.path().join("memory");
    let server = MemoryServer::start(&path, SERVER, REGISTERED).unwrap();
    let mut client = Client::new(&path, thread(0));
    for place in 0..ACCOUNTS + u64::from(THREADS) {
        client.post(vec![Operation::Write {
            at: record(place).plus(WORD),
            bytes: Block::empty(LAYOUT, 0).into_body(),
        }]);
    }
    let snapshot = client.begin();
    let seen = client.read(&snapshot, record(0), LAYOUT).unwrap();
    let value = Some(TOTAL.to_le_bytes().repeat(20));
    client.commit(vec![Change { seen, value }]).unwrap();
    drop(client);
    until(|| server.clients().is_empty());
    (server, path)
}

/// Locks of a thread.
fn locks(server: &MemoryServer, thread: ThreadId) -> usize {
    let places = 0..ACCOUNTS + u64::from(THREADS);
    let heads = places.map(|place| Head::of_word(word(server, record(place).offset)));
    let own = |head: &Head| matches!(head, Head::Locked(holder) if holder.thread == thread);
    heads.filter(own).count()
}

/// Until it holds; a test that hangs here has failed.
fn until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::yield_now();
    }
}

fn word(server: &MemoryServer, offset: u64) -> u64 {
    u64::from_le_bytes(*server.read(offset, 8).first_chunk().unwrap())
}

/// A process that moves money until it is killed.
struct Mover {
    process: Child,
    thread: ThreadId,
}

impl Mover {
    fn start(path: &Path, thread: ThreadId) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "processes::what_another_process_does",
                "--ignored",
                "--nocapture",
            ])
            .env(SOCKET, path)
            .env(THREAD, thread.number().to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("ready")));
        Self { process, thread }
    }

    fn client(&self) -> u64 {
        u64::from(self.thread.number())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Stops it in the middle of a commit.
    fn stop_with_locks(&self, server: &MemoryServer) {
        let pid = Pid::from_child(&self.process);
        loop {
            self.signal(Signal::STOP);
            let _ = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap(); // it stands still
            if locks(server, self.thread) > 0 {
                return;
            }
            self.signal(Signal::CONT);
            thread::yield_now();
        }
    }

    /// Until it has committed so many more.
    fn goes_on(&self, server: &MemoryServer, count: u64) {
        let target = word(server, known(self.thread)) + count;
        until(|| word(server, known(self.thread)) >= target);
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "started by the other tests, with a thread"]
fn what_another_process_does() {
    let (Ok(path), Ok(number)) = (std::env::var(SOCKET), std::env::var(THREAD)) else {
        return;
    };
    let number: u16 = number.parse().unwrap();
    let mut client = Client::new(Path::new(&path), thread(number));
    let mut random = Random::stream(u64::from(number), &[1]);
    println!("ready");
    std::io::stdout().flush().unwrap();
    let mut count = 0_u64;
    loop {
        match client.move_money(&mut random) {
            Ok(()) => count += 1,
            Err(Abort::Fault(fault)) => panic!("{fault}"),
            Err(_) => continue,
        }
        let at = at(known(client.thread));
        let bytes = count.to_le_bytes().to_vec();
        client.post(vec![Operation::Write { at, bytes }]);
    }
}

/// Goes on for a process that is shut out, while others are at work.
fn recover(server: &MemoryServer, survivor: &mut Client, dead: ThreadId) {
    let recovered = survivor.run(Recover::new(dead, vector(), log(dead)));
    let last = recovered.unwrap().last;
    for place in 0..ACCOUNTS + u64::from(THREADS) {
        let head = Head::of_word(word(server, record(place).offset));
        if matches!(head, Head::Locked(holder) if holder.thread == dead) {
            survivor
                .run(Release::new(record(place), LAYOUT, last))
                .unwrap();
        }
    }
}

/// When nobody moves money any more: all of it is there, and all moves that somebody knows of.
fn judge(server: &MemoryServer, survivor: &mut Client, threads: &[ThreadId]) {
    let snapshot = survivor.begin();
    let mut sum = 0;
    for place in 0..ACCOUNTS {
        sum += number(&survivor.read(&snapshot, record(place), LAYOUT).unwrap());
    }
    assert_eq!(sum, TOTAL);
    for thread in threads {
        let found = number(&survivor.read(&snapshot, counter(*thread), LAYOUT).unwrap());
        let known = word(server, known(*thread));
        let is_fine = found == known || found == known + 1;
        assert!(is_fine, "thread {thread}: {found} moves, {known} are known");
    }
    for place in 0..ACCOUNTS + u64::from(THREADS) {
        let head = Head::of_word(word(server, record(place).offset));
        assert!(matches!(head, Head::Free(_)), "record {place}: {head:?}");
    }
}

/// How a process goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Its end is noticed first.
    Killed,
    /// It stands still, is shut out, and would go on.
    Stopped,
}

#[test]
fn processes_die_and_are_recovered_while_others_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let (server, path) = serve(&directory);
    let mut survivor = Client::new(&path, thread(1));
    let mut threads = (2..).map(thread);
    let mut movers: Vec<Mover> = threads
        .by_ref()
        .take(3)
        .map(|one| Mover::start(&path, one))
        .collect();
    let mut all: Vec<ThreadId> = movers.iter().map(|mover| mover.thread).collect();
    let mut held = 0;
    for round in 0..24 {
        let victim = movers.remove(0);
        victim.goes_on(&server, 3 + round % 5);
        let end = if round % 2 == 0 {
            End::Killed
        } else {
            End::Stopped
        };
        match end {
            End::Killed => victim.signal(Signal::KILL),
            End::Stopped => victim.stop_with_locks(&server),
        }
        server.fence(victim.client()).unwrap();
        held += usize::from(locks(&server, victim.thread) > 0);
        recover(&server, &mut survivor, victim.thread);
        assert_eq!(locks(&server, victim.thread), 0);
        if end == End::Stopped {
            victim.signal(Signal::CONT);
        }
        // Those who were in its way are not any more.
        for mover in &movers {
            mover.goes_on(&server, 2);
        }
        let next = threads.next().unwrap();
        all.push(next);
        movers.push(Mover::start(&path, next));
    }
    println!("{held} of 24 had locks when they were shut out");
    assert!(held >= 12, "{held} of 24 had locks: this test is blind");
    for mover in movers {
        mover.signal(Signal::KILL);
        server.fence(mover.client()).unwrap();
        recover(&server, &mut survivor, mover.thread);
    }
    judge(&server, &mut survivor, &all);
}

#[test]
fn a_process_that_only_stood_still_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (server, path) = serve(&directory);
    let movers: Vec<Mover> = (2..4).map(|one| Mover::start(&path, thread(one))).collect();
    for round in 0..20 {
        let mover = &movers[round % 2];
        mover.goes_on(&server, 2);
        mover.signal(Signal::STOP);
        mover.signal(Signal::CONT);
    }
    let threads: Vec<ThreadId> = movers.iter().map(|mover| mover.thread).collect();
    let mut survivor = Client::new(&path, thread(1));
    for mover in movers {
        server.fence(mover.client()).unwrap();
        recover(&server, &mut survivor, mover.thread);
    }
    judge(&server, &mut survivor, &threads);
}

/// Torn copies that are looked for, of each size, and reads that must be whole.
const TEARS: u64 = 20;
const DELIVERED: u64 = 100;

#[test]
fn torn_copies_are_seen_and_none_is_delivered() {
    for bytes in [1 << 10, 4 << 10, 8 << 10, 16 << 10] {
        let layout = Layout::new(2, bytes).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (_server, path) = serve(&directory);
        let place = at(3 << 20);
        let first = Operation::Write {
            at: place.plus(WORD),
            bytes: Block::empty(layout, 0).into_body(),
        };
        Client::new(&path, thread(2)).post(vec![first]);
        let is_over = AtomicBool::new(false);
        let (tears, written) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for number in 3..5 {
                let (path, is_over, written) = (&path, &is_over, &written);
                scope.spawn(move || {
                    let mut client = Client::unlogged(path, thread(number));
                    while !is_over.load(Ordering::Relaxed) {
                        written.fetch_add(
                            u64::from(rewrite(&mut client, place, layout)),
                            Ordering::Relaxed,
                        );
                    }
                });
            }
            scope.spawn(|| {
                let mut client = Client::unlogged(&path, thread(5));
                while !is_over.load(Ordering::Relaxed) {
                    let is_torn = has_torn_value(&mut client, place, layout);
                    tears.fetch_add(u64::from(is_torn), Ordering::Relaxed);
                }
            });
            let mut client = Client::unlogged(&path, thread(6));
            let mut delivered = 0;
            while delivered < DELIVERED || tears.load(Ordering::Relaxed) < TEARS {
                let snapshot = client.begin();
                if let Ok(seen) = client.read(&snapshot, place, layout) {
                    let value = seen.value().unwrap_or_default().to_vec();
                    assert!(
                        value.iter().all(|byte| *byte == value[0]),
                        "a torn value is delivered"
                    );
                    delivered += 1;
                }
            }
            is_over.store(true, Ordering::Relaxed);
            let (tears, written) = (
                tears.load(Ordering::Relaxed),
                written.load(Ordering::Relaxed),
            );
            println!("{bytes} bytes: {delivered} reads, {tears} torn copies, {written} writes");
        });
    }
}

/// Writes one byte, again and again, over whatever is there; whether that is committed.
fn rewrite(client: &mut Client, place: Address, layout: Layout) -> bool {
    let snapshot = client.begin();
    let Ok(seen) = client.read(&snapshot, place, layout) else {
        return false;
    };
    let former = seen.value().map_or(0, |value| value[0]);
    let value = Some(vec![former.wrapping_add(1); layout.value_max()]);
    client.commit(vec![Change { seen, value }]).is_ok()
}

/// Whether a copy of the block has a value of two times, as it was copied.
fn has_torn_value(client: &mut Client, place: Address, layout: Layout) -> bool {
    let bytes = layout.bytes() as u64;
    let outcomes = client.post(vec![Operation::Read { at: place, bytes }]);
    let [OperationOutcome::Read(copy)] = outcomes.as_slice() else {
        panic!("{outcomes:?}");
    };
    let (versions, value, _) = layout.sizes();
    let values = &copy[copy.len() - versions * value..];
    values
        .chunks(value)
        .any(|value| value.iter().any(|byte| *byte != value[0]))
}
