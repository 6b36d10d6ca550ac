//! Runs a trial: servers are started, filled one after the other, and take turns.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::bisect::largest;
use super::outcome::{FlatOut, Memory, Outcome, Ran, Site, Spread};
use super::servers::{Programs, Server};
use super::system::System;
use super::trial::{KEPT, PAGES_AT_ONE, Probe, Rate, SHARE, Trial};
use crate::bench::Times;

/// Connections of a client that is never idle.
const FLAT_OUT_CONNECTIONS: u16 = 8;
/// How much of what a failing client says is told.
const TAIL: usize = 1_000;

/// What the client prints of a run, as far as it is read.
#[derive(Deserialize)]
struct Printed {
    seconds: f64,
    pages: u64,
    pages_per_second: f64,
    server_cpu_seconds: Option<f64>,
    client_cpu_seconds: Option<f64>,
    failures: BTreeMap<String, u64>,
    statement: BTreeMap<String, PrintedTimes>,
    page_micros: BTreeMap<String, Vec<u32>>,
    server: PrintedServer,
    answer_bytes: Option<PrintedAnswers>,
}

#[derive(Deserialize)]
struct PrintedTimes {
    count: u64,
    p50: f64,
    p95: f64,
    p99: f64,
}

#[derive(Deserialize)]
struct PrintedServer {
    version: String,
    table_bytes: u64,
}

#[derive(Deserialize)]
struct PrintedAnswers {
    all: u64,
    of_work: u64,
}

/// Runs a trial in a directory of its own, which is gone afterwards; `progress` hears which share of
/// it is done.
///
/// # Errors
/// What failed: a server, a client, or a single page.
pub fn run(trial: &Trial, progress: &mut dyn FnMut(f64)) -> Result<Outcome, String> {
    let place = tempfile::tempdir().map_err(|error| format!("a directory: {error}"))?;
    let (systems, missing) = look(&trial.systems);
    let servers = Server::start_all(systems, place.path(), trial.cache_mib)?;
    let mut all: Vec<Turn> = servers
        .into_iter()
        .map(|server| Turn::new(server, trial))
        .collect();
    progress(0.1);
    for turn in &mut all {
        turn.fill(trial)?;
    }
    progress(0.3);
    let rate = rate(trial, &mut all)?;
    progress(0.5);
    for number in 0..trial.turns {
        let seed = trial.seed.wrapping_mul(1_000) + u64::from(number);
        // Forwards, then backwards: nobody is always first.
        let mut order: Vec<&mut Turn> = all.iter_mut().collect();
        if number % 2 == 1 {
            order.reverse();
        }
        for turn in order {
            turn.serve(trial, rate, seed)?;
        }
        progress(0.5 + 0.5 * f64::from(number + 1) / f64::from(trial.turns.max(1)));
    }
    let mut ran = all
        .into_iter()
        .map(|turn| Ok((turn.server.system, turn.end()?)));
    let mut ran: BTreeMap<System, Ran> = ran.by_ref().collect::<Result<_, String>>()?;
    let site = |system: &System| Site {
        system: *system,
        missing: missing.get(system).cloned(),
        ran: ran.remove(system),
    };
    Ok(Outcome {
        rate,
        sites: trial.systems.iter().map(site).collect(),
    })
}

/// Systems that this machine has, and what is missing of the others.
fn look(systems: &[System]) -> (Vec<(System, Programs)>, BTreeMap<System, String>) {
    let (mut there, mut missing) = (Vec::new(), BTreeMap::new());
    for system in systems {
        match Programs::find(*system) {
            Ok(programs) => there.push((*system, programs)),
            Err(what) => {
                missing.insert(*system, what);
            }
        }
    }
    (there, missing)
}

/// Pages that shall arrive each second; what each server does flat out and keeps up with is measured
/// for it where the trial says so.
fn rate(trial: &Trial, all: &mut [Turn]) -> Result<f64, String> {
    if trial.flat_out_seconds > 0.0 {
        for turn in all.iter_mut() {
            turn.flat_out(trial)?;
        }
    }
    match trial.rate {
        Rate::Given(requests) => Ok(requests * PAGES_AT_ONE),
        Rate::Bisected(probe) => bisected(trial, probe, all),
        Rate::OfLargest(probe) => {
            let sweep = trial.sweep();
            let known = || FOUND.lock().unwrap_or_else(PoisonError::into_inner);
            let before = known().get(&sweep).copied();
            if let Some(rate) = before {
                return Ok(rate);
            }
            let rate = bisected(trial, probe, all)?;
            known().insert(sweep, rate);
            Ok(rate)
        }
    }
}

/// Rates that trials of this process have found for their sweeps.
static FOUND: Mutex<BTreeMap<String, f64>> = Mutex::new(BTreeMap::new());

/// A share of what the slowest keeps up with, or as many pages as tell something of a system: on a
/// machine that is slow for a while no page might arrive in a short trial. That such a rate is too
/// high is seen in the share of pages that are served as they arrive.
fn bisected(trial: &Trial, probe: Probe, all: &mut [Turn]) -> Result<f64, String> {
    let mut slowest = f64::INFINITY;
    for turn in all.iter_mut() {
        let flat_out = turn.flat_out(trial)?;
        let most = largest(flat_out, probe, |rate| {
            let printed = turn.client(
                trial,
                trial.seed,
                &Load::arriving(trial, rate, probe.seconds),
            )?;
            Ok::<_, String>(probe.seconds / printed.seconds >= KEPT)
        })?;
        turn.ran.keeps_up = Some(most);
        slowest = slowest.min(most);
    }
    if slowest.is_finite() {
        Ok((slowest * SHARE).max(PAGES_LEAST / trial.seconds))
    } else {
        Err("no system can be run on this machine".to_owned())
    }
}

/// Pages that arrive in a trial at least, on average.
const PAGES_LEAST: f64 = 20.0;

/// What a client is told to do.
struct Load {
    arguments: Vec<String>,
}

impl Load {
    fn new(connections: u16, seconds: f64, warm_up: f64) -> Self {
        let words = [
            ("--connections", connections.to_string()),
            ("--seconds", seconds.to_string()),
            ("--warm-up", warm_up.to_string()),
        ];
        let words = words.into_iter();
        Self {
            arguments: words
                .flat_map(|(flag, value)| [flag.to_owned(), value])
                .collect(),
        }
    }

    fn arriving(trial: &Trial, rate: f64, seconds: f64) -> Self {
        // As long as it takes until tables and plans are in memory, where there is time for it.
        let mut load = Self::new(trial.connections, seconds, (seconds / 4.0).min(2.0));
        load.arguments
            .extend(["--rate".to_owned(), rate.to_string()]);
        load
    }
}

/// A server and what came of it so far.
struct Turn {
    server: Server,
    ran: Ran,
    times: BTreeMap<String, Times>,
    server_cpu: f64,
    client_cpu: f64,
}

impl Turn {
    fn new(server: Server, trial: &Trial) -> Self {
        let notifications = trial.comparison.shows(server.system);
        Self {
            server,
            ran: Ran {
                notifications,
                ..Ran::default()
            },
            times: BTreeMap::new(),
            server_cpu: 0.0,
            client_cpu: 0.0,
        }
    }

    fn fill(&mut self, trial: &Trial) -> Result<(), String> {
        self.ran.memory.empty = self.server.resident()?;
        let mut command = self.bench(trial, "fill")?;
        command.args(["--inflight", &trial.inflight.to_string()]);
        command.args(["--seed", &trial.seed.to_string()]);
        if let Some(engine) = self.server.system.engine() {
            command.args(["--engine", engine]);
        }
        if self.server.system.has_owners() {
            command.arg("--annotated");
        }
        if self.server.system.has_views() {
            command.arg("--views");
        }
        let began = Instant::now();
        self.output(command)?;
        self.ran.fill_seconds = began.elapsed().as_secs_f64();
        self.ran.memory.filled = self.server.resident()?;
        self.ran.memory.disk = self.server.disk()?;
        Ok(())
    }

    /// What the server does when it is never idle, measured once.
    fn flat_out(&mut self, trial: &Trial) -> Result<f64, String> {
        if let Some(known) = self.ran.flat_out {
            return Ok(known.rate);
        }
        let seconds = trial.flat_out_seconds;
        let load = Load::new(FLAT_OUT_CONNECTIONS, seconds, seconds / 4.0);
        let printed = self.client(trial, trial.seed, &load)?;
        let found = FlatOut {
            rate: printed.pages_per_second,
            cpu_us: each_us(printed.server_cpu_seconds.unwrap_or(0.0), printed.pages),
        };
        self.ran.flat_out = Some(found);
        Ok(found.rate)
    }

    /// Pages arrive, for one turn.
    fn serve(&mut self, trial: &Trial, rate: f64, seed: u64) -> Result<(), String> {
        let seconds = trial.seconds / f64::from(trial.turns.max(1));
        let mut load = Load::arriving(trial, rate, seconds);
        if trial.answers {
            load.arguments.push("--answers".to_owned());
        }
        let printed = self.client(trial, seed, &load)?;
        let ran = &mut self.ran;
        ran.served += printed.pages;
        ran.seconds += seconds;
        ran.late_seconds += (printed.seconds - seconds).max(0.0);
        self.server_cpu += printed.server_cpu_seconds.unwrap_or(0.0);
        self.client_cpu += printed.client_cpu_seconds.unwrap_or(0.0);
        for (page, micros) in printed.page_micros {
            self.times.entry(page).or_default().extend(micros);
        }
        let notification = printed.statement.get("notifications");
        ran.notification = notification.map(|times| Spread {
            count: times.count,
            p50: times.p50 / 1e3,
            p95: times.p95 / 1e3,
            p99: times.p99 / 1e3,
        });
        ran.version = printed.server.version;
        let Memory {
            tables,
            answers,
            answers_of_work,
            ..
        } = &mut ran.memory;
        *tables = printed.server.table_bytes;
        if let Some(bytes) = printed.answer_bytes {
            // Each turn's client has a cache of its own; the larger one has seen more pages.
            *answers = bytes.all.max(*answers);
            *answers_of_work = bytes.of_work.max(*answers_of_work);
        }
        Ok(())
    }

    fn end(mut self) -> Result<Ran, String> {
        if self.ran.served == 0 {
            let title = self.server.system.title();
            return Err(format!("{title}: not a single page arrived"));
        }
        self.ran.memory.loaded = self.server.resident()?;
        self.ran.cpu_us = each_us(self.server_cpu, self.ran.served);
        self.ran.client_cpu_us = each_us(self.client_cpu, self.ran.served);
        let pages = self.times.into_iter();
        self.ran.pages = pages.map(|(page, times)| (page, spread(&times))).collect();
        Ok(self.ran)
    }

    /// A client's run, in a process of its own. One page that fails is a failure of all.
    fn client(&self, trial: &Trial, seed: u64, load: &Load) -> Result<Printed, String> {
        let mut command = self.bench(trial, "run")?;
        command.args(["--json", "--details", "--seed", &seed.to_string()]);
        command.args(["--server-pid", &self.server.id().to_string()]);
        if self.ran.notifications {
            command.arg("--notifications");
        }
        command.args(&load.arguments);
        let said = self.output(command)?;
        let printed: Printed = read(&said)?;
        let title = self.server.system.title();
        if let Some((message, count)) = printed.failures.first_key_value() {
            return Err(format!("{title}: {count} pages failed: {message}"));
        }
        Ok(printed)
    }

    fn bench(&self, trial: &Trial, what: &str) -> Result<Command, String> {
        let program = std::env::current_exe();
        let program: PathBuf = program.map_err(|error| format!("this program: {error}"))?;
        let mut command = Command::new(program);
        command.args(["bench", "lobsters", what, "--url", &self.server.url()]);
        command.args(["--scale", &trial.site.to_string()]);
        command.env_remove("MANXDB_PASSWORD");
        Ok(command)
    }

    /// What a command prints when it ends well.
    fn output(&self, mut command: Command) -> Result<String, String> {
        let title = self.server.system.title();
        let done = command.stdin(Stdio::null()).output();
        let done = done.map_err(|error| format!("{title}: its client does not start: {error}"))?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&done.stderr);
        let tail = said.get(said.len().saturating_sub(TAIL)..).unwrap_or(&said);
        Err(format!("{title}: {}", tail.trim()))
    }
}

fn read<T: DeserializeOwned>(said: &str) -> Result<T, String> {
    let read = serde_json::from_str(said);
    read.map_err(|error| format!("the client printed something else: {error}"))
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn each_us(seconds: f64, pages: u64) -> f64 {
    seconds * 1e6 / pages.max(1) as f64
}

fn spread(times: &Times) -> Spread {
    let [p50, p95, p99] = times
        .percentiles([50, 95, 99])
        .map(|micros| f64::from(micros) / 1e3);
    Spread {
        count: times.count() as u64,
        p50,
        p95,
        p99,
    }
}
