//! Servers of a run: each with a directory of its own, and every commit on disk before it is told.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use manxdb::process::program_beside;

use super::system::System;
use crate::cluster::SERVER;
use crate::lab::fill::process::{Process, all_end};

/// MariaDB's system tables are made within this time.
const INSTALL_PATIENCE: Duration = Duration::from_secs(300);
/// Ports that are tried: one that is free may be somebody's before a server takes it.
const PORTS_TRIED: usize = 5;
/// InnoDB's memory where tables are MyRocks'.
const OTHER_ENGINE_MIB: u32 = 16;
/// The master key of a vault whose rows are made up.
const MASTER_KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
/// MyRocks as MariaDB loads it.
const MYROCKS: &str = "ha_rocksdb.so";
/// Where MariaDB's plug-ins are, unless the environment names another directory.
const PLUGIN_DIRECTORIES: [&str; 3] = [
    "/usr/lib/mysql/plugin",
    "/usr/lib64/mysql/plugin",
    "/usr/lib64/mariadb/plugin",
];
/// The variable that names it.
const PLUGIN_VARIABLE: &str = "MARIADB_PLUGIN_DIR";
/// Where programs of servers are, besides PATH.
const PROGRAM_DIRECTORIES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/usr/libexec"];

/// What a system needs that this machine has.
pub enum Programs {
    /// The server's program.
    Manxdb(PathBuf),
    /// The server's, what makes its system tables, and where its engine is if it is a plug-in.
    Mariadb {
        server: PathBuf,
        install: PathBuf,
        plugins: Option<PathBuf>,
    },
}

impl Programs {
    /// Looks for those of a system.
    ///
    /// # Errors
    /// What is missing, and where it is to be had.
    pub fn find(system: System) -> Result<Self, String> {
        if system.is_manxdb() {
            let server = program_beside(SERVER).map_err(|error| error.to_string())?;
            let lost = || {
                let server = server.display();
                format!("{server} is missing: cargo build --release -p manxdb")
            };
            return server
                .exists()
                .then_some(Self::Manxdb(server.clone()))
                .ok_or_else(lost);
        }
        let need = |program: &str| {
            let lost = || format!("{program} is missing: install the package mariadb-server-core");
            find_program(program).ok_or_else(lost)
        };
        Ok(Self::Mariadb {
            server: need("mariadbd")?,
            install: need("mariadb-install-db")?,
            plugins: (system == System::Myrocks).then(find_plugins).transpose()?,
        })
    }
}

fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::split_paths(&path).collect::<Vec<_>>().into_iter();
    let mut all = named.chain(PROGRAM_DIRECTORIES.map(PathBuf::from));
    all.find_map(|directory| Some(directory.join(name)).filter(|file| file.is_file()))
}

/// The directory with MyRocks.
fn find_plugins() -> Result<PathBuf, String> {
    let named = std::env::var_os(PLUGIN_VARIABLE).map(PathBuf::from);
    let directories = match named {
        Some(directory) => vec![directory],
        None => PLUGIN_DIRECTORIES.map(PathBuf::from).into(),
    };
    let mut having = directories.iter().filter(|one| one.join(MYROCKS).is_file());
    having.next().cloned().ok_or_else(|| {
        let all: Vec<_> = directories.iter().map(|one| one.display().to_string()).collect();
        format!(
            "{MYROCKS} is not in {}: install the package mariadb-plugin-rocksdb, or name its directory \
             with {PLUGIN_VARIABLE}",
            all.join(", ")
        )
    })
}

/// A server that runs; it ends with this.
pub struct Server {
    /// Which system.
    pub system: System,
    process: Process,
    port: u16,
    data: PathBuf,
}

impl Server {
    /// Starts the servers of systems, each in a directory below `place`, with so much memory for
    /// what they read.
    ///
    /// # Errors
    /// Why one does not start.
    pub fn start_all(
        systems: Vec<(System, Programs)>,
        place: &Path,
        cache_mib: u32,
    ) -> Result<Vec<Self>, String> {
        let mut homes = Vec::new();
        let mut installing = Vec::new();
        for (system, programs) in systems {
            let home = Home::make(system, place)?;
            if let Programs::Mariadb { install, .. } = &programs {
                installing.push(Process::spawn("install", &home.0, home.install(install))?);
            }
            homes.push((system, programs, home));
        }
        all_end(&mut installing, INSTALL_PATIENCE)?;
        let start = |(system, programs, home): (System, Programs, Home)| match programs {
            Programs::Manxdb(server) => home.manxdb(system, &server, cache_mib),
            Programs::Mariadb {
                server, plugins, ..
            } => home.mariadb(system, &server, plugins.as_deref(), cache_mib),
        };
        homes.into_iter().map(start).collect()
    }

    /// Where clients find the site.
    pub fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/lobsters", self.port)
    }

    /// Its number in the system.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Bytes that it has in memory.
    ///
    /// # Errors
    /// It has ended.
    pub fn resident(&self) -> Result<u64, String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id()));
        let found = status.ok().and_then(|status| resident(&status));
        found.ok_or_else(|| self.process.failed("has ended"))
    }

    /// Bytes of files in its data directory.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn disk(&self) -> Result<u64, String> {
        size_of(&self.data).map_err(|error| format!("{}: {error}", self.data.display()))
    }
}

/// What the kernel's table of a process says that it has in memory, in bytes.
fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1_024)
}

/// Bytes of a file, or of all files in a directory and below; of those that go meanwhile, none.
fn size_of(path: &Path) -> std::io::Result<u64> {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(0);
    };
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    let sizes = fs::read_dir(path)?.map(|entry| size_of(&entry?.path()));
    sizes.sum()
}

/// The directory of a server: data, temporary files, socket and what it says.
struct Home(PathBuf);

impl Home {
    fn make(system: System, place: &Path) -> Result<Self, String> {
        let name = system.title().replace(' ', "-").to_lowercase();
        let home = Self(place.join(name));
        // MariaDB gives temporary tables names made of a process's number, and removes at its start
        // what others left: two servers that start at once need a directory each.
        for directory in [home.temporary(), home.data()] {
            fs::create_dir_all(&directory)
                .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        }
        Ok(home)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    fn temporary(&self) -> PathBuf {
        self.0.join("tmp")
    }

    /// Makes MariaDB's system tables.
    fn install(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .args(["--no-defaults", "--auth-root-authentication-method=normal"])
            .args(["--skip-test-db", "--skip-name-resolve"])
            .arg(flag("--datadir", self.data()))
            .env("TMPDIR", self.temporary());
        as_root(&mut command);
        command
    }

    fn mariadb(
        &self,
        system: System,
        program: &Path,
        plugins: Option<&Path>,
        cache_mib: u32,
    ) -> Result<Server, String> {
        let start = |port: u16| {
            let mut command = Command::new(program);
            command
                .args([
                    "--no-defaults",
                    "--bind-address=127.0.0.1",
                    "--skip-name-resolve",
                ])
                .args(["--skip-log-bin", "--innodb-flush-log-at-trx-commit=1"])
                .args(["--performance-schema=0", "--character-set-server=utf8mb4"])
                .args([
                    "--collation-server=utf8mb4_general_ci",
                    "--max-connections=500",
                ])
                .arg(format!("--port={port}"))
                .arg(flag("--datadir", self.data()))
                .arg(flag("--tmpdir", self.temporary()))
                .arg(flag("--socket", self.0.join("socket")))
                .arg(flag("--pid-file", self.0.join("pid")))
                .env("TMPDIR", self.temporary());
            let mut innodb_mib = cache_mib;
            if let Some(plugins) = plugins {
                innodb_mib = OTHER_ENGINE_MIB;
                command
                    .args(["--plugin-maturity=gamma", "--plugin-load-add=ha_rocksdb"])
                    .arg(flag("--plugin-dir", plugins))
                    .arg("--rocksdb-flush-log-at-trx-commit=1")
                    .arg(format!("--rocksdb-block-cache-size={cache_mib}M"));
            }
            command.arg(format!("--innodb-buffer-pool-size={innodb_mib}M"));
            as_root(&mut command);
            let mut process = Process::spawn("server", &self.0, command)?;
            process.logs("ready for connections")?;
            Ok::<_, String>(process)
        };
        let mut last = String::new();
        for _ in 0..PORTS_TRIED {
            let port = free_port()?;
            match start(port) {
                Ok(process) => return Ok(self.server(system, process, port)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn manxdb(&self, system: System, program: &Path, cache_mib: u32) -> Result<Server, String> {
        let mut command = Command::new(program);
        command
            .args([
                "serve",
                "--insecure",
                "--log",
                "warn",
                "--durability",
                "sync",
            ])
            .args([
                "--mysql-listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ])
            .arg("--data")
            .arg(self.data())
            .args(["--block-cache-mb", &cache_mib.to_string()]);
        if system.is_sealed() {
            self.seal(&mut command)?;
        }
        let mut process = Process::spawn("server", &self.0, command)?;
        let address = process.prints("MySQL  ")?;
        let port = address.trim().rsplit(':').next().unwrap_or_default();
        let port = port.parse();
        let port =
            port.map_err(|error| process.failed(&format!("listens at '{address}': {error}")))?;
        Ok(self.server(system, process, port))
    }

    /// Gives a server of ManxDB a vault and a master key.
    fn seal(&self, command: &mut Command) -> Result<(), String> {
        let [vault, mirror, key] =
            ["vault", "vault-mirror", "master-key"].map(|name| self.0.join(name));
        fs::write(&key, MASTER_KEY).map_err(|error| format!("{}: {error}", key.display()))?;
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&key, private)
            .map_err(|error| format!("{}: {error}", key.display()))?;
        command
            .arg(flag("--vault", vault))
            .arg(flag("--vault-mirror", mirror))
            .arg(flag("--master-key-file", key));
        Ok(())
    }

    fn server(&self, system: System, process: Process, port: u16) -> Server {
        Server {
            system,
            process,
            port,
            data: self.data(),
        }
    }
}

fn flag(name: &str, value: impl AsRef<OsStr>) -> std::ffi::OsString {
    let mut flag = std::ffi::OsString::from(name);
    flag.push("=");
    flag.push(value);
    flag
}

/// MariaDB runs as root only when it is told to.
fn as_root(command: &mut Command) {
    if rustix::process::geteuid().is_root() {
        command.arg("--user=root");
    }
}

/// A port that nobody has right now.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    let address = address.map_err(|error| format!("there is no free port: {error}"))?;
    Ok(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_in_memory_is_read_in_bytes() {
        let status = "VmPeak:\t   200 kB\nVmRSS:\t   100 kB\nRssAnon:\t 50 kB\n";
        assert_eq!(resident(status), Some(102_400));
        assert_eq!(resident("VmPeak:\t 200 kB\n"), None);
    }

    #[test]
    fn files_of_a_directory_and_below_are_added_up() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("below")).unwrap();
        fs::write(directory.path().join("one"), "123").unwrap();
        fs::write(directory.path().join("below/two"), "12").unwrap();
        assert_eq!(size_of(directory.path()).unwrap(), 5);
        assert_eq!(size_of(&directory.path().join("none")).unwrap(), 0);
    }
}
