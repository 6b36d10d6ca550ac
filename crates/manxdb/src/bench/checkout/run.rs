//! Starts the processes of a run, and adds up what they say.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use manxdb_rack::checkout::one_sided::{audit, load};
use manxdb_rack::checkout::{Books, published};
use serde::{Deserialize, Serialize};

use super::meet::{Meeting, plan, published as published_plan};
use super::part::{Bought, READY, by_mail, by_tcp};
use crate::bench::measure::cpu_of;
use crate::cli::{CheckoutShape, System};

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Checkouts that are committed.
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
    /// Checkouts a second.
    pub fn rate(&self) -> f64 {
        self.committed as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// Of a checkout, of all processes.
    pub fn cpu_us(&self) -> f64 {
        self.client_cpu_us() + self.server_cpu_us()
    }

    /// Of a checkout.
    pub fn client_cpu_us(&self) -> f64 {
        self.client_cpu * 1e6 / self.committed.max(1) as f64
    }

    /// Of a checkout.
    pub fn server_cpu_us(&self) -> f64 {
        self.server_cpu * 1e6 / self.committed.max(1) as f64
    }
}

/// A process of a run; it ends with this.
struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    name: String,
}

impl Process {
    fn start(
        part: &str,
        number: u16,
        directory: &Path,
        shape: &CheckoutShape,
    ) -> Result<Self, String> {
        let name = format!("{part} {number}");
        let cannot = |error: std::io::Error| format!("cannot start {name}: {error}");
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.args(["bench", "checkout-part", part, &number.to_string()]);
        command.arg("--directory").arg(directory);
        command.args(["--system", super::name(shape.system)]);
        let numbers = [
            ("--clients", u64::from(shape.clients)),
            ("--servers", u64::from(shape.servers)),
            ("--products", shape.products),
            ("--hot", shape.hot.unwrap_or(shape.products)),
            ("--versions", u64::from(shape.versions)),
            ("--logs", u64::from(shape.logs)),
            ("--seconds", u64::from(shape.seconds)),
            ("--orders", shape.orders),
            ("--seed", shape.seed),
        ];
        for (flag, number) in numbers {
            command.args([flag, &number.to_string()]);
        }
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

    fn line(&mut self) -> Result<String, String> {
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
        let input = self.child.stdin.as_mut().ok_or("it has no input")?;
        writeln!(input, "go").map_err(|error| format!("{}: {error}", self.name))
    }

    fn cpu(&self) -> f64 {
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

fn start_all(
    part: &str,
    count: u16,
    directory: &Path,
    shape: &CheckoutShape,
) -> Result<Vec<Process>, String> {
    let start = |number| Process::start(part, number, directory, shape);
    let mut all = (0..count).map(start).collect::<Result<Vec<_>, _>>()?;
    all.iter_mut().try_for_each(Process::ready)?;
    Ok(all)
}

/// Runs a load on a system, and checks the books.
///
/// # Errors
/// Sizes that cannot be, processes that fail, books that are wrong.
pub fn measure(shape: &CheckoutShape) -> Result<Outcome, String> {
    let plan = plan(shape)?;
    let directory = tempfile::tempdir().map_err(|error| format!("a directory: {error}"))?;
    let directory = directory.path();
    let meeting = Meeting::new(directory, shape);
    let last = shape.clients;
    let memories = || meeting.memories(u64::from(last)).map_err(text);
    let mut servers = Vec::new();
    match shape.system {
        System::Rsi | System::RsiSerializable => {
            servers.extend(start_all("memory", shape.servers, directory, shape)?);
            load(memories()?, plan).map_err(text)?;
        }
        System::RsiPublished => {
            servers.extend(start_all("memory", shape.servers, directory, shape)?);
            published::load(memories()?, published_plan(shape)).map_err(text)?;
        }
        System::TradSi | System::TwoSided => {
            servers.extend(start_all("resource", shape.servers, directory, shape)?);
            servers.extend(start_all("manager", 1, directory, shape)?);
        }
    }
    let mut clients = start_all("client", shape.clients, directory, shape)?;
    let cpu = |servers: &[Process]| -> f64 { servers.iter().map(Process::cpu).sum() };
    let used = cpu(&servers);
    clients.iter_mut().try_for_each(Process::go)?;
    let mut outcome = Outcome::default();
    for client in &mut clients {
        let line = client.line()?;
        let bought: Bought = serde_json::from_str(&line)
            .map_err(|error| format!("{} says '{line}': {error}", client.name))?;
        outcome.committed += bought.committed;
        outcome.aborted += bought.aborted;
        outcome.seconds = outcome.seconds.max(bought.seconds);
        outcome.client_cpu += bought.cpu_seconds;
        outcome.p50_us = outcome.p50_us.max(bought.p50_us);
        outcome.p99_us = outcome.p99_us.max(bought.p99_us);
    }
    outcome.server_cpu = cpu(&servers) - used;
    drop(clients);
    let found = match shape.system {
        System::Rsi | System::RsiSerializable => audit(memories()?, plan).map_err(text)?,
        System::RsiPublished => {
            published::audit(memories()?, published_plan(shape)).map_err(text)?
        }
        System::TradSi => books(by_tcp(&meeting).and_then(|mut shop| shop.audit()))?,
        System::TwoSided => books(by_mail(&meeting, last).and_then(|mut shop| shop.audit()))?,
    };
    let right = Books {
        sold: 3 * outcome.committed,
        orders: outcome.committed,
        locks: 0,
    };
    if found == right {
        Ok(outcome)
    } else {
        Err(format!("the books are wrong: {found:?}, not {right:?}"))
    }
}

fn books(audited: std::io::Result<(u64, u64)>) -> Result<Books, String> {
    let (sold, records) = audited.map_err(text)?;
    Ok(Books {
        sold,
        orders: records / 4,
        locks: 0,
    })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
