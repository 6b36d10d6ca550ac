//! The bytes of one connection: plain, or TLS when that is what the client begins with.
//!
//! No command of RESP begins as a TLS handshake does, so that one port serves both, as MySQL's does.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

/// What the first record of a TLS client begins with: its type, a handshake.
const HANDSHAKE: u8 = 0x16;

enum State {
    /// Nothing came yet.
    Unknown(Arc<ServerConfig>),
    Plain,
    Tls(Box<ServerConnection>),
}

/// A socket that does not block.
pub struct Stream {
    socket: TcpStream,
    state: State,
}

impl Stream {
    /// A new connection; without `tls` it is plain whatever comes.
    pub fn new(socket: TcpStream, tls: Option<Arc<ServerConfig>>) -> Self {
        let state = tls.map_or(State::Plain, State::Unknown);
        Self { socket, state }
    }

    /// The socket below.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Adds what has come to `input`, through `buffer`; whether the connection is still open.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` when nothing has come; or bytes that are no TLS.
    pub fn read(&mut self, buffer: &mut [u8], input: &mut Vec<u8>) -> io::Result<bool> {
        self.look_at_first_byte()?;
        match &mut self.state {
            State::Unknown(_) => Ok(false),
            State::Plain => {
                let bytes = self.socket.read(buffer)?;
                input.extend_from_slice(&buffer[..bytes]);
                Ok(bytes > 0)
            }
            State::Tls(tls) => read_tls(tls, &mut self.socket, buffer, input),
        }
    }

    fn look_at_first_byte(&mut self) -> io::Result<()> {
        let State::Unknown(config) = &self.state else {
            return Ok(());
        };
        let mut first = [0];
        // Without any byte the connection has ended, and the state stays unknown.
        if self.socket.peek(&mut first)? == 0 {
            return Ok(());
        }
        self.state = if first == [HANDSHAKE] {
            let tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
            State::Tls(Box::new(tls))
        } else {
            State::Plain
        };
        Ok(())
    }

    /// Takes some of `bytes`; what was taken may still have to be flushed.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` when nothing can be taken now.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let State::Tls(tls) = &mut self.state else {
            return self.socket.write(bytes);
        };
        let taken = tls.writer().write(bytes)?;
        match flush_tls(tls, &mut self.socket) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && taken > 0 => Ok(taken),
            Err(error) => Err(error),
            Ok(()) if taken > 0 => Ok(taken),
            Ok(()) => Err(ErrorKind::WouldBlock.into()),
        }
    }

    /// Sends what was taken.
    ///
    /// # Errors
    /// The socket's, `WouldBlock` when some of it cannot leave now.
    pub fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Tls(tls) => flush_tls(tls, &mut self.socket),
            State::Unknown(_) | State::Plain => Ok(()),
        }
    }

    /// Tells a TLS client that nothing more comes.
    pub fn close(&mut self) {
        if let State::Tls(tls) = &mut self.state {
            tls.send_close_notify();
            // The peer may be gone already; there is nobody left to tell.
            let _ = flush_tls(tls, &mut self.socket);
        }
    }
}

/// Records of at most one buffer, and all that is in them: nothing that was decrypted waits for a socket
/// that may stay silent.
fn read_tls(
    tls: &mut ServerConnection,
    socket: &mut TcpStream,
    buffer: &mut [u8],
    input: &mut Vec<u8>,
) -> io::Result<bool> {
    let mut left = buffer.len();
    while left > 0 {
        let bytes = match tls.read_tls(socket) {
            Ok(0) => return Ok(false),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock && left < buffer.len() => break,
            Err(error) => return Err(error),
        };
        left = left.saturating_sub(bytes);
        let state = tls.process_new_packets();
        if state.is_err() {
            // The client is told why, if it still listens.
            let _ = flush_tls(tls, socket);
        }
        let state = state.map_err(io::Error::other)?;
        let mut plain = state.plaintext_bytes_to_read();
        while plain > 0 {
            let read = tls.reader().read(&mut buffer[..])?;
            assert!(read > 0, "bytes that were decrypted are not there");
            input.extend_from_slice(&buffer[..read]);
            plain = plain.saturating_sub(read);
        }
        if state.peer_has_closed() {
            return Ok(false);
        }
    }
    // A handshake has to answer.
    match flush_tls(tls, socket) {
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Ok(true),
    }
}

fn flush_tls(tls: &mut ServerConnection, socket: &mut TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
