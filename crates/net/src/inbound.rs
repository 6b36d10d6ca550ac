//! A connection that another process has made.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use manxdb_core::{Nanos, NodeId};

use crate::frame::{Decoder, FIRST_PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX};
use crate::packet::Hello;

/// Bytes read in one go; a busy connection lets others have their turn after some of these.
const READ_BYTES: usize = 16 << 10;

/// A connection in.
#[derive(Debug)]
pub struct Inbound {
    pub(crate) stream: TcpStream,
    pub(crate) decoder: Decoder,
    /// Who speaks, once that is known, and where they listen.
    peer: Option<(SocketAddr, BTreeSet<NodeId>)>,
    pub(crate) opened: Nanos,
    pub(crate) from: SocketAddr,
    pub(crate) is_closed: bool,
}

impl Inbound {
    /// A connection accepted at `opened`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(stream: TcpStream, from: SocketAddr, opened: Nanos) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            decoder: Decoder::new(FIRST_PAYLOAD_BYTES_MAX),
            peer: None,
            opened,
            from,
            is_closed: false,
        })
    }

    /// Takes in who speaks: longer frames are welcome now.
    pub fn introduce(&mut self, hello: &Hello) {
        let places = hello.places.iter();
        let nodes = places.map(|place| place.node).collect();
        self.peer = Some((hello.address, nodes));
        self.decoder.set_payload_max(PAYLOAD_BYTES_MAX);
    }

    /// Whether it is known who speaks.
    #[must_use]
    pub fn is_introduced(&self) -> bool {
        self.peer.is_some()
    }

    /// Where those who speak listen.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.peer.as_ref().map(|(address, _)| *address)
    }

    /// Whether a node speaks over this connection.
    #[must_use]
    pub fn speaks_for(&self, node: NodeId) -> bool {
        let peer = self.peer.as_ref();
        peer.is_some_and(|(_, nodes)| nodes.contains(&node))
    }

    /// Reads once; whether there may be more.
    ///
    /// # Errors
    /// The connection is over: [`io::ErrorKind::UnexpectedEof`] when the peer closed it.
    pub fn read(&mut self) -> io::Result<bool> {
        let mut bytes = [0; READ_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.decoder.push(&bytes[..count]);
                Ok(count == bytes.len())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Writes a short answer. A peer that does not read gets none.
    ///
    /// # Errors
    /// The connection is over.
    pub fn answer(&mut self, frame: &[u8]) -> io::Result<()> {
        self.stream.write_all(frame)
    }
}
