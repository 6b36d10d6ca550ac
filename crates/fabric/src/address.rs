//! Where a word is.

use std::fmt;

/// Bytes of a word.
pub const WORD: u64 = 8;
/// The same, where memory is indexed.
pub const WORD_LENGTH: usize = 8;
const _: () = assert!(WORD == WORD_LENGTH as u64, "a word has one length");
const _: () = assert!(
    size_of::<u64>() == WORD_LENGTH && align_of::<u64>() == WORD_LENGTH,
    "a word is read and written by one instruction"
);

/// A memory server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u16);

/// A place in the memory of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Whose memory.
    pub server: ServerId,
    /// Bytes from its beginning.
    pub offset: u64,
}

impl Address {
    /// The place so many bytes further on, at the same server.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self {
            server: self.server,
            offset: self.offset.saturating_add(bytes),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.server.0, self.offset)
    }
}
