//! The requests of one connection, one after the other.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::request::{self, Request, Unreadable};
use super::{Answer, Shared};
use crate::transport::Transport;

/// How long a request may take to come, from the end of the answer before it on.
const READ_PATIENCE: Duration = Duration::from_secs(15);
/// How long an answer may make no progress.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);
/// How long, and how many bytes, of a request that was refused are read after its answer.
const LINGER: (Duration, usize) = (Duration::from_secs(1), 128 * 1024);
/// What the first record of a TLS client begins with: its type, a handshake.
const HANDSHAKE: u8 = 0x16;

/// Answers requests until either side ends the connection.
pub fn serve(shared: &Shared, socket: Arc<TcpStream>, peer: SocketAddr) {
    if let Err(error) = answer_all(shared, socket, peer) {
        tracing::debug!(%peer, %error, "a client of the admin listener left");
    }
}

fn answer_all(shared: &Shared, socket: Arc<TcpStream>, peer: SocketAddr) -> io::Result<()> {
    let mut transport = Transport::new(socket, WRITE_PATIENCE)?;
    transport.set_read_timeout(READ_PATIENCE)?;
    let mut is_refused = false;
    if let Some(config) = &shared.tls {
        match begins_with_handshake(transport.socket())? {
            None => return Ok(()),
            Some(true) => transport.start_tls(Arc::clone(config))?,
            Some(false) => is_refused = true,
        }
    }
    let mut buffer = Vec::new();
    loop {
        transport.set_deadline(Some(Instant::now() + READ_PATIENCE));
        let read = request::read(&mut transport, &mut buffer, peer.ip());
        let (bytes, is_last) = match read {
            Ok(None) => break,
            Ok(Some(request)) if is_refused => (wants_tls(&request).bytes(false, true), true),
            Ok(Some(request)) => {
                let answer = (shared.handler)(&request);
                let is_head = request.method == "HEAD";
                (answer.bytes(is_head, request.is_last), request.is_last)
            }
            Err(Unreadable::Gone(error)) => return Err(error),
            Err(Unreadable::Refused(answer)) => {
                is_refused = true;
                (answer.bytes(false, true), true)
            }
        };
        transport.write_all(&bytes)?;
        transport.flush()?;
        if is_last {
            break;
        }
    }
    if is_refused {
        linger(&transport)?;
    }
    transport.close();
    Ok(())
}

/// Whether a client begins with TLS; `None` when it leaves without a byte.
fn begins_with_handshake(socket: &TcpStream) -> io::Result<Option<bool>> {
    let mut first = [0];
    let bytes = socket.peek(&mut first)?;
    Ok((bytes > 0).then_some(first == [HANDSHAKE]))
}

/// What a plain request gets where TLS is spoken. It may have brought a password, readable on the way.
fn wants_tls(request: &Request) -> Answer {
    let host = request.header("Host").unwrap_or("this address");
    let path = request.path();
    Answer::text(
        400,
        format!("this port speaks HTTPS alone (admin_tls): ask for https://{host}{path}\n"),
    )
}

/// Reads what a client still sends of a request that was refused. Bytes that nobody reads would make the
/// system reset the connection, and the client would lose the answer.
fn linger(transport: &Transport) -> io::Result<()> {
    let (patience, bytes_max) = LINGER;
    let mut socket = transport.socket();
    socket.shutdown(Shutdown::Write)?;
    let deadline = Instant::now() + patience;
    let mut bytes = 0;
    let mut buffer = [0; 4096];
    while bytes < bytes_max {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(read) => bytes += read,
        }
    }
    Ok(())
}
