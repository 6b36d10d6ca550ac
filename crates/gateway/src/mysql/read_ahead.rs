//! Bytes read from a stream before they are asked for.

use std::io::{self, Read};

/// Bytes read ahead in one call once the handshake is over.
pub(super) const READ_AHEAD: usize = 16 * 1024;

/// The input side of a stream: small requests are served from a buffer, large ones go straight
/// to their destination.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    /// What is unread lies in `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Until TLS is settled not a byte too many may be read: it would belong to TLS.
    allowed: bool,
}

impl ReadAhead {
    /// From now on bytes may be read ahead.
    pub(super) fn allow(&mut self) {
        self.allowed = true;
    }

    /// What was read and not asked for yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.buffer[self.start..self.end] // start ≤ end ≤ len
    }

    /// Gives the buffer back when everything in it was read.
    pub(super) fn release(&mut self) {
        if self.unread().is_empty() {
            self.buffer = Vec::new();
            self.start = 0;
            self.end = 0;
        }
    }

    /// Takes from what was read ahead, else from the stream. Zero is the stream's end.
    ///
    /// # Errors
    /// The stream's.
    pub(super) fn read(&mut self, stream: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
        if self.unread().is_empty() {
            if !self.allowed || into.len() >= READ_AHEAD {
                return read_retrying(stream, into);
            }
            self.fill(stream)?;
        }
        let available = self.unread();
        let count = available.len().min(into.len());
        into[..count].copy_from_slice(&available[..count]);
        self.start += count;
        Ok(count)
    }

    /// Reads ahead.
    ///
    /// # Errors
    /// The stream's.
    pub(super) fn fill(&mut self, stream: &mut impl Read) -> io::Result<()> {
        assert!(
            self.unread().is_empty(),
            "unread bytes would be overwritten"
        );
        self.buffer.resize(READ_AHEAD, 0); // once: it keeps that size
        self.start = 0;
        self.end = 0;
        self.end = read_retrying(stream, &mut self.buffer)?;
        Ok(())
    }

    /// Reads until `into` is full; how much arrived before the stream's end.
    ///
    /// # Errors
    /// The stream's.
    pub(super) fn read_full(
        &mut self,
        stream: &mut impl Read,
        into: &mut [u8],
    ) -> io::Result<usize> {
        let mut filled = 0;
        while filled < into.len() {
            let count = self.read(stream, &mut into[filled..])?; // filled < len
            if count == 0 {
                break;
            }
            filled += count;
        }
        Ok(filled)
    }
}

fn read_retrying(stream: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
