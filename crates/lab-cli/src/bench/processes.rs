//! The processes of a run: one starts the others, tells them to go, and adds up what they say.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::ops::Range;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::histogram::Histogram;
use super::measure::cpu_of;

/// What a process says when it is ready.
const READY: &str = "ready";

/// What a client has done.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Done {
    committed: BTreeMap<String, u64>,
    aborted: u64,
    seconds: f64,
    cpu_seconds: f64,
    p50_us: f64,
    p99_us: f64,
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Transactions that are committed.
    pub committed: u64,
    /// Tries that were not.
    pub aborted: u64,
    /// Of the slowest client.
    pub seconds: f64,
    /// CPU of all clients.
    pub client_cpu: f64,
    /// CPU of all servers.
    pub server_cpu: f64,
    /// Of a try, of the worst client.
    pub p50_us: f64,
    /// Of a try, of the worst client.
    pub p99_us: f64,
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
impl Outcome {
    /// Transactions a second.
    pub fn rate(&self) -> f64 {
        self.committed as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Of a transaction, of all processes.
    pub fn cpu_us(&self) -> f64 {
        self.client_cpu_us() + self.server_cpu_us()
    }

    /// Of a transaction.
    pub fn client_cpu_us(&self) -> f64 {
        self.client_cpu * 1e6 / self.committed.max(1) as f64
    }

    /// Of a transaction.
    pub fn server_cpu_us(&self) -> f64 {
        self.server_cpu * 1e6 / self.committed.max(1) as f64
    }
}

/// A process of a run; it ends with this.
pub struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    name: String,
}

impl Process {
    fn start(name: String, args: &[String]) -> Result<Self, String> {
        let cannot = |error: io::Error| format!("cannot start {name}: {error}");
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.args(args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(cannot)?;
        let out = child.stdout.take().ok_or("it has no output")?;
        Ok(Self {
            child,
            out: BufReader::new(out),
            name,
        })
    }

    /// The next line that it says.
    ///
    /// # Errors
    /// It has ended.
    pub fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.out.read_line(&mut line) {
            Ok(0) => Err(format!("{} ended early", self.name)),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }

    fn ready(&mut self) -> Result<(), String> {
        let line = self.line()?;
        if line == READY {
            Ok(())
        } else {
            Err(format!("{} says '{line}'", self.name))
        }
    }

    fn go(&mut self) -> Result<(), String> {
        self.tell("go")
    }

    /// Says a line to it.
    ///
    /// # Errors
    /// It has ended.
    pub fn tell(&mut self, line: &str) -> Result<(), String> {
        let input = self.child.stdin.as_mut().ok_or("it has no input")?;
        writeln!(input, "{line}").map_err(|error| format!("{}: {error}", self.name))
    }

    /// Waits until it is dead.
    ///
    /// # Errors
    /// The system's.
    pub fn await_end(&mut self) -> Result<(), String> {
        let ended = self.child.wait();
        ended
            .map(drop)
            .map_err(|error| format!("{}: {error}", self.name))
    }

    /// Ends it with SIGKILL.
    ///
    /// # Errors
    /// The system's.
    pub fn kill(&mut self) -> Result<(), String> {
        let killed = self.child.kill();
        killed.map_err(|error| format!("{}: {error}", self.name))?;
        self.await_end()
    }

    /// What it says of what it has done.
    ///
    /// # Errors
    /// It has ended, or says what makes no sense.
    pub fn done<T: DeserializeOwned>(&mut self) -> Result<T, String> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| format!("{} says '{line}': {error}", self.name))
    }

    /// Seconds of CPU that it has used.
    pub fn cpu(&self) -> f64 {
        cpu_of(Some(self.child.id()))
            .unwrap_or_default()
            .as_secs_f64()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// Starts processes of one kind, with the arguments that each has by its number, and waits until
/// they are ready.
///
/// # Errors
/// One of them cannot be started, or ends.
pub fn start_all(
    kind: &str,
    count: u16,
    args: impl Fn(u16) -> Vec<String>,
) -> Result<Vec<Process>, String> {
    start_some(kind, 0..count, args)
}

/// The same with numbers from others than 0 on.
///
/// # Errors
/// As of [`start_all`].
pub fn start_some(
    kind: &str,
    numbers: Range<u16>,
    args: impl Fn(u16) -> Vec<String>,
) -> Result<Vec<Process>, String> {
    let start = |number| Process::start(format!("{kind} {number}"), &args(number));
    let mut all = numbers.map(start).collect::<Result<Vec<_>, _>>()?;
    all.iter_mut().try_for_each(Process::ready)?;
    Ok(all)
}

/// Tells clients to go, and waits until all are done; what came of it, and how many transactions of
/// each kind are committed.
///
/// # Errors
/// One of them ends early, or says what makes no sense.
pub fn run(
    servers: &[Process],
    mut clients: Vec<Process>,
) -> Result<(Outcome, BTreeMap<String, u64>), String> {
    let cpu = || -> f64 { servers.iter().map(Process::cpu).sum() };
    let used = cpu();
    clients.iter_mut().try_for_each(Process::go)?;
    let (mut outcome, mut kinds) = (Outcome::default(), BTreeMap::new());
    for client in &mut clients {
        let done: Done = client.done()?;
        for (kind, count) in done.committed {
            outcome.committed += count;
            *kinds.entry(kind).or_insert(0) += count;
        }
        outcome.aborted += done.aborted;
        outcome.seconds = outcome.seconds.max(done.seconds);
        outcome.client_cpu += done.cpu_seconds;
        outcome.p50_us = outcome.p50_us.max(done.p50_us);
        outcome.p99_us = outcome.p99_us.max(done.p99_us);
    }
    outcome.server_cpu = cpu() - used;
    Ok((outcome, kinds))
}

/// Tells processes to go, all of them with one thing to do, and waits until it is done; what each
/// says of it.
///
/// # Errors
/// One of them ends early, or says what makes no sense.
pub fn run_once<T: DeserializeOwned>(processes: &mut [Process]) -> Result<Vec<T>, String> {
    processes.iter_mut().try_for_each(Process::go)?;
    processes.iter_mut().map(Process::done).collect()
}

/// As a process with one thing to do: does it when it is told to, says what came of it, and stays
/// until whoever has started it is gone.
///
/// # Errors
/// Those of what it does.
pub fn once<T: Serialize>(work: impl FnOnce() -> io::Result<T>) -> io::Result<()> {
    await_go()?;
    say(&serde_json::to_string(&work()?).map_err(io::Error::other)?)?;
    await_line()
}

/// As a client: tries transactions, from when it is told to until its time is over or it has
/// committed so many, and says what it has done. A try's answer is the kind of transaction that is
/// committed, or none if somebody else was there.
///
/// # Errors
/// Those of tries.
pub fn work<'k>(
    seconds: u16,
    most: u64,
    mut try_one: impl FnMut() -> io::Result<Option<&'k str>>,
) -> io::Result<()> {
    await_go()?;
    let cpu = || cpu_of(Some(std::process::id())).unwrap_or_default();
    let (began, used) = (Instant::now(), cpu());
    let until = Duration::from_secs(u64::from(seconds));
    let (mut committed, mut aborted) = (BTreeMap::<&str, u64>::new(), 0);
    let (mut count, mut times) = (0, Histogram::default());
    let mut last = began;
    while last - began < until && count < most {
        match try_one()? {
            Some(kind) => {
                *committed.entry(kind).or_insert(0) += 1;
                count += 1;
            }
            None => aborted += 1,
        }
        let now = Instant::now();
        times.add(u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX));
        last = now;
    }
    let kinds = committed.into_iter();
    let done = Done {
        committed: kinds
            .map(|(kind, count)| (kind.to_owned(), count))
            .collect(),
        aborted,
        seconds: (last - began).as_secs_f64(),
        cpu_seconds: cpu().saturating_sub(used).as_secs_f64(),
        p50_us: micros(times.quantile(0.5)),
        p99_us: micros(times.quantile(0.99)),
    };
    say(&serde_json::to_string(&done).map_err(io::Error::other)?)
}

/// As a client that is done and that others would wait for: does something over and over until
/// whoever has started this process is gone.
///
/// # Errors
/// Those of what it does.
pub fn while_others_work(mut rest: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let is_over = Arc::<AtomicBool>::default();
    let over = Arc::clone(&is_over);
    thread::spawn(move || {
        let _ = await_line(); // an error is an end, too
        over.store(true, Ordering::Relaxed);
    });
    while !is_over.load(Ordering::Relaxed) {
        rest()?;
        thread::yield_now();
    }
    Ok(())
}

/// As a server: serves until whoever has started this process, and holds its standard input, is
/// gone.
///
/// # Errors
/// The system's.
pub fn until_end() -> io::Result<()> {
    say(READY)?;
    await_line()
}

/// Waits for a word of whoever has started this process, or for their end.
fn await_line() -> io::Result<()> {
    hear().map(drop)
}

/// A word of whoever has started this process; nothing at their end.
///
/// # Errors
/// The system's.
pub fn hear() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

/// Says that it is ready, and waits until it is told to go.
///
/// # Errors
/// The system's.
pub fn await_go() -> io::Result<()> {
    say(READY)?;
    await_line()
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

/// Says a line to whoever has started this process.
///
/// # Errors
/// The system's.
pub fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
