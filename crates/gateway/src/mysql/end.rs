//! Why a connection ends, and the errors that packets themselves can be.

use std::io;

use manxdb_sql::error::SqlError;

use super::codec::Malformed;
use super::compression::NoAgreement;
use super::framing::FrameError;

/// Why a connection ends.
#[derive(Debug)]
pub enum End {
    /// The client said goodbye, or is gone.
    Closed,
    /// The transport failed.
    Io(io::Error),
    /// The client is told why, then the connection closes.
    Refused(SqlError),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Malformed> for End {
    fn from(_: Malformed) -> Self {
        Self::Refused(malformed_packet())
    }
}

impl From<NoAgreement> for End {
    fn from(reason: NoAgreement) -> Self {
        Self::Refused(match reason {
            NoAgreement::Uncompressed => SqlError::new(
                3922,
                "HY000",
                "Invalid compression algorithm 'uncompressed': the server's protocol_compression_algorithms do not permit it.",
            ),
            NoAgreement::Level(level) => SqlError::new(
                3923,
                "HY000",
                format!("Invalid compression level '{level}' for algorithm zstd: it is 1 to 22."),
            ),
        })
    }
}

impl From<FrameError> for End {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Closed => Self::Closed,
            FrameError::Io(error) => Self::Io(error),
            FrameError::OutOfOrder => {
                Self::Refused(SqlError::new(1156, "08S01", "Got packets out of order"))
            }
            FrameError::Undecodable => Self::Refused(SqlError::new(
                1157,
                "08S01",
                "Couldn't uncompress communication packet",
            )),
            FrameError::TooLarge => Self::Refused(packet_too_large()),
        }
    }
}

/// 1835.
pub fn malformed_packet() -> SqlError {
    SqlError::new(1835, "HY000", "Malformed communication packet.")
}

/// 1153.
pub fn packet_too_large() -> SqlError {
    SqlError::new(
        1153,
        "08S01",
        "Got a packet bigger than 'max_allowed_packet' bytes",
    )
}

/// 1043.
pub fn bad_handshake() -> SqlError {
    SqlError::new(1043, "08S01", "Bad handshake")
}
