//! A state as bytes that go from one server to another, without being anywhere as a whole.
//!
//! The master reads an image of its state from the beginning to the end ([`ReadImage`]), and a backup
//! makes a state of what it receives ([`ReceiveImage`]). Where bytes are cut says nothing: a machine may
//! read out a run of rows at a time, and [`copying`](crate::copying) sends pieces of its own size. A machine
//! that is in memory and has its state as one value uses [`BytesImage`], and collects the bytes.

use std::sync::Arc;

use crate::ids::LogId;
use crate::rifl::Rifl;

/// Why there is no state, or no image of one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Bytes that came from elsewhere are no state of the machine: they may be asked for again.
    #[error("the bytes are no state of this machine")]
    Unreadable,
    /// The store that the state is in cannot be read or written: the server cannot go on.
    #[error("{0}")]
    Store(String),
}

/// A state as it was at one moment. It stays so while the machine goes on.
pub trait ReadImage: Send {
    /// The next bytes, as many as are read at once; nothing at the end.
    ///
    /// # Errors
    /// [`StateError::Store`].
    fn read(&mut self) -> Result<Option<Vec<u8>>, StateError>;

    /// A reader of the same state, at its beginning.
    fn again(&self) -> Box<dyn ReadImage>;
}

/// A state to be, of which bytes come in from the first to the last.
pub trait ReceiveImage<E>: Send {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`StateError`]: nothing of this state is of use any more.
    fn take(&mut self, bytes: &[u8]) -> Result<(), StateError>;

    /// The state, with the last entry that it has and the completion records there.
    ///
    /// # Errors
    /// As [`ReceiveImage::take`].
    fn finish(self: Box<Self>, end: LogId, completed: &Rifl) -> Result<E, StateError>;
}

/// Bytes of a snapshot that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The image of a state that is one value.
#[derive(Debug)]
pub struct BytesImage {
    bytes: Arc<[u8]>,
    /// So many were read.
    read: usize,
}

impl BytesImage {
    /// Of a snapshot.
    #[must_use]
    pub fn new(snapshot: Vec<u8>) -> Self {
        Self {
            bytes: Arc::from(snapshot),
            read: 0,
        }
    }
}

impl ReadImage for BytesImage {
    fn read(&mut self) -> Result<Option<Vec<u8>>, StateError> {
        let rest = &self.bytes[self.read..];
        let next = &rest[..rest.len().min(READ_BYTES)];
        self.read += next.len();
        assert!(self.read <= self.bytes.len(), "no byte is read twice");
        Ok((!next.is_empty()).then(|| next.to_vec()))
    }

    fn again(&self) -> Box<dyn ReadImage> {
        Box::new(Self {
            bytes: Arc::clone(&self.bytes),
            read: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_read_in_runs_and_again() {
        for length in [0, 1, READ_BYTES, READ_BYTES + 1, 3 * READ_BYTES - 1] {
            let snapshot: Vec<u8> = (0..=250).cycle().take(length).collect();
            let mut image = BytesImage::new(snapshot.clone());
            let _ = image.read();
            let (mut again, mut read) = (image.again(), Vec::new());
            while let Some(bytes) = again.read().unwrap() {
                assert!((1..=READ_BYTES).contains(&bytes.len()));
                read.extend_from_slice(&bytes);
            }
            assert_eq!(read, snapshot);
        }
    }
}
