//! The life of one connection: greeting, TLS, login, then commands until one side leaves.

use std::any::Any;
use std::io;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use manxdb_sql::error::SqlError;
use manxdb_sql::session::{ClientInfo, Session, SessionControl};
use mysql_common::constants::CapabilityFlags as Capability;

use super::auth::{Plugin, random_salt};
use super::codec::Malformed;
use super::command::Commands;
use super::framing::{Channel, FrameError};
use super::handshake::{
    FirstPacket, HandshakeResponse, SALT_LENGTH, parse_first_packet, put_greeting,
    server_capabilities,
};
use super::login::{LOGIN_PACKET_MAX, Peer, authenticate};
use super::response::{self, put_error, put_ok};
use super::server::Shared;
use super::sink::ClientTraits;
use super::transport::Transport;

/// Why a connection ends.
#[derive(Debug)]
pub enum End {
    /// The client said goodbye, or is gone.
    Closed,
    /// The transport failed.
    Io(io::Error),
    /// The client is told why, then the connection closes.
    Refused(SqlError),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Malformed> for End {
    fn from(_: Malformed) -> Self {
        Self::Refused(malformed_packet())
    }
}

impl From<FrameError> for End {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Closed => Self::Closed,
            FrameError::Io(error) => Self::Io(error),
            FrameError::OutOfOrder => {
                Self::Refused(SqlError::new(1156, "08S01", "Got packets out of order"))
            }
            FrameError::TooLarge => Self::Refused(packet_too_large()),
        }
    }
}

/// 1835.
pub fn malformed_packet() -> SqlError {
    SqlError::new(1835, "HY000", "Malformed communication packet.")
}

/// 1153.
pub fn packet_too_large() -> SqlError {
    SqlError::new(
        1153,
        "08S01",
        "Got a packet bigger than 'max_allowed_packet' bytes",
    )
}

/// Serves one connection to its end. Never panics, never outlives its socket.
pub fn serve(shared: &Arc<Shared>, id: u64, socket: Arc<TcpStream>) {
    let Ok(transport) = Transport::new(socket, shared.options.write_timeout) else {
        return;
    };
    let mut channel = Channel::new(transport);
    let outcome = catch_unwind(AssertUnwindSafe(|| converse(shared, id, &mut channel)));
    match outcome {
        Ok(End::Closed) => {}
        Ok(End::Io(error)) => tracing::debug!(connection = id, %error, "connection lost"),
        Ok(End::Refused(error)) => {
            tracing::debug!(connection = id, code = error.code, %error, "connection refused");
            tell(&mut channel, &error);
        }
        Err(panic) => {
            tracing::error!(
                connection = id,
                panic = panic_text(&*panic),
                "session failed"
            );
            shared.metrics.panics.increment(1);
            tell(
                &mut channel,
                &SqlError::internal("the statement failed unexpectedly; the connection is closed"),
            );
        }
    }
    channel.stream_mut().close();
}

/// Sends a last error; the client may be gone already.
fn tell(channel: &mut Channel<Transport>, error: &SqlError) {
    put_error(channel.start_packet(), error, true);
    let _ = channel.end_packet().and_then(|()| channel.flush());
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown")
}

fn converse(shared: &Arc<Shared>, id: u64, channel: &mut Channel<Transport>) -> End {
    let deadline = Instant::now() + shared.options.connect_timeout;
    channel.stream_mut().set_deadline(Some(deadline));
    let (session, client, peer) = match log_in(shared, id, channel) {
        Ok(ready) => ready,
        Err(end) => {
            shared.metrics.failed_logins.increment(1);
            return end;
        }
    };
    channel.stream_mut().set_deadline(None);
    let control = session.control();
    shared.host.attach(id, Arc::clone(&control));
    let mut commands = Commands::new(Arc::clone(shared), session, client, peer);
    loop {
        if let Err(end) = one_command(shared, channel, &mut commands, &control) {
            return end;
        }
    }
}

/// Waits for one command and answers it.
fn one_command(
    shared: &Shared,
    channel: &mut Channel<Transport>,
    commands: &mut Commands,
    control: &SessionControl,
) -> Result<(), End> {
    if control.kill_connection.load(Ordering::SeqCst) || shared.draining.load(Ordering::SeqCst) {
        return Err(End::Closed);
    }
    let idle = Duration::from_secs(commands.idle_timeout_seconds().max(1));
    channel.stream_mut().set_read_timeout(idle)?;
    channel.reset_sequence();
    let mut payload = commands.take_buffer();
    match channel.read_packet(&mut payload, commands.max_allowed_packet()) {
        Ok(()) => {}
        Err(FrameError::TooLarge) => {
            put_error(channel.start_packet(), &packet_too_large(), true);
            channel.end_packet()?;
            channel.flush()?;
            return Ok(());
        }
        Err(FrameError::Io(error)) if is_timeout(&error) => return Err(End::Refused(idle_error())),
        Err(error) => return Err(error.into()),
    }
    let started = Instant::now();
    let result = commands.run(channel, &payload);
    commands.give_buffer(payload);
    result?;
    channel.flush()?;
    shared
        .metrics
        .command_seconds
        .record(started.elapsed().as_secs_f64());
    Ok(())
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn idle_error() -> SqlError {
    SqlError::new(
        4031,
        "HY000",
        "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.",
    )
}

/// Greeting to session.
fn log_in(
    shared: &Arc<Shared>,
    id: u64,
    channel: &mut Channel<Transport>,
) -> Result<(Session, ClientTraits, Peer), End> {
    let peer = peer_of(channel.stream().socket())?;
    let salt = random_salt().map_err(|_| End::Refused(SqlError::internal("no randomness")))?;
    let capabilities = server_capabilities(shared.options.tls.is_some());
    let plugin = Plugin::CachingSha2.name();
    put_greeting(channel.start_packet(), id, &salt, plugin, capabilities);
    channel.end_packet()?;
    channel.flush()?;

    let response = read_response(shared, channel, capabilities)?;
    channel.allow_read_ahead();
    let client = ClientTraits {
        capabilities: response.capabilities,
        collation: announced_collation(response.collation),
    };
    let session = open_session(shared, id, channel, &peer, salt, &response)?;
    let ok = response::Ok {
        status: session.status(),
        ..response::Ok::default()
    };
    put_ok(channel.start_packet(), 0, &ok, client.capabilities);
    channel.end_packet()?;
    channel.flush()?;
    Ok((session, client, peer))
}

fn open_session(
    shared: &Arc<Shared>,
    id: u64,
    channel: &mut Channel<Transport>,
    peer: &Peer,
    salt: [u8; SALT_LENGTH],
    response: &HandshakeResponse,
) -> Result<Session, End> {
    let secure = channel.stream().is_secure();
    let account = authenticate(channel, &shared.instance, peer, secure, salt, response)?;
    let info = ClientInfo {
        peer: peer.address.clone(),
        host: peer.host.clone(),
        found_rows: response
            .capabilities
            .contains(Capability::CLIENT_FOUND_ROWS),
        multi_statements: response
            .capabilities
            .contains(Capability::CLIENT_MULTI_STATEMENTS),
        tls: channel.stream().tls_facts(),
    };
    shared
        .instance
        .connect(
            id,
            &account.identity,
            &response.user,
            info,
            response.database.as_deref(),
        )
        .map_err(End::Refused)
}

/// The client's response, read inside TLS when it asks for that first.
fn read_response(
    shared: &Shared,
    channel: &mut Channel<Transport>,
    capabilities: Capability,
) -> Result<HandshakeResponse, End> {
    let mut payload = Vec::new();
    channel.read_packet(&mut payload, LOGIN_PACKET_MAX)?;
    let mut first = parse_first_packet(&payload, capabilities).map_err(|_| bad_handshake())?;
    if let (FirstPacket::SslRequest, Some(tls)) = (&first, &shared.options.tls) {
        channel.stream_mut().start_tls(Arc::clone(tls))?;
        channel.read_packet(&mut payload, LOGIN_PACKET_MAX)?;
        first = parse_first_packet(&payload, capabilities).map_err(|_| bad_handshake())?;
    }
    match first {
        FirstPacket::Response(response) => Ok(response),
        FirstPacket::SslRequest => Err(bad_handshake()),
    }
}

fn bad_handshake() -> End {
    End::Refused(SqlError::new(1043, "08S01", "Bad handshake"))
}

fn peer_of(socket: &TcpStream) -> io::Result<Peer> {
    let address = socket.peer_addr()?;
    let ip = address.ip().to_canonical();
    let host = if ip.is_loopback() {
        "localhost".to_owned()
    } else {
        ip.to_string()
    };
    Ok(Peer {
        address: format!("{ip}:{}", address.port()),
        host,
    })
}

/// Text is always utf8mb4; a client that named one of its collations gets that one back.
pub fn announced_collation(asked: u16) -> u16 {
    match asked {
        45 | 46 | 224..=247 | 255..=323 => asked,
        _ => u16::from(super::handshake::DEFAULT_COLLATION),
    }
}
