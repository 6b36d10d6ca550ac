//! How a running process is asked what it says of itself.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::frame::{self, Decoder, FrameError};
use crate::packet::Packet;
use crate::status::Status;

/// Why a process did not say how it is.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// Nobody there, or nobody who answers in time.
    #[error("{address}: {source}")]
    Io {
        /// Who was asked.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Something else than a node answers there.
    #[error("{address} answers, but is no node of a cluster: {reason}")]
    NotANode {
        /// Who was asked.
        address: SocketAddr,
        /// What is wrong with the answer.
        reason: String,
    },
}

/// Asks the process that listens at `address`, for at most `patience` a step.
///
/// # Errors
/// [`StatusError`].
pub fn ask_status(address: SocketAddr, patience: Duration) -> Result<Status, StatusError> {
    let io = |source| StatusError::Io { address, source };
    let not_a_node = |error: FrameError| StatusError::NotANode {
        address,
        reason: error.to_string(),
    };
    let mut stream = TcpStream::connect_timeout(&address, patience).map_err(io)?;
    stream.set_read_timeout(Some(patience)).map_err(io)?;
    stream.set_write_timeout(Some(patience)).map_err(io)?;
    let question = frame::encode(&Packet::<()>::AskStatus).map_err(not_a_node)?;
    stream.write_all(&question).map_err(io)?;
    let mut decoder = Decoder::new(frame::FIRST_PAYLOAD_BYTES_MAX);
    let mut bytes = [0; 4096];
    loop {
        if let Some(payload) = decoder.next_payload().map_err(not_a_node)? {
            return match frame::decode::<Packet<()>>(payload).map_err(not_a_node)? {
                Packet::Status(status) => Ok(status),
                other => Err(StatusError::NotANode {
                    address,
                    reason: format!("{other:?}"),
                }),
            };
        }
        let count = stream.read(&mut bytes).map_err(io)?;
        if count == 0 {
            return Err(io(std::io::ErrorKind::UnexpectedEof.into()));
        }
        decoder.push(&bytes[..count]);
    }
}
