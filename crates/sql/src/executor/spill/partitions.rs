//! Rows by the hash of their key, of a join, a group or a row of DISTINCT, a file for each part of the hashes.

use std::hash::{DefaultHasher, Hasher};

use super::{RowFile, RowReader};
use crate::error::{SqlError, SqlResult};
use crate::executor::operator::Run;
use crate::types::{Row, Value};

/// Parts: as many times as much as fits into memory can be joined.
const PARTS: usize = 32;

/// Rows being written.
pub(in crate::executor) struct Partitions {
    files: Vec<RowFile>,
    /// Rows whose key equals nothing.
    keyless: RowFile,
}

/// Rows being read, part by part.
pub(in crate::executor) struct Partitioned {
    parts: Vec<RowReader>,
    /// Rows whose key equals nothing.
    pub keyless: RowReader,
}

impl Partitions {
    /// Without rows; `None` when there is no room for files.
    pub fn create(run: &Run<'_>) -> SqlResult<Option<Self>> {
        let Some(keyless) = RowFile::create(run)? else {
            return Ok(None);
        };
        let mut files = Vec::with_capacity(PARTS);
        while files.len() < PARTS
            && let Some(file) = RowFile::create(run)?
        {
            files.push(file);
        }
        assert_eq!(files.len(), PARTS, "every part has a file");
        Ok(Some(Self { files, keyless }))
    }

    /// Adds a row with its key.
    pub fn push(&mut self, run: &Run<'_>, key: Option<Vec<u8>>, row: &[Value]) -> SqlResult<()> {
        let Some(key) = key else {
            return self.keyless.push(run, row);
        };
        let mut hasher = DefaultHasher::new();
        hasher.write(&key);
        let part = usize::try_from(hasher.finish() % PARTS as u64).unwrap_or(0);
        let file = self.files.get_mut(part);
        let file = file.ok_or_else(|| SqlError::internal("a part of the rows without a file"))?;
        let mut keyed = Vec::with_capacity(row.len() + 1);
        keyed.push(Value::Bytes(key));
        keyed.extend_from_slice(row);
        file.push(run, &keyed)
    }

    /// Turns to reading.
    pub fn finish(self, run: &Run<'_>) -> SqlResult<Partitioned> {
        let mut parts = Vec::with_capacity(PARTS);
        for file in self.files {
            parts.push(file.into_reader(run)?);
        }
        Ok(Partitioned {
            parts,
            keyless: self.keyless.into_reader(run)?,
        })
    }
}

impl Partitioned {
    /// Takes the next part, the last one first.
    pub fn next_part(&mut self) -> Option<RowReader> {
        self.parts.pop()
    }
}

/// A row of a part with its key.
///
/// # Errors
/// The file cannot be read.
pub(in crate::executor) fn next_keyed(part: &mut RowReader) -> SqlResult<Option<(Vec<u8>, Row)>> {
    let Some(mut row) = part.next()? else {
        return Ok(None);
    };
    if row.is_empty() {
        return Err(SqlError::internal("a row of a part without its key"));
    }
    match row.remove(0) {
        Value::Bytes(key) => Ok(Some((key, row))),
        _ => Err(SqlError::internal("a row of a part without its key")),
    }
}
