//! A server in this process, and a client that can do what no driver would.
#![allow(clippy::disallowed_methods, dead_code)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use manxdb_gateway::ProcessHost;
use manxdb_gateway::mysql::{MysqlOptions, MysqlServer};
use manxdb_sql::session::{Instance, InstanceOptions};
use manxdb_storage::{Durability, MemoryEngine};
use manxdb_txn::{IsolationLevel, LocalOptions, LocalPath};
use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::constants::CapabilityFlags as Capability;

pub const PASSWORD: &str = "s3cret";

/// A server over memory; root's password is [`PASSWORD`].
pub struct TestServer {
    pub address: SocketAddr,
    pub server: Option<MysqlServer>,
    pub host: Arc<ProcessHost>,
}

impl TestServer {
    pub fn start() -> Self {
        Self::with(MysqlOptions::default())
    }

    pub fn with(options: MysqlOptions) -> Self {
        let engine = Arc::new(MemoryEngine::default());
        let path = Arc::new(LocalPath::open(engine, LocalOptions::default()).unwrap());
        let host = ProcessHost::new("UTC".into()).unwrap();
        let instance_options = InstanceOptions {
            secure_file_priv: None,
            durability: Durability::Sync,
            isolation: IsolationLevel::RepeatableRead,
            max_connections: 10_000,
            max_allowed_packet: 64 << 20,
            long_query_micros: 1_000_000,
            statement_memory_bytes: 512 << 20,
            port: 0,
            hostname: "test".into(),
            data_directory: "/".into(),
        };
        let instance = Instance::open(path, host.clone(), instance_options).unwrap();
        instance.initialise(Some(PASSWORD)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = MysqlServer::start(listener, instance, host.clone(), options).unwrap();
        Self {
            address: server.address(),
            server: Some(server),
            host,
        }
    }

    /// A connection that has read nothing yet.
    pub fn dial(&self) -> RawClient<TcpStream> {
        let stream = TcpStream::connect(self.address).unwrap();
        // A server that never answers fails the test instead of hanging it.
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        RawClient {
            stream,
            sequence: 0,
        }
    }

    /// A logged-in root.
    pub fn connect(&self) -> RawClient<TcpStream> {
        let mut client = self.dial();
        let greeting = Greeting::read(&mut client);
        client.log_in(&greeting, &Login::default());
        assert_eq!(client.login_answer(), Packet::Ok);
        client
    }
}

/// What one packet from the server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    Ok,
    Error(u16, String),
    Eof,
    Other(Vec<u8>),
}

impl Packet {
    pub fn of(payload: &[u8]) -> Self {
        match payload.first() {
            Some(0x00) => Self::Ok,
            Some(0xFE) if payload.len() < 9 => Self::Eof,
            Some(0xFF) => {
                let code = u16::from_le_bytes([payload[1], payload[2]]);
                let text = String::from_utf8_lossy(&payload[3..]).into_owned();
                Self::Error(code, text)
            }
            _ => Self::Other(payload.to_vec()),
        }
    }

    pub fn code(&self) -> u16 {
        match self {
            Self::Error(code, _) => *code,
            other => panic!("no error: {other:?}"),
        }
    }
}

/// The parts of the greeting a test needs.
pub struct Greeting {
    pub version: String,
    pub salt: [u8; 20],
    pub capabilities: Capability,
    pub plugin: String,
}

impl Greeting {
    pub fn read<S: Read + Write>(client: &mut RawClient<S>) -> Self {
        let payload = client.read().unwrap();
        assert_eq!(payload[0], 10, "{payload:?}");
        let end = payload.iter().position(|b| *b == 0).unwrap();
        let rest = &payload[end + 5..];
        let mut salt = [0; 20];
        salt[..8].copy_from_slice(&rest[..8]);
        salt[8..].copy_from_slice(&rest[27..39]);
        let bits = u32::from_le_bytes([rest[9], rest[10], rest[14], rest[15]]);
        Self {
            version: String::from_utf8(payload[1..end].to_vec()).unwrap(),
            salt,
            capabilities: Capability::from_bits_truncate(bits),
            plugin: String::from_utf8(rest[40..rest.len() - 1].to_vec()).unwrap(),
        }
    }
}

/// How to log in.
#[derive(Clone)]
pub struct Login {
    pub user: &'static str,
    pub password: &'static str,
    pub plugin: &'static str,
    pub capabilities: Capability,
}

impl Default for Login {
    fn default() -> Self {
        Self {
            user: "root",
            password: PASSWORD,
            plugin: "caching_sha2_password",
            capabilities: Capability::CLIENT_PROTOCOL_41
                | Capability::CLIENT_SECURE_CONNECTION
                | Capability::CLIENT_PLUGIN_AUTH
                | Capability::CLIENT_MULTI_STATEMENTS
                | Capability::CLIENT_TRANSACTIONS,
        }
    }
}

pub fn scramble(plugin: &str, salt: [u8; 20], password: &str) -> Vec<u8> {
    let password = password.as_bytes();
    if plugin == "mysql_native_password" {
        scramble_native(&salt, password).map(|s| s.to_vec())
    } else {
        scramble_sha256(&salt, password).map(|s| s.to_vec())
    }
    .unwrap_or_default()
}

/// A handshake response.
pub fn response(login: &Login, salt: [u8; 20]) -> Vec<u8> {
    let mut payload = login.capabilities.bits().to_le_bytes().to_vec();
    payload.extend_from_slice(&[0, 0, 0, 64, 45]);
    payload.extend_from_slice(&[0; 23]);
    payload.extend_from_slice(login.user.as_bytes());
    payload.push(0);
    let answer = scramble(login.plugin, salt, login.password);
    payload.push(u8::try_from(answer.len()).unwrap());
    payload.extend_from_slice(&answer);
    payload.extend_from_slice(login.plugin.as_bytes());
    payload.push(0);
    payload
}

/// Packets over a stream, with the sequence number in the open.
pub struct RawClient<S> {
    pub stream: S,
    pub sequence: u8,
}

impl<S: Read + Write> RawClient<S> {
    pub fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        loop {
            let mut header = [0; 4];
            self.stream.read_exact(&mut header)?;
            let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
            self.sequence = header[3].wrapping_add(1);
            let start = whole.len();
            whole.resize(start + length, 0);
            self.stream.read_exact(&mut whole[start..])?;
            if length < 0xFF_FFFF {
                return Ok(whole);
            }
        }
    }

    pub fn packet(&mut self) -> Packet {
        Packet::of(&self.read().unwrap())
    }

    pub fn send(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut rest = payload;
        loop {
            let (chunk, tail) = rest.split_at(rest.len().min(0xFF_FFFF));
            let length = u32::try_from(chunk.len()).unwrap().to_le_bytes();
            let header = [length[0], length[1], length[2], self.sequence];
            self.stream.write_all(&header)?;
            self.stream.write_all(chunk)?;
            self.sequence = self.sequence.wrapping_add(1);
            rest = tail;
            if chunk.len() < 0xFF_FFFF {
                return self.stream.flush();
            }
        }
    }

    /// Sends a command: sequence 0.
    pub fn command(&mut self, code: u8, body: &[u8]) -> io::Result<()> {
        self.sequence = 0;
        self.send(&[&[code], body].concat())
    }

    pub fn ping(&mut self) -> Packet {
        self.command(14, b"").unwrap();
        self.packet()
    }

    /// Runs a query, returns its rows as text, or the error.
    pub fn query(&mut self, text: &str) -> Result<Vec<Vec<Option<String>>>, Packet> {
        self.command(3, text.as_bytes()).unwrap();
        self.rows()
    }

    /// Reads one result of the text protocol.
    pub fn rows(&mut self) -> Result<Vec<Vec<Option<String>>>, Packet> {
        let first = self.read().unwrap();
        match Packet::of(&first) {
            Packet::Ok => return Ok(Vec::new()),
            error @ Packet::Error(..) => return Err(error),
            _ => {}
        }
        for _ in 0..first[0] {
            self.read().unwrap();
        }
        assert_eq!(self.packet(), Packet::Eof);
        let mut rows = Vec::new();
        loop {
            let payload = self.read().unwrap();
            match Packet::of(&payload) {
                Packet::Eof => return Ok(rows),
                error @ Packet::Error(..) => return Err(error),
                _ => rows.push(text_row(&payload)),
            }
        }
    }

    pub fn log_in(&mut self, greeting: &Greeting, login: &Login) {
        self.send(&response(login, greeting.salt)).unwrap();
    }

    /// The outcome of a login that needs no further answer.
    pub fn login_answer(&mut self) -> Packet {
        match self.packet() {
            Packet::Other(more) if more == [1, 3] => self.packet(),
            other => other,
        }
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

fn text_row(payload: &[u8]) -> Vec<Option<String>> {
    let mut reader = manxdb_gateway::mysql::codec::PayloadReader::new(payload);
    let mut row = Vec::new();
    while !reader.is_empty() {
        let mut ahead = reader;
        if ahead.u8() == Ok(0xFB) {
            row.push(None);
            reader = ahead;
        } else {
            let bytes = reader.lenenc_bytes().unwrap();
            row.push(Some(String::from_utf8_lossy(bytes).into_owned()));
        }
    }
    row
}
