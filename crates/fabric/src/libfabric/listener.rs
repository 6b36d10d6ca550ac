//! Where clients ask for the memory of a server, and how the end of the other side's machine shows.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::io::Result;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl,
};

/// Who says nothing for this long is none: a client at the listener, a server that is asked, the thread of
/// its connections.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// A machine that has not answered for so long is not there. Its system answers, however busy it is.
pub(super) const ARRIVAL: Duration = Duration::from_secs(2);

/// Silence before the other side's system is asked for a sign of life; between two such questions; and
/// how many are left without an answer.
const IDLE: Duration = Duration::from_secs(2);
const BETWEEN: Duration = Duration::from_secs(1);
const UNANSWERED: u32 = 4;
const _: () = assert!(
    IDLE.as_secs() + BETWEEN.as_secs() * UNANSWERED as u64 == 6,
    "the end of a machine is noticed after six seconds, as the documentation says"
);
const _: () = assert!(
    ARRIVAL.as_millis() < PATIENCE.as_millis(),
    "a machine that is not there is given up before a server that says nothing"
);

/// The listener of a memory server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerAddress {
    /// Where it is.
    pub address: SocketAddr,
    /// Who does not know it is not let in, nor heard; at most [`ListenerAddress::TOKEN_MAX`] bytes. It is sent as
    /// it is.
    pub token: String,
}

impl ListenerAddress {
    /// Bytes of the longest token.
    pub const TOKEN_MAX: usize = 255;

    /// The first words say the length of a token in one byte.
    const FITS: () = assert!(
        Self::TOKEN_MAX == u8::MAX as usize,
        "the longest token is sent whole"
    );
}

/// One that lets everybody in.
impl From<SocketAddr> for ListenerAddress {
    fn from(address: SocketAddr) -> Self {
        let () = Self::FITS;
        Self {
            address,
            token: String::new(),
        }
    }
}

/// Has the system see to it that the connection ends when the machine on the other side does, without a
/// word, as when it loses its power.
pub(super) fn stay_awake(stream: &TcpStream) -> Result<()> {
    set_tcp_keepidle(stream, IDLE)?;
    set_tcp_keepintvl(stream, BETWEEN)?;
    set_tcp_keepcnt(stream, UNANSWERED)?;
    set_socket_keepalive(stream, true)
}
