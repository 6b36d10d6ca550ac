//! A real etcd for tests: one member or several, killed, started again, emptied. No product code links
//! it.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::missing_errors_doc,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and runs programs"
)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than a member takes to start; only a test that hangs meets it.
const LIMIT: Duration = Duration::from_secs(120);

/// Members that run until this is dropped, with what they keep.
#[derive(Debug)]
pub struct Etcd {
    directory: tempfile::TempDir,
    tls: Option<PathBuf>,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    client: u16,
    peer: u16,
    /// Without TLS, whatever the others speak.
    health: u16,
    child: Option<Child>,
}

/// The program: where the system has it, or where `scripts/setup.sh test` puts it.
fn program() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let fetched = cache.or_else(home).unwrap().join("manxdb/etcd/etcd");
    if fetched.exists() {
        return fetched;
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut programs = std::env::split_paths(&paths).map(|path| path.join("etcd"));
    let found = programs.find(|program| program.exists());
    found.unwrap_or_else(|| panic!("there is no etcd to test with: run scripts/setup.sh test"))
}

/// Ports that nobody listens on; somebody may take one before etcd does, which then does not start.
fn ports(count: usize) -> Vec<u16> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    listeners.iter().map(port).collect()
}

impl Etcd {
    /// As many members, without TLS, that answer.
    pub fn start(members: usize) -> Self {
        Self::start_with(members, None)
    }

    /// A member that speaks TLS with certificates at `PREFIX.ca`, `.cert` and `.key`, and asks for
    /// one.
    pub fn with_tls(prefix: &Path) -> Self {
        Self::start_with(1, Some(prefix.to_owned()))
    }

    fn start_with(members: usize, tls: Option<PathBuf>) -> Self {
        let ports = ports(3 * members);
        let member = |ports: &[u16]| Member {
            client: ports[0],
            peer: ports[1],
            health: ports[2],
            child: None,
        };
        let mut etcd = Self {
            directory: tempfile::tempdir().unwrap(),
            tls,
            members: ports.chunks(3).map(member).collect(),
        };
        for place in 0..members {
            etcd.spawn(place);
        }
        etcd.wait_until_healthy();
        etcd
    }

    fn data(&self, place: usize) -> PathBuf {
        self.directory.path().join(format!("member{place}"))
    }

    fn spawn(&mut self, place: usize) {
        let of =
            |place: usize, member: &Member| format!("m{place}=http://127.0.0.1:{}", member.peer);
        let members = self.members.iter().enumerate();
        let cluster: Vec<String> = members.map(|(place, one)| of(place, one)).collect();
        let (data, member) = (self.data(place), &mut self.members[place]);
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let url = |scheme: &str, port: u16| format!("{scheme}://127.0.0.1:{port}");
        let (client, peer) = (url(scheme, member.client), url("http", member.peer));
        let log = File::create(data.with_extension("log")).unwrap();
        let mut command = Command::new(program());
        command
            .args(["--name", &format!("m{place}")])
            .arg("--data-dir")
            .arg(data)
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-metrics-urls", &url("http", member.health)])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &cluster.join(",")])
            .args(["--logger", "zap", "--log-level", "warn"]);
        if let Some(prefix) = &self.tls {
            let file = |end: &str| prefix.with_extension(end);
            command.arg("--trusted-ca-file").arg(file("ca"));
            command.arg("--cert-file").arg(file("cert"));
            command.arg("--key-file").arg(file("key"));
            command.arg("--client-cert-auth");
        }
        let streams = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = streams.stderr(log).spawn();
        member.child = Some(child.unwrap());
    }

    fn wait_until_healthy(&self) {
        let alive = self.members.iter().filter(|member| member.child.is_some());
        for member in alive {
            let began = Instant::now();
            while !is_healthy(member.health) {
                assert!(began.elapsed() < LIMIT, "etcd is still not healthy");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// All members, for clients.
    pub fn members(&self) -> String {
        let address = |member: &Member| format!("127.0.0.1:{}", member.client);
        let members: Vec<String> = self.members.iter().map(address).collect();
        members.join(",")
    }

    /// `kill -9`.
    pub fn kill(&mut self, place: usize) {
        if let Some(mut child) = self.members[place].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Starts a member that was killed, on what it left.
    pub fn again(&mut self, place: usize) {
        self.spawn(place);
        self.wait_until_healthy();
    }

    /// Removes what a member has that was killed.
    pub fn forget(&self, place: usize) {
        std::fs::remove_dir_all(self.data(place)).unwrap();
    }

    /// From here on, only `root` with this password may do anything.
    pub fn ask_for_password(&self, password: &str) {
        let user = format!(r#"{{"name":"root","password":"{password}"}}"#);
        for (path, body) in [
            ("/v3/auth/user/add", user.as_str()),
            ("/v3/auth/role/add", r#"{"name":"root"}"#),
            ("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
            ("/v3/auth/enable", "{}"),
        ] {
            let said = ask(self.members[0].client, "POST", path, body).unwrap();
            assert!(said.starts_with("HTTP/1.1 200"), "{path}: {said}");
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for place in 0..self.members.len() {
            self.kill(place);
        }
    }
}

fn is_healthy(port: u16) -> bool {
    ask(port, "GET", "/health", "").is_some_and(|said| said.contains("true"))
}

/// What a member says over HTTP; none if it does not answer.
fn ask(port: u16, method: &str, path: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}
