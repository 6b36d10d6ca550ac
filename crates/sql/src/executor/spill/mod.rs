//! Rows that do not fit into a statement's memory, in temporary files.
//!
//! The process that hosts the instance gives a [`SpillSpace`]; without one a statement ends with
//! 1038 where its memory does. A file lives as long as its [`SpillFile`], and no longer than the
//! process. Rows lie in it in blocks with checksums, in the order in which they were written.

mod codec;
mod file;
mod indexed;
mod partitions;

pub(super) use file::{RowFile, RowReader};
pub(super) use indexed::IndexedRows;
pub(super) use partitions::{Partitioned, Partitions, next_keyed};

/// A row as bytes that are the same for the same row, for as long as the process lives.
///
/// # Errors
/// 1105 for JSON that cannot be written.
pub(crate) fn encode_kept(row: &[crate::types::Value]) -> crate::error::SqlResult<Vec<u8>> {
    let mut out = Vec::new();
    codec::encode(row, &mut out)?;
    Ok(out)
}

/// Back from [`encode_kept`].
///
/// # Errors
/// 1105 when the bytes are not such a row.
pub(crate) fn decode_kept(mut bytes: &[u8]) -> crate::error::SqlResult<crate::types::Row> {
    let row = codec::decode(&mut bytes).filter(|_| bytes.is_empty());
    row.ok_or_else(|| crate::error::SqlError::internal("a row that is kept cannot be read"))
}

/// Where temporary files are made.
pub trait SpillSpace: Send + Sync + 'static {
    /// An empty file that nobody else sees, and that is gone when it is dropped or the process
    /// ends, whatever way it ends.
    ///
    /// # Errors
    /// The file system's.
    fn create(&self) -> std::io::Result<Box<dyn SpillFile>>;
}

/// A temporary file.
pub trait SpillFile: Send {
    /// Adds `bytes` at the end.
    ///
    /// # Errors
    /// The file system's, a full disk among them.
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()>;

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// The file system's; the file ends before.
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> std::io::Result<()>;
}
