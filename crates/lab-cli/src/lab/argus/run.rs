//! Runs a trial: a client on one core, its witnesses on another, in namespaces of their own.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use manxdb_curp::wire::Status;
use manxdb_witness::{ProgramClock, ProgramTime};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::bench::{Bench, collection, receive, record, status};
use super::trial::{Answerer, Outcome, Pace, Trial};
use crate::bench::histogram::Histogram;
use crate::lab::curp::trial::Carrier;
use crate::lab::curp::{namespace, spread};
use crate::lab::machine::cores;
use crate::lab::redis::cpu_of;

/// What a trial is called when it runs in namespaces.
pub const KIND: &str = "argus";
/// Requests of a flood under way at any time: a socket's buffer holds them all.
const UNDER_WAY: u64 = 60;
/// Records for each collection of a flood.
const RECORDS_A_COLLECTION: u64 = 4;
/// Rounds between collections, which are not measured.
const ROUNDS_A_COLLECTION: u64 = 32;
/// Of requests that are measured, so many more warm up.
const WARM_UP_SHARE: u32 = 10;
/// As [`manxdb_witness::UserCarrier`] names its thread.
const THREAD: &str = "witness";

/// Runs a trial, wherever this machine lets it.
///
/// # Errors
/// What failed, but for what this machine lacks: that is an outcome.
pub fn run(trial: &Trial) -> Result<Outcome, String> {
    let in_kernel = match trial.answerer {
        Answerer::Nobody => false,
        Answerer::Witness(carrier) => carrier != Carrier::User,
    };
    match namespace::may() {
        Ok(()) => namespace::within(KIND, trial),
        Err(why) if in_kernel => Ok(lacking(why)),
        Err(_) => here(trial),
    }
}

fn lacking(why: String) -> Outcome {
    Outcome {
        lacking: Some(why),
        ..Outcome::default()
    }
}

/// Runs a trial in the namespaces of this process.
///
/// # Errors
/// What failed, but for what this machine lacks.
pub fn here(trial: &Trial) -> Result<Outcome, String> {
    // Threads that begin here stay on the witnesses' core.
    stay_on(cores() - 1);
    let busy = trial.busy.then(Busy::begin);
    let bench = match Bench::new(trial) {
        Ok(bench) => bench,
        Err(why) => return Ok(lacking(why)),
    };
    stay_on(0);
    let mut client = Client {
        bench: &bench,
        next: 1,
        taken: Taken::default(),
    };
    let outcome = match trial.pace {
        Pace::Flood => client.flood(trial),
        Pace::Rounds => client.rounds(trial),
    };
    drop(busy);
    outcome
}

/// Without the right to choose it stays anywhere.
fn stay_on(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    let _ = sched_setaffinity(None, &set);
}

/// Threads that compete for the core of who began them, until they are dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn begin() -> Self {
        let stops = Arc::new(AtomicBool::new(false));
        for _ in 0..cores() {
            let stops = Arc::clone(&stops);
            std::thread::spawn(move || {
                while !stops.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(stops)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What witnesses answered.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    answered: u64,
    accepted: u64,
}

struct Client<'a> {
    bench: &'a Bench,
    /// The number of the next record.
    next: u64,
    taken: Taken,
}

impl Client<'_> {
    fn rounds(&mut self, trial: &Trial) -> Result<Outcome, String> {
        let mut took = Histogram::default();
        for _ in 0..=trial.requests / WARM_UP_SHARE {
            self.round()?;
        }
        self.taken = Taken::default();
        let (began, used) = (Instant::now(), cpu_of(std::process::id())?);
        for _ in 0..trial.requests {
            took.add(self.round()?);
            if self.next.is_multiple_of(ROUNDS_A_COLLECTION) {
                self.collect()?;
            }
        }
        Ok(Outcome {
            lacking: None,
            answered: self.taken.answered,
            accepted: self.taken.accepted,
            seconds: began.elapsed().as_secs_f64(),
            rounds: spread(&took),
            all_cpu: cpu_of(std::process::id())? - used,
            witness_cpu: 0.0,
        })
    }

    /// One record to all witnesses; nanoseconds until all have answered.
    fn round(&mut self) -> Result<u64, String> {
        let datagram = record(self.next);
        self.next += 1;
        let mut answer = [0; 2_048];
        let mut lengths = [0; 8];
        let mut answers = [[0; 128]; 8];
        let began = Instant::now();
        for socket in &self.bench.sockets {
            send(socket, &datagram)?;
        }
        let from = self.answering();
        for (place, socket) in from.iter().enumerate() {
            let Some(length) = receive(socket, &mut answer)? else {
                return Err("a witness does not answer".to_owned());
            };
            if let (Some(known), Some(kept)) = (lengths.get_mut(place), answers.get_mut(place)) {
                *known = length.min(kept.len());
                kept[..*known].copy_from_slice(&answer[..*known]);
            }
        }
        let took = began.elapsed();
        for (length, answer) in lengths.iter().zip(&answers).take(from.len()) {
            self.take(&answer[..*length]);
        }
        Ok(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Where answers come in.
    fn answering(&self) -> &[std::net::UdpSocket] {
        if self.bench.own.is_empty() {
            &self.bench.sockets
        } else {
            &self.bench.own
        }
    }

    /// Counts an answer; of nobody's, that it came.
    fn take(&mut self, answer: &[u8]) {
        self.taken.answered += 1;
        let is_accepted = self.bench.own.is_empty() && status(answer) == Some(Status::Accepted);
        self.taken.accepted += u64::from(is_accepted || !self.bench.own.is_empty());
    }

    /// Frees the slots of the last records.
    fn collect(&mut self) -> Result<(), String> {
        if !self.bench.own.is_empty() {
            return Ok(());
        }
        let first = self.next.saturating_sub(ROUNDS_A_COLLECTION).max(1);
        let datagram = collection(first..self.next);
        let mut answer = [0; 2_048];
        for socket in &self.bench.sockets {
            send(socket, &datagram)?;
            if receive(socket, &mut answer)?.is_none() {
                return Err("a collection is not answered".to_owned());
            }
        }
        Ok(())
    }

    fn flood(&mut self, trial: &Trial) -> Result<Outcome, String> {
        let clock = self.bench.clock()?;
        self.flood_of(u64::from(trial.requests / WARM_UP_SHARE))?;
        self.taken = Taken::default();
        let own = |clock: &Option<ProgramClock>| own_cpu(clock.as_ref());
        let (began, used, own_used) = (Instant::now(), cpu_of(std::process::id())?, own(&clock)?);
        self.flood_of(trial.requests.into())?;
        Ok(Outcome {
            lacking: None,
            answered: self.taken.answered,
            accepted: self.taken.accepted,
            seconds: began.elapsed().as_secs_f64(),
            rounds: crate::lab::curp::trial::Spread::default(),
            all_cpu: cpu_of(std::process::id())? - used,
            witness_cpu: own(&clock)? - own_used,
        })
    }

    /// Sends a burst and takes all of its answers, again and again.
    fn flood_of(&mut self, requests: u64) -> Result<(), String> {
        let (mut left, mut answer) = (requests, [0; 2_048]);
        while left > 0 {
            let burst = UNDER_WAY.min(left);
            let datagrams: Vec<Vec<u8>> = (0..burst).map(|place| self.of_burst(place)).collect();
            for datagram in &datagrams {
                let Some(socket) = self.bench.sockets.first() else {
                    return Err("there is no witness".to_owned());
                };
                send(socket, datagram)?;
            }
            for _ in 0..burst {
                let Some(socket) = self.answering().first() else {
                    return Err("there is no witness".to_owned());
                };
                let Some(length) = receive(socket, &mut answer)? else {
                    return Err("a witness does not answer".to_owned());
                };
                self.take(&answer[..length]);
            }
            left -= burst;
        }
        Ok(())
    }

    /// Four records, then the collection of the four before them.
    fn of_burst(&mut self, place: u64) -> Vec<u8> {
        if place % (RECORDS_A_COLLECTION + 1) == RECORDS_A_COLLECTION {
            let first = self.next.saturating_sub(RECORDS_A_COLLECTION).max(1);
            return collection(first..self.next);
        }
        self.next += 1;
        record(self.next - 1)
    }
}

fn send(socket: &std::net::UdpSocket, datagram: &[u8]) -> Result<(), String> {
    let sent = socket.send(datagram);
    sent.map(|_| ())
        .map_err(|error| format!("a record was not sent: {error}"))
}

/// CPU seconds of the program in the kernel, or of the thread of a witness in this process.
#[allow(clippy::cast_precision_loss)] // far below 2^53
fn own_cpu(clock: Option<&ProgramClock>) -> Result<f64, String> {
    if let Some(clock) = clock {
        let ProgramTime { nanos, .. } = clock.read().map_err(|error| error.to_string())?;
        return Ok(nanos as f64 / 1e9);
    }
    let tasks = fs::read_dir("/proc/self/task").map_err(|error| error.to_string())?;
    let mut nanos = 0;
    for task in tasks.filter_map(Result::ok) {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if name.trim() != THREAD {
            continue;
        }
        let used = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        let used = used.split_whitespace().next();
        nanos += used.and_then(|used| used.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(nanos as f64 / 1e9)
}
