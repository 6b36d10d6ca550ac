//! Datagrams: one socket for each node that has any to send or to receive.
//!
//! They carry the protocol's own format and nothing of ours, so that a data plane can answer them.
//! They do not say which node sent them either: a server is known by the address that it sends from,
//! and everybody else is [`UNKNOWN_SENDER`], who is answered where the datagram came from.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use manxdb_core::NodeId;

/// Who sent a datagram from an address that is no server's. An answer to it goes back to that address,
/// and only while the datagram is being handled. No node has this number.
pub const UNKNOWN_SENDER: NodeId = NodeId(u32::MAX);

/// More than any datagram that fits into one packet: a longer one is read cut off, and refused.
const READ_BYTES: usize = 2_048;
/// Datagrams read from one socket in one round.
pub(crate) const READS_MAX: usize = 64;

/// The socket of a node.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    pub(crate) socket: UdpSocket,
}

impl DatagramSocket {
    /// At `address`; a port of 0 is any.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket })
    }

    /// Sends, or loses: there is nobody to tell who does not count on that.
    pub(crate) fn send(&self, to: SocketAddr, bytes: &[u8]) -> bool {
        matches!(self.socket.send_to(bytes, to), Ok(count) if count == bytes.len())
    }

    /// The next datagram; nothing when there is none.
    pub(crate) fn receive(&self) -> Option<(SocketAddr, Vec<u8>)> {
        let mut bytes = [0; READ_BYTES];
        loop {
            match self.socket.recv_from(&mut bytes) {
                Ok((count, from)) => return Some((from, bytes[..count].to_vec())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
