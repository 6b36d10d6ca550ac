//! Clients and servers in processes of their own, for tests of carriers.
#![allow(dead_code)] // not every carrier's tests use all of it

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use manxdb_fabric::{Address, BatchId, Fabric, Operation, OperationOutcome, ServerId};
use rustix::process::{Pid, Signal, kill_process};

/// The server of all tests.
pub const SERVER: ServerId = ServerId(3);
/// The number of a client in another process.
pub const OTHER: u64 = 77;

/// What a process is told to be, and what it needs to know for that.
const ROLE: &str = "MANXDB_FABRIC_TEST_ROLE";
const ABOUT: &str = "MANXDB_FABRIC_TEST_ABOUT";

pub fn at(offset: u64) -> Address {
    let server = SERVER;
    Address { server, offset }
}

/// Does one operation and waits for it.
pub fn run(memory: &mut dyn Fabric, operation: Operation) -> OperationOutcome {
    memory.post(BatchId(1), vec![operation]).unwrap();
    loop {
        if let Some(mut done) = (0..64).find_map(|_| memory.poll()) {
            return done.outcomes.remove(0);
        }
        thread::yield_now();
    }
}

/// Adds one to the first word.
pub fn add(memory: &mut dyn Fabric) -> OperationOutcome {
    let (at, delta) = (at(0), 1);
    run(memory, Operation::FetchAdd { at, delta })
}

/// Until it holds; a test that hangs here has failed.
pub fn until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::yield_now();
    }
}

/// A process of the same test program, in which the test `what_another_process_does` runs alone.
pub struct Process {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// What it said when it was ready.
    pub said: String,
}

impl Process {
    pub fn start(role: &str, about: impl AsRef<OsStr>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "what_another_process_does",
                "--ignored",
                "--nocapture",
            ])
            .env(ROLE, role)
            .env(ABOUT, about)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let said = String::new();
        let mut process = Self { child, lines, said };
        process.said = process.hears("ready");
        process
    }

    /// Waits for a line with a word in it; what follows the word.
    pub fn hears(&mut self, word: &str) -> String {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
            line.clear();
        }
        panic!("the process has ended without saying '{word}'");
    }

    /// Lets it go on: see [`listen`].
    pub fn tell(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Sends a signal; one that stops it has stopped all of its threads when this returns.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        while signal == Signal::STOP && !self.is_stopped() {
            std::thread::yield_now();
        }
    }

    fn is_stopped(&self) -> bool {
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
            let said = std::fs::read_to_string(task.unwrap().path().join("stat"));
            // The state stands behind the name, which is in brackets and may hold any.
            said.is_ok_and(|said| said.rsplit_once(") ").unwrap().1.starts_with('T'))
        };
        std::fs::read_dir(tasks).unwrap().all(is_stopped)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        remove_segments(self.child.id());
    }
}

/// What libfabric's `shm` leaves behind when a process is killed.
fn remove_segments(process: u32) {
    let prefix = format!("{process}:");
    for segment in std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten()
    {
        if segment.file_name().to_string_lossy().starts_with(&prefix) {
            let _ = std::fs::remove_file(segment.path()); // or it is gone
        }
    }
}

/// In the other process: what it is to be, and what it was told about it.
pub fn role() -> Option<(String, String)> {
    Some((std::env::var(ROLE).ok()?, std::env::var(ABOUT).ok()?))
}

/// In the other process: says something.
#[allow(clippy::print_stdout)] // which is what the first process listens to
pub fn say(words: &str) {
    println!("{words}");
    std::io::stdout().flush().unwrap();
}

/// In the other process: until it is told to go on, or the one that has started it is gone.
pub fn listen() {
    let _ = std::io::stdin().read(&mut [0]);
}
