//! The view of a database for a worker that does not have its directory.
//!
//! RocksDB 11.8 opens every file of a database before it compacts a few of them; of the files that
//! it does not compact it reads only the end. So a view contains the inputs whole and of every
//! other file the end (a hundredth of it), which the worker writes behind a hole into a file of the
//! right length. A read from the hole would return zeros with a wrong checksum, and the job would
//! fail: a view cannot cause wrong outputs.

use serde::{Deserialize, Serialize};

use crate::object_store::objects::Object;

/// Everything that a worker needs of a database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct View {
    /// Which files there are.
    pub manifest: Named,
    /// How they are made.
    pub options: Named,
    /// Sorted files.
    pub files: Vec<FilePart>,
}

/// A whole file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    /// Its name in the database's directory.
    pub name: String,
    /// Its content.
    pub object: Object,
}

/// A file from some byte on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FilePart {
    /// Its name in the database's directory.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// From here on there is something in it; 0 for an input.
    pub from: u64,
    /// CRC-32 of the bytes from there on.
    pub sum: u32,
    /// The object that has these bytes,
    pub key: String,
    /// from here on.
    pub skip: u64,
}

impl FilePart {
    /// Bytes that are fetched.
    pub(crate) fn bytes(&self) -> u64 {
        self.size.saturating_sub(self.from)
    }
}

/// Where a job's copies are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copies {
    /// Key prefix of the job's objects; each attempt writes below a prefix of its own in it.
    pub job: String,
    /// The view.
    pub view: Object,
}

impl Copies {
    /// Where an attempt puts an output.
    pub fn output(&self, attempt: &str, name: &str) -> String {
        format!("{}/{attempt}/{name}", self.job)
    }
}
