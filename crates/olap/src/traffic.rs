//! What a node has sent.

use std::ops::{Add, AddAssign};

/// What a node has sent to others; what it keeps for itself is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Messages, or operations on others' memory.
    pub messages: u64,
    /// Bytes of them, without what sockets and cards add.
    pub bytes: u64,
}

impl Traffic {
    pub(crate) fn count(&mut self, bytes: u64) {
        self.messages += 1;
        self.bytes += bytes;
    }

    /// What was sent after so much.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            messages: self.messages - before.messages,
            bytes: self.bytes - before.bytes,
        }
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
