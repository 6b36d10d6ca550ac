//! Rows of one temporary file, each found by its place.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::SpillFile;
use super::codec;
use super::file::{failed, read_block};
use crate::error::{SqlError, SqlResult};
use crate::types::Row;

/// Blocks that are kept as rows: frames look at two places at a time, and at where they end.
const BLOCKS_KEPT: usize = 3;

/// Where a block begins.
#[derive(Debug, Clone, Copy)]
pub(in crate::executor) struct BlockStart {
    /// Rows before it.
    pub row: usize,
    pub offset: u64,
}

/// Rows that are read in any order, neighbours mostly.
pub(in crate::executor) struct IndexedRows {
    file: RefCell<Box<dyn SpillFile>>,
    blocks: Vec<BlockStart>,
    rows: usize,
    length: u64,
    /// The blocks read last, by their places.
    kept: RefCell<VecDeque<(usize, Rc<Vec<Row>>)>>,
}

impl IndexedRows {
    pub(super) fn new(
        file: Box<dyn SpillFile>,
        blocks: Vec<BlockStart>,
        rows: usize,
        length: u64,
    ) -> Self {
        assert!(
            blocks.is_sorted_by(|one, next| one.row < next.row && one.offset < next.offset),
            "blocks lie one behind the other, each with a row"
        );
        Self {
            file: RefCell::new(file),
            blocks,
            rows,
            length,
            kept: RefCell::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.rows
    }

    /// Shows the row at a place.
    ///
    /// # Errors
    /// 1024: the file cannot be read; what `look` says.
    pub fn with<T>(&self, at: usize, look: impl FnOnce(&Row) -> SqlResult<T>) -> SqlResult<T> {
        let place = self.blocks.partition_point(|block| block.row <= at);
        let place = place
            .checked_sub(1)
            .ok_or_else(|| SqlError::internal("a row of a file that has none"))?;
        let rows = self.block(place)?;
        let row = rows.get(at - self.blocks[place].row);
        look(row.ok_or_else(|| failed(1024, "read", &"a row is missing"))?)
    }

    fn block(&self, place: usize) -> SqlResult<Rc<Vec<Row>>> {
        let mut kept = self.kept.borrow_mut();
        if let Some(at) = kept.iter().position(|(known, _)| *known == place)
            && let Some(block) = kept.remove(at)
        {
            let rows = Rc::clone(&block.1);
            kept.push_front(block);
            return Ok(rows);
        }
        let offset = self.blocks[place].offset;
        let (bytes, _) = read_block(self.file.borrow_mut().as_mut(), offset, self.length)?;
        let (mut rest, mut rows) = (bytes.as_slice(), Vec::new());
        while !rest.is_empty() {
            let row = codec::decode(&mut rest);
            rows.push(row.ok_or_else(|| failed(1024, "read", &"a damaged row"))?);
        }
        let rows = Rc::new(rows);
        kept.push_front((place, Rc::clone(&rows)));
        kept.truncate(BLOCKS_KEPT);
        Ok(rows)
    }
}
