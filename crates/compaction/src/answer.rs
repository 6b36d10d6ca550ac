//! A worker's answer: the outputs of a job by name, and RocksDB's description of them.

use serde::{Deserialize, Serialize};

use crate::object_store::objects::Moved;

/// A worker's answer to an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// RocksDB's own description.
    pub description: Vec<u8>,
    /// The files, in the description's order.
    pub files: Vec<OutputFile>,
    /// Bytes that the worker moved over the network for it.
    pub moved: Moved,
    /// Notes of the profile for the database: hints, which the database verifies.
    pub notes: Vec<u8>,
}

/// A file that a worker made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Its name in the attempt's directory.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// CRC-32 of the copy that the worker put into an object store, for comparison with the bytes
    /// that arrive. `None` where the database reads the worker's file itself.
    pub copy_sum: Option<u32>,
}

/// How a worker's outputs are summed. A part of every fingerprint: a database gives jobs only to
/// workers whose answers it can verify.
pub const ANSWERS: &str = "outputs: CRC-32C by RocksDB as they are written";

/// Whether a name is a file's own.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0']) && !name.starts_with('.')
}
