//! Messages to one other party, and back.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use manxdb_net::frame::{self, Decoder};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longer than any message of ours.
const PAYLOAD_MAX: usize = 1 << 20;
const CHUNK: usize = 16 << 10;

/// A way to another party.
pub trait Line {
    /// Sends a message.
    ///
    /// # Errors
    /// The other party is gone.
    fn send<T: Serialize>(&mut self, message: &T) -> io::Result<()>;

    /// Waits for a message.
    ///
    /// # Errors
    /// The other party is gone, or says what makes no sense.
    fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T>;
}

/// Over a socket.
#[derive(Debug)]
pub struct TcpLine {
    stream: TcpStream,
    decoder: Decoder,
}

impl TcpLine {
    /// Over a connection, on which small messages do not wait for others.
    ///
    /// # Errors
    /// The system says no.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            decoder: Decoder::new(PAYLOAD_MAX),
        })
    }
}

impl Line for TcpLine {
    fn send<T: Serialize>(&mut self, message: &T) -> io::Result<()> {
        let bytes = frame::encode(message).map_err(io::Error::other)?;
        self.stream.write_all(&bytes)
    }

    fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut chunk = [0; CHUNK];
        loop {
            if let Some(payload) = self.decoder.next_payload().map_err(io::Error::other)? {
                return frame::decode(payload).map_err(io::Error::other);
            }
            let count = self.stream.read(&mut chunk)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.decoder.push(chunk.get(..count).unwrap_or_default());
        }
    }
}
