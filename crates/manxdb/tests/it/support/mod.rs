//! Servers as child processes.
#![allow(clippy::disallowed_methods, dead_code)]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use mysql::{Conn, OptsBuilder};
use rustix::process::{Pid, Signal, kill_process};

pub const PASSWORD: &str = "s3cret";

/// The binary, without the environment of whoever runs the tests.
pub fn manxdb() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manxdb"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MANXDB_") {
            command.env_remove(name);
        }
    }
    command.current_dir(std::env::temp_dir());
    command
}

/// Exit code, standard output and standard error.
pub fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let done = command.stdin(Stdio::null()).output().unwrap();
    (
        done.status.code(),
        String::from_utf8_lossy(&done.stdout).into_owned(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    )
}

/// A running server; killed on drop.
pub struct Server {
    child: Child,
    pub data: PathBuf,
    /// What it printed until it served.
    pub banner: String,
    pub mysql: String,
    pub admin: String,
}

impl Server {
    /// Serves `directory`/data with the password of the tests.
    pub fn start(directory: &Path) -> Self {
        Self::start_with(directory, &[], Some(PASSWORD))
    }

    pub fn start_with(directory: &Path, flags: &[&str], password: Option<&str>) -> Self {
        let data = directory.join("data");
        let mut command = manxdb();
        command.args(["serve", "--mysql-listen", "127.0.0.1:0"]);
        command.args(["--admin-listen", "127.0.0.1:0", "--log", "warn", "--data"]);
        command.arg(&data).args(flags);
        if let Some(password) = password {
            command.env("MANXDB_ROOT_PASSWORD", password);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let (banner, mysql, admin) = read_banner(BufReader::new(out));
        Self {
            child,
            data,
            banner,
            mysql,
            admin,
        }
    }

    pub fn mysql_port(&self) -> String {
        self.mysql.rsplit(':').next().unwrap().to_owned()
    }

    pub fn connect(&self, password: &str) -> mysql::Result<Conn> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.mysql_port().parse().unwrap())
            .user(Some("root"))
            .pass(Some(password))
            .prefer_socket(false);
        Conn::new(options)
    }

    /// The password printed on a first start.
    pub fn printed_password(&self) -> Option<String> {
        let mut lines = self.banner.lines();
        lines.find(|line| line.contains("the password of root is"))?;
        lines.nth(1).map(|line| line.trim().to_owned())
    }

    /// Sends a signal and waits for the exit code.
    pub fn stop(mut self, signal: Signal) -> Option<i32> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads up to the end of what a server prints when it serves.
fn read_banner(mut out: BufReader<ChildStdout>) -> (String, String, String) {
    let mut banner = String::new();
    let (mut mysql, mut admin) = (String::new(), String::new());
    while admin.is_empty() {
        let mut line = String::new();
        assert!(out.read_line(&mut line).unwrap() > 0, "no server: {banner}");
        if let Some(address) = line.trim().strip_prefix("MySQL  ") {
            address.clone_into(&mut mysql);
        }
        if let Some(address) = line.trim().strip_prefix("admin  http://") {
            address.trim_end_matches('/').clone_into(&mut admin);
        }
        banner.push_str(&line);
    }
    // What a first start says was written in the same call, and is buffered here.
    banner.push_str(&String::from_utf8_lossy(out.buffer()));
    (banner, mysql, admin)
}
