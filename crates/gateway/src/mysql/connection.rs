//! The life of one connection: a login, then commands until one side leaves.

use std::any::Any;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use manxdb_sql::error::SqlError;
use manxdb_sql::session::SessionControl;

use super::command::Commands;
use super::end::{End, packet_too_large};
use super::framing::{Channel, FrameError};
use super::login::log_in;
use super::response::put_error;
use super::server::ConnectionPermit;
use super::shared::Shared;
use crate::transport::Transport;

/// A connection that has logged in. It is the work of one thread, or of none while it is idle
/// (see [`super::idle`]).
pub struct Connection {
    // Dropped in this order: the session ends before the connection leaves the server's list.
    commands: Commands,
    control: Arc<SessionControl>,
    channel: Channel<Transport>,
    /// Its client said nothing for too long.
    overdue: bool,
    permit: ConnectionPermit,
}

/// Why a connection's thread stops serving it.
enum Stop {
    /// It ends.
    End(End),
    /// Its client has said nothing for a while, and may until then.
    Idle(Instant),
}

impl From<End> for Stop {
    fn from(end: End) -> Self {
        Self::End(end)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Self {
        Self::End(End::Io(error))
    }
}

/// Serves a new connection until it ends or is idle. Never panics, never outlives its socket.
pub fn serve(permit: ConnectionPermit, socket: Arc<TcpStream>) {
    let shared = Arc::clone(&permit.shared);
    let patience = Duration::from_secs(shared.instance.connect_timeout_seconds());
    let Ok(transport) = Transport::new(socket, patience) else {
        return;
    };
    let mut channel = Channel::new(transport);
    channel
        .stream_mut()
        .set_deadline(Some(Instant::now() + patience));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        log_in(&shared, permit.id, &mut channel)
    }));
    let (session, client, peer) = match outcome {
        Ok(Ok(ready)) => ready,
        Ok(Err(end)) => {
            shared.metrics.failed_logins.increment(1);
            return part(&shared, permit.id, &mut channel, Ok(end));
        }
        Err(panic) => return part(&shared, permit.id, &mut channel, Err(panic)),
    };
    channel.stream_mut().set_deadline(None);
    Connection {
        control: session.control(),
        commands: Commands::new(shared, session, client, peer),
        channel,
        overdue: false,
        permit,
    }
    .run();
}

/// The end of a connection: the client is told why, when there is something to tell.
fn part(
    shared: &Shared,
    id: u64,
    channel: &mut Channel<Transport>,
    why: Result<End, Box<dyn Any + Send>>,
) {
    match why {
        Ok(End::Closed) => {}
        Ok(End::Io(error)) => tracing::debug!(connection = id, %error, "connection lost"),
        Ok(End::Refused(error)) => {
            tracing::debug!(connection = id, code = error.code, %error, "connection refused");
            tell(channel, &error);
        }
        Err(panic) => {
            tracing::error!(
                connection = id,
                panic = panic_text(&*panic),
                "session failed"
            );
            shared.metrics.panics.increment(1);
            tell(
                channel,
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

impl Connection {
    /// Its number, unique in this process.
    pub fn id(&self) -> u64 {
        self.permit.id
    }

    /// Its socket.
    pub fn socket(&self) -> &TcpStream {
        self.channel.stream().socket()
    }

    /// The next run tells the client that it was idle too long.
    pub fn give_up(&mut self) {
        self.overdue = true;
    }

    /// Serves the connection on this thread until it ends or is idle. Never panics.
    pub fn run(mut self) {
        let shared = Arc::clone(&self.permit.shared);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let control = Arc::clone(&self.control);
            shared.host.attach(self.permit.id, control);
            self.converse(&shared)
        }));
        let why = match outcome {
            Ok(Stop::Idle(until)) => {
                self.channel.release_buffers();
                self.commands.release_buffer();
                let Err(refused) = shared.idle.add(self, until) else {
                    return;
                };
                let (connection, error) = *refused;
                self = connection;
                Ok(End::Io(error))
            }
            Ok(Stop::End(end)) => Ok(end),
            Err(panic) => Err(panic),
        };
        part(&shared, self.permit.id, &mut self.channel, why);
    }

    fn converse(&mut self, shared: &Shared) -> Stop {
        loop {
            if let Err(stop) = self.one_command(shared) {
                return stop;
            }
        }
    }

    /// Waits for one command and answers it.
    fn one_command(&mut self, shared: &Shared) -> Result<(), Stop> {
        let channel = &mut self.channel;
        let commands = &mut self.commands;
        let killed = self.control.kill_connection.load(Ordering::SeqCst);
        if killed || shared.draining.load(Ordering::SeqCst) {
            return Err(End::Closed.into());
        }
        if self.overdue {
            return Err(End::Refused(idle_too_long()).into());
        }
        let timeouts = commands.timeouts();
        let idle = Duration::from_secs(timeouts.idle_seconds);
        channel.reset_sequence();
        let whole = wait_for_packet(channel, shared.options.idle_after, idle)?;
        if !whole {
            let patience = Duration::from_secs(timeouts.read_seconds);
            channel.stream_mut().set_read_timeout(patience)?;
        }
        channel
            .stream_mut()
            .set_write_timeout(Duration::from_secs(timeouts.write_seconds))?;
        let mut payload = commands.take_buffer();
        match channel.read_packet(&mut payload, commands.max_allowed_packet()) {
            Ok(()) => {}
            Err(FrameError::TooLarge) => {
                put_error(channel.start_packet(), &packet_too_large(), true);
                channel.end_packet()?;
                channel.flush()?;
                return Ok(());
            }
            Err(error) => return Err(end_by(error, read_timed_out).into()),
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
}

/// Waits for a packet on this thread, for `idle_after` at most, and says whether it is there
/// whole. A client may be idle for `idle`.
fn wait_for_packet(
    channel: &mut Channel<Transport>,
    idle_after: Duration,
    idle: Duration,
) -> Result<bool, Stop> {
    let started = Instant::now();
    channel
        .stream_mut()
        .set_read_timeout(idle_after.min(idle))?;
    match channel.wait_for_packet() {
        Ok(whole) => Ok(whole),
        Err(FrameError::Io(error)) if is_late(&error) && idle_after < idle => {
            let until = started.checked_add(idle);
            until.map_or(Err(End::Closed.into()), |until| Err(Stop::Idle(until)))
        }
        Err(error) => Err(end_by(error, idle_too_long).into()),
    }
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// How a connection ends on which reading failed; a time-out is told as `late`.
fn end_by(error: FrameError, late: fn() -> SqlError) -> End {
    match error {
        FrameError::Io(error) if is_late(&error) => End::Refused(late()),
        error => error.into(),
    }
}

fn read_timed_out() -> SqlError {
    SqlError::new(1159, "08S01", "Got timeout reading communication packets")
}

fn idle_too_long() -> SqlError {
    SqlError::new(
        4031,
        "HY000",
        "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.",
    )
}
