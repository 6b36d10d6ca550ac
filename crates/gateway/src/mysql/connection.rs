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
use super::shared::Shared;
use super::transport::Transport;

/// Serves one connection to its end. Never panics, never outlives its socket.
pub fn serve(shared: &Arc<Shared>, id: u64, socket: Arc<TcpStream>) {
    let patience = Duration::from_secs(shared.instance.connect_timeout_seconds());
    let Ok(transport) = Transport::new(socket, patience) else {
        return;
    };
    let mut channel = Channel::new(transport);
    channel
        .stream_mut()
        .set_deadline(Some(Instant::now() + patience));
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
    let timeouts = commands.timeouts();
    channel.reset_sequence();
    channel
        .stream_mut()
        .set_read_timeout(Duration::from_secs(timeouts.idle_seconds))?;
    let whole = channel
        .wait_for_packet()
        .map_err(|error| end_by(error, idle_too_long))?;
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
        Err(error) => return Err(end_by(error, read_timed_out)),
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

/// How a connection ends on which reading failed; a time-out is told as `late`.
fn end_by(error: FrameError, late: fn() -> SqlError) -> End {
    match error {
        FrameError::Io(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
        {
            End::Refused(late())
        }
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
