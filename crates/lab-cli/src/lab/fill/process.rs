//! A process of a run: started in its group, watched, ended.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use manxdb::process::program_beside;

use super::cgroup::{Group, Quotas};
use crate::bench::cpu_of;
use crate::cluster::SERVER;

/// Between two looks at a process or its log.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A process that is not up by then will not be.
const START_PATIENCE: Duration = Duration::from_secs(60);
/// How much of a log is told of a process that failed.
const TAIL: usize = 2_000;

/// The program that carries out a command: loads are this one's, roles of a service the server's.
fn program_of(arguments: &[String]) -> std::io::Result<PathBuf> {
    match arguments.first().map(String::as_str) {
        Some("bench") => std::env::current_exe(),
        _ => program_beside(SERVER),
    }
}

/// A process; killed when this is dropped.
pub struct Process {
    name: String,
    child: Child,
    directory: PathBuf,
    /// CPU that it had used when it was up.
    used: Duration,
    // Behind the process: a group goes when it is empty.
    _group: Option<Group>,
}

impl Process {
    /// Starts the program that carries out `arguments`; what it says goes to files of its name.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn start(
        name: &str,
        directory: &Path,
        arguments: &[String],
        quotas: Quotas,
        cpus: Option<f64>,
    ) -> Result<Self, String> {
        let cannot = |error: std::io::Error| format!("cannot start {name}: {error}");
        let program = program_of(arguments).map_err(cannot)?;
        let group = cpus.and_then(|cpus| Group::make(quotas, name, cpus));
        let mut command = match &group {
            Some(group) => group.command(&program),
            None => Command::new(&program),
        };
        command.args(arguments);
        Self::spawn_in(group, name, directory, command)
    }

    /// Starts any program; what it says goes to files of its name.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn spawn(name: &str, directory: &Path, command: Command) -> Result<Self, String> {
        Self::spawn_in(None, name, directory, command)
    }

    fn spawn_in(
        group: Option<Group>,
        name: &str,
        directory: &Path,
        mut command: Command,
    ) -> Result<Self, String> {
        let cannot = |error: std::io::Error| format!("cannot start {name}: {error}");
        for (variable, _) in std::env::vars_os() {
            // Settings of whoever runs the lab are none of these processes.
            if variable.to_string_lossy().starts_with("MANXDB_") {
                command.env_remove(variable);
            }
        }
        let file = |end: &str| File::create(directory.join(format!("{name}.{end}")));
        let child = command
            .stdin(Stdio::null())
            .stdout(file("out").map_err(cannot)?)
            .stderr(file("log").map_err(cannot)?)
            .spawn()
            .map_err(cannot)?;
        Ok(Self {
            name: name.to_owned(),
            child,
            directory: directory.to_owned(),
            used: Duration::ZERO,
            _group: group,
        })
    }

    /// Its number in the system.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn text(&self, end: &str) -> String {
        let path = self.directory.join(format!("{}.{end}", self.name));
        let bytes = std::fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What it printed.
    pub fn printed(&self) -> String {
        self.text("out")
    }

    /// Waits until its log has `words`; what stands behind them on that line.
    ///
    /// # Errors
    /// It ended before, or never said it.
    pub fn logs(&mut self, words: &str) -> Result<String, String> {
        self.writes("log", words)
    }

    /// The same of what it prints.
    ///
    /// # Errors
    /// It ended before, or never said it.
    pub fn prints(&mut self, words: &str) -> Result<String, String> {
        self.writes("out", words)
    }

    fn writes(&mut self, end: &str, words: &str) -> Result<String, String> {
        let began = Instant::now();
        loop {
            let log = self.text(end);
            let mut lines = log.lines();
            if let Some((_, rest)) = lines.find_map(|line| line.split_once(words)) {
                return Ok(rest.to_owned());
            }
            if let Some(status) = self.ended()? {
                return Err(self.failed(&format!("ended early, {status}")));
            }
            if began.elapsed() > START_PATIENCE {
                return Err(self.failed(&format!("never said '{words}'")));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// The system does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        let name = &self.name;
        self.child
            .try_wait()
            .map_err(|error| format!("cannot wait for {name}: {error}"))
    }

    /// That it failed, with the end of its log.
    pub fn failed(&self, how: &str) -> String {
        let log = self.text("log");
        let from = log.len().saturating_sub(TAIL);
        let tail = log.get(from..).unwrap_or(&log);
        format!("{} {how}:\n{}", self.name, tail.trim_end())
    }

    /// It is up: CPU is counted from now on.
    pub fn is_up(&mut self) {
        self.used = self.cpu_so_far();
    }

    fn cpu_so_far(&self) -> Duration {
        cpu_of(Some(self.child.id())).unwrap_or_default()
    }

    /// CPU seconds since it was up.
    pub fn cpu(&self) -> f64 {
        self.cpu_so_far().saturating_sub(self.used).as_secs_f64()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it has ended by itself
        let _ = self.child.wait();
    }
}

/// Waits until all have ended well.
///
/// # Errors
/// The first that failed, or that nothing ended for `patience`.
pub fn all_end(processes: &mut [Process], patience: Duration) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let mut running = None;
        for process in processes.iter_mut() {
            match process.ended()? {
                Some(status) if status.success() => {}
                Some(status) => return Err(process.failed(&format!("failed, {status}"))),
                None => running = Some(&*process),
            }
        }
        let Some(running) = running else {
            return Ok(());
        };
        if began.elapsed() > patience {
            return Err(running.failed(&format!("still runs after {} s", patience.as_secs())));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
