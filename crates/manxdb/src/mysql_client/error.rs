//! What a client can meet, with the numbers people know from MySQL's own clients.

use std::io;

use manxdb_gateway::mysql::codec::{Malformed, PayloadReader};
use manxdb_gateway::mysql::framing::FrameError;

/// Why a statement or a login failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said so.
    #[error("ERROR {code} ({state}): {message}")]
    Server {
        /// MySQL's number.
        code: u16,
        /// SQLSTATE.
        state: String,
        /// The server's words.
        message: String,
    },
    /// Nobody answers there.
    #[error("ERROR 2003 (HY000): Can't connect to MySQL server on '{address}' ({source})")]
    Unreachable {
        /// Host and port.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The connection broke.
    #[error("ERROR 2013 (HY000): Lost connection to MySQL server ({0})")]
    Lost(io::Error),
    /// No encrypted connection as asked for.
    #[error("ERROR 2026 (HY000): SSL connection error: {0}")]
    Tls(String),
    /// What came is not the protocol.
    #[error("ERROR 2027 (HY000): Malformed packet")]
    Malformed,
    /// A row or a message that no MySQL server sends.
    #[error("ERROR 2020 (HY000): Got packet bigger than 1 GiB")]
    TooLarge,
    /// The account wants a way to prove itself that this client lacks.
    #[error("ERROR 2059 (HY000): Authentication plugin '{0}' cannot be used by this client")]
    Plugin(String),
}

impl ClientError {
    /// Whether further statements can still be sent.
    pub fn is_of_statement(&self) -> bool {
        matches!(self, Self::Server { .. })
    }

    /// Reads an ERR packet; before the capabilities are known it has no SQLSTATE.
    pub(super) fn from_packet(payload: &[u8]) -> Self {
        let mut reader = PayloadReader::new(payload);
        let (Ok(0xFF), Ok(code)) = (reader.u8(), reader.u16()) else {
            return Self::Malformed;
        };
        let text = String::from_utf8_lossy(reader.rest()).into_owned();
        let marked = text.strip_prefix('#');
        let (state, message) = marked
            .and_then(|text| text.split_at_checked(5))
            .unwrap_or(("HY000", &text));
        Self::Server {
            code,
            state: state.to_owned(),
            message: message.to_owned(),
        }
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        Self::Lost(error)
    }
}

impl From<Malformed> for ClientError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl From<FrameError> for ClientError {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Closed => Self::Lost(io::ErrorKind::UnexpectedEof.into()),
            FrameError::Io(error) => Self::Lost(error),
            FrameError::OutOfOrder => Self::Lost(io::Error::other("packets out of order")),
            // This client asks for no compression.
            FrameError::TooLarge => Self::TooLarge,
            FrameError::Undecodable => Self::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_server_are_shown_as_everybody_knows_them() {
        let error = ClientError::from_packet(b"\xFF\x28\x04#42000You have an error");
        assert_eq!(error.to_string(), "ERROR 1064 (42000): You have an error");
        let early = ClientError::from_packet(b"\xFF\x10\x04Too many connections");
        assert_eq!(
            early.to_string(),
            "ERROR 1040 (HY000): Too many connections"
        );
        assert!(matches!(
            ClientError::from_packet(b"\xFF"),
            ClientError::Malformed
        ));
    }
}
