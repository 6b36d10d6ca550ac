//! A change that a transaction makes.

use crate::read::Seen;

/// A record to be written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Change {
    /// As it was read.
    pub seen: Seen,
    /// What it becomes; none: it is deleted.
    pub value: Option<Vec<u8>>,
}
