//! A sequence of rows in one temporary file.
//!
//! A block is `length u32 BE ‖ crc32 u32 BE ‖ rows`.

use super::SpillFile;
use super::codec;
use super::indexed::{BlockStart, IndexedRows};
use crate::error::{SqlError, SqlResult};
use crate::executor::operator::Run;
use crate::types::{Row, Value};

/// Bytes of rows after which a block is written.
const BLOCK: usize = 64 << 10;
const HEADER: usize = 8;

/// Rows being written.
pub(in crate::executor) struct RowFile {
    file: Box<dyn SpillFile>,
    block: Vec<u8>,
    length: u64,
    /// Rows so far, those of the block included.
    rows: usize,
    /// Where each block that was written begins.
    blocks: Vec<BlockStart>,
    /// Rows before the block.
    written_rows: usize,
}

/// Rows being read.
pub(in crate::executor) struct RowReader {
    file: Box<dyn SpillFile>,
    offset: u64,
    length: u64,
    block: Vec<u8>,
    at: usize,
}

impl RowFile {
    /// A file without rows; `None` when there is no room for one at all.
    ///
    /// # Errors
    /// 1026: the file cannot be made.
    pub fn create(run: &Run<'_>) -> SqlResult<Option<Self>> {
        let Some(space) = run.context.spill else {
            return Ok(None);
        };
        let file = space
            .create()
            .map_err(|error| failed(1026, "make", &error))?;
        Ok(Some(Self {
            file,
            block: Vec::new(),
            length: 0,
            rows: 0,
            blocks: Vec::new(),
            written_rows: 0,
        }))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// 1026: it cannot be written; 1038: the statement has written as much as it may.
    pub fn push(&mut self, run: &Run<'_>, row: &[Value]) -> SqlResult<()> {
        codec::encode(row, &mut self.block)?;
        self.rows += 1;
        if self.block.len() >= BLOCK {
            self.write(run)?;
        }
        Ok(())
    }

    fn write(&mut self, run: &Run<'_>) -> SqlResult<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        run.tick()?;
        let length = u32::try_from(self.block.len())
            .map_err(|error| SqlError::internal(format!("a block of rows: {error}")))?;
        run.memory.charge_file(u64::from(length))?;
        let mut header = length.to_be_bytes().to_vec();
        header.extend_from_slice(&crc32fast::hash(&self.block).to_be_bytes());
        let written = self
            .file
            .append(&header)
            .and_then(|()| self.file.append(&self.block));
        written.map_err(|error| failed(1026, "write", &error))?;
        self.blocks.push(BlockStart {
            row: self.written_rows,
            offset: self.length,
        });
        self.written_rows = self.rows;
        self.length += (HEADER + self.block.len()) as u64;
        self.block.clear();
        Ok(())
    }

    /// Turns to reading, from the first row on.
    ///
    /// # Errors
    /// As [`RowFile::push`].
    pub fn into_reader(mut self, run: &Run<'_>) -> SqlResult<RowReader> {
        self.write(run)?;
        Ok(RowReader {
            file: self.file,
            offset: 0,
            length: self.length,
            block: Vec::new(),
            at: 0,
        })
    }
}

impl RowFile {
    /// Turns to reading rows by their places.
    ///
    /// # Errors
    /// As [`RowFile::push`].
    pub fn into_indexed(mut self, run: &Run<'_>) -> SqlResult<IndexedRows> {
        self.write(run)?;
        assert_eq!(self.written_rows, self.rows, "each row is in a block");
        Ok(IndexedRows::new(
            self.file,
            self.blocks,
            self.rows,
            self.length,
        ))
    }
}

impl RowReader {
    /// The next row.
    ///
    /// # Errors
    /// 1024: the file cannot be read, or holds something else than was written.
    pub fn next(&mut self) -> SqlResult<Option<Row>> {
        if self.at >= self.block.len() {
            if self.offset >= self.length {
                return Ok(None);
            }
            self.read_block()?;
        }
        let mut rest = self.block.get(self.at..).unwrap_or_default();
        let before = rest.len();
        let row = codec::decode(&mut rest).ok_or_else(|| failed(1024, "read", &"a damaged row"))?;
        self.at += before - rest.len();
        Ok(Some(row))
    }

    fn read_block(&mut self) -> SqlResult<()> {
        (self.block, self.offset) = read_block(self.file.as_mut(), self.offset, self.length)?;
        self.at = 0;
        Ok(())
    }
}

/// The block at `offset` of a file that is as long as `length`, and where it ends.
pub(super) fn read_block(
    file: &mut dyn SpillFile,
    offset: u64,
    length: u64,
) -> SqlResult<(Vec<u8>, u64)> {
    let unreadable = |error: std::io::Error| failed(1024, "read", &error);
    let mut header = [0; HEADER];
    file.read(offset, &mut header).map_err(unreadable)?;
    let [a, b, c, d, crc @ ..] = header;
    let bytes = u64::from(u32::from_be_bytes([a, b, c, d]));
    let end = offset + HEADER as u64 + bytes;
    if bytes == 0 || end > length {
        return Err(failed(1024, "read", &"a damaged block"));
    }
    let mut block = vec![0; usize::try_from(bytes).unwrap_or(0)];
    file.read(offset + HEADER as u64, &mut block)
        .map_err(unreadable)?;
    if crc32fast::hash(&block) != u32::from_be_bytes(crc) {
        return Err(failed(1024, "read", &"block checksum mismatch"));
    }
    Ok((block, end))
}

pub(super) fn failed(code: u16, verb: &str, error: &dyn std::fmt::Display) -> SqlError {
    let text = format!(
        "Cannot {verb} a temporary file for sorting or joining: {error}; see the data directory's \
         disk, or let the statement take fewer rows at a time"
    );
    SqlError::new(code, "HY000", text)
}
