//! What a worker answers: the outputs of a job by name, and RocksDB's description of them.

use serde::{Deserialize, Serialize};

use crate::object_store::objects::Moved;

/// What a worker answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// RocksDB's own description.
    pub description: Vec<u8>,
    /// The files, in the description's order.
    pub files: Vec<OutputFile>,
    /// What the worker moved over the network for it.
    pub moved: Moved,
    /// What the profile has to say beside them: hints, which the database checks for itself.
    pub notes: Vec<u8>,
}

/// A file that a worker made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputFile {
    /// Its name in the attempt's directory.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// CRC-32 of the copy that the worker put into an object store: what comes over the network is
    /// compared with it. None where the database reads the file itself.
    pub copy_sum: Option<u32>,
}

/// How a worker's outputs are summed. It is a part of every fingerprint: a database asks only
/// workers whose answers it can check.
pub const ANSWERS: &str = "outputs: CRC-32C by RocksDB as they are written";

/// Whether a name is a file's own.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0']) && !name.starts_with('.')
}
