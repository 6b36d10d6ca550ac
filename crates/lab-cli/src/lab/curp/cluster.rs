//! A cluster's processes on this machine, and what the system says of them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use manxdb::cluster::curp;
use manxdb::cluster::file::{ClusterFile, NAME};
use manxdb_curp_client::Cluster;
use manxdb_net::Status;

use super::trial::{Carrier, Cpu, System, Trial};
use crate::cluster::{ask, note};
use crate::lab::redis::cpu_of;

/// A process that is silent for so long is replaced: longer than a busy machine lets one wait.
const SUSPECT_MS: &str = "3000";
/// Between the ports of nodes and those of Redis clients, which nobody asks here.
const CLIENTS_AFTER: u16 = 20;
/// Where ports of clusters are looked for.
const PORTS: std::ops::Range<u16> = 26_000..31_000;

/// What CPU, messages and bytes the processes have used so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// Seconds, without those of who asks.
    pub cpu: Cpu,
    /// Messages sent.
    pub messages: u64,
    /// Bytes sent.
    pub bytes: u64,
}

/// Processes of a cluster; ended when this is dropped.
pub struct Processes {
    up: Child,
    /// What it says later goes here: it ends when nobody can hear it.
    _said: BufReader<ChildStdout>,
    file: ClusterFile,
    /// The process of each node, in the order of the file.
    ids: Vec<u32>,
    roles: Roles,
}

#[derive(Debug, Default)]
struct Roles {
    master: Vec<usize>,
    backups: Vec<usize>,
    witnesses: Vec<usize>,
}

impl Processes {
    /// Starts the cluster of a trial over an empty directory.
    ///
    /// # Errors
    /// What it says when it cannot start.
    pub fn start(trial: &Trial, directory: &Path) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let base = free_ports()?;
        let carrier = match trial.system {
            System::Curp { carrier, .. } => carrier,
            _ => Carrier::User,
        };
        let mut command = Command::new(program);
        command.args(["cluster", "up", "curp", "--spares", "0", "--proxies", "0"]);
        command.args(["--suspect-ms", SUSPECT_MS, "--carrier", carrier.name()]);
        for (flag, number) in [
            ("--f", trial.system.faults()),
            ("--lan-us", trial.lan_us),
            ("--base-port", base.into()),
            ("--redis-port", (base + CLIENTS_AFTER).into()),
        ] {
            command.arg(flag).arg(number.to_string());
        }
        let started = command
            .arg("--data")
            .arg(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut up = started.map_err(|error| format!("cannot start a cluster: {error}"))?;
        let said = up.stdout.take().and_then(|said| {
            let mut said = BufReader::new(said);
            let mut lines = said.by_ref().lines().map_while(Result::ok);
            let is_up = lines.any(|line| line.starts_with("stop it:"));
            is_up.then_some(said)
        });
        let Some(said) = said else {
            let mut why = String::new();
            if let Some(mut said) = up.stderr.take() {
                let _ = said.read_to_string(&mut why);
            }
            let _ = up.wait();
            return Err(why.trim().trim_start_matches("manxdb: ").to_owned());
        };
        let mut this = Self {
            up,
            _said: said,
            file: read(directory)?,
            ids: Vec::new(),
            roles: Roles::default(),
        };
        this.learn_roles()?;
        Ok(this)
    }

    fn learn_roles(&mut self) -> Result<(), String> {
        let answers = self.answers()?;
        self.ids = answers.iter().map(|status| status.process).collect();
        let told = |name: &str| -> Vec<usize> {
            let told = answers.first().and_then(|status| note(status, name));
            let numbers = told.unwrap_or_default().split(' ');
            numbers.filter_map(|number| number.parse().ok()).collect()
        };
        self.roles = Roles {
            master: told("master"),
            backups: told("backups"),
            witnesses: told("witnesses"),
        };
        if self.roles.master.is_empty() {
            return Err("the cluster has no master".to_owned());
        }
        Ok(())
    }

    /// What a client has to know.
    pub fn cluster(&self) -> Cluster {
        curp::cluster(&self.file)
    }

    fn answers(&self) -> Result<Vec<Status>, String> {
        let nodes = self.file.nodes.iter();
        let answers = nodes.map(|node| ask(&self.file, node).map_err(|error| error.to_string()));
        answers.collect()
    }

    /// What they have used so far, without who asks.
    ///
    /// # Errors
    /// One is gone.
    pub fn used(&self) -> Result<Used, String> {
        let of = |nodes: &[usize]| -> Result<f64, String> {
            let ids = nodes.iter().filter_map(|node| self.ids.get(*node));
            ids.map(|id| cpu_of(*id)).sum()
        };
        let cpu = Cpu {
            master: of(&self.roles.master)?,
            backups: of(&self.roles.backups)?,
            witnesses: of(&self.roles.witnesses)?,
            client: 0.0,
        };
        let (mut messages, mut bytes) = (0, 0);
        for status in self.answers()? {
            for (name, count) in &status.counters {
                if name.starts_with("sent ") {
                    messages += count;
                } else if name == "bytes sent" {
                    bytes += count;
                }
            }
        }
        Ok(Used {
            cpu,
            messages,
            bytes,
        })
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.up);
        // Nodes end with it, however it ends.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.up.wait();
    }
}

fn read(directory: &Path) -> Result<ClusterFile, String> {
    let read = ClusterFile::read(&directory.join(NAME));
    let (file, _) = read.map_err(|error| error.to_string())?;
    Ok(file)
}

/// The first of a row of ports that nobody has at the moment.
fn free_ports() -> Result<u16, String> {
    let own = u16::try_from(std::process::id() % 200).unwrap_or(0);
    let bases = PORTS.step_by(usize::from(CLIENTS_AFTER) * 2);
    let mut bases: Vec<u16> = bases.collect();
    let first = usize::from(own) % bases.len().max(1);
    bases.rotate_left(first);
    let is_free = |base: &u16| {
        let mut ports = *base..*base + CLIENTS_AFTER * 2;
        ports.all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
    };
    let found = bases.into_iter().find(is_free);
    found.ok_or_else(|| "no row of free ports for a cluster".to_owned())
}

/// Milliseconds that half of the fdatasync calls in a directory take at most, after an append each.
///
/// # Errors
/// The disk's.
pub fn fdatasync_ms(directory: &Path, calls: u32) -> Result<f64, String> {
    use std::io::Write as _;
    let failed = |error: std::io::Error| format!("measuring fdatasync: {error}");
    let mut file = fs::File::create(directory.join("fdatasync")).map_err(failed)?;
    let mut took = Vec::new();
    for _ in 0..calls {
        let began = std::time::Instant::now();
        file.write_all(&[b'x'; 120]).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    let middle = took.get(took.len() / 2).copied();
    middle.ok_or_else(|| "fdatasync was not measured".to_owned())
}
