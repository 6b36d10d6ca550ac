//! UNION, EXCEPT and INTERSECT.
//!
//! EXCEPT and INTERSECT count the rows of their right side. Where the counts do not fit into memory,
//! both sides are written to temporary files, in parts by the hash of the row, and gone through part
//! by part. Nothing relies on the order of their rows.

use std::collections::HashMap;

use super::operator::{BoxedOperator, Operator, Run};
use super::project::row_key;
use super::spill::{Partitioned, Partitions, RowReader, next_keyed};
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::{SetOp, SetOperation};
use crate::types::{Row, Value};

/// Bytes that a count takes beside its key, about.
const ENTRY_BYTES: usize = 56;

/// Left rows, then for UNION right rows, as the operator decides. Rows that are not ALL go through
/// [`Distinct`](super::distinct::Distinct), which goes on in files.
pub(super) struct SetOperationOp<'p> {
    operation: &'p SetOperation,
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    on_right: bool,
    /// How often the right side has each row, for EXCEPT and INTERSECT.
    counts: HashMap<Vec<u8>, u64>,
    /// Bytes charged for the counts.
    charged: usize,
    /// Both sides lie in files.
    parts: Option<Parts>,
}

/// What is left to do by parts.
struct Parts {
    /// Counts of rows.
    right: Partitioned,
    left: Partitioned,
    /// Left rows of the part whose counts are in memory.
    rows: Option<RowReader>,
}

impl<'p> SetOperationOp<'p> {
    pub fn new(
        operation: &'p SetOperation,
        left: BoxedOperator<'p>,
        right: BoxedOperator<'p>,
    ) -> Self {
        Self {
            operation,
            left,
            right,
            on_right: false,
            counts: HashMap::new(),
            charged: 0,
            parts: None,
        }
    }

    fn key(&self, row: &[Value]) -> Vec<u8> {
        let mut key = Vec::new();
        row_key(row, &self.operation.collations, &mut key);
        key
    }

    fn forget_counts(&mut self, run: &Run<'_>) {
        self.counts.clear();
        run.memory.release(std::mem::take(&mut self.charged));
    }

    /// Counts a row so many times.
    fn count(&mut self, run: &Run<'_>, key: Vec<u8>, times: u64) -> SqlResult<()> {
        if let Some(count) = self.counts.get_mut(&key) {
            *count += times;
            return Ok(());
        }
        let bytes = key.len() + ENTRY_BYTES;
        run.memory.charge(bytes)?;
        self.charged += bytes;
        self.counts.insert(key, times);
        Ok(())
    }

    /// Counts the rows of the right side; in files what does not fit into memory.
    fn count_right(&mut self, run: &Run<'_>) -> SqlResult<Option<Partitions>> {
        let mut spilled: Option<Partitions> = None;
        self.right.open(run, &[])?;
        while let Some(row) = self.right.next(run)? {
            run.tick()?;
            let key = self.key(&row);
            let is_full = !run.memory.fits_leaving_one_in(2, key.len() + ENTRY_BYTES);
            if spilled.is_none() && is_full && !self.counts.contains_key(&key) {
                spilled = self.move_to_files(run)?;
            }
            match &mut spilled {
                Some(parts) => parts.push(run, Some(key), &[Value::UInt(1)])?,
                None => self.count(run, key, 1)?,
            }
        }
        Ok(spilled)
    }

    /// Writes the counts to files, if there are any.
    fn move_to_files(&mut self, run: &Run<'_>) -> SqlResult<Option<Partitions>> {
        let Some(mut parts) = Partitions::create(run)? else {
            return Ok(None);
        };
        for (key, count) in self.counts.drain() {
            parts.push(run, Some(key), &[Value::UInt(count)])?;
        }
        self.forget_counts(run);
        Ok(Some(parts))
    }

    /// Writes the left side to files too.
    fn spill_left(&mut self, run: &Run<'_>, right: Partitions) -> SqlResult<()> {
        let Some(mut left) = Partitions::create(run)? else {
            return Err(SqlError::internal(
                "one side of a set operation has files, the other none",
            ));
        };
        while let Some(row) = self.left.next(run)? {
            run.tick()?;
            left.push(run, Some(self.key(&row)), &row)?;
        }
        self.parts = Some(Parts {
            right: right.finish(run)?,
            left: left.finish(run)?,
            rows: None,
        });
        Ok(())
    }

    /// Takes the counts of the next part into memory; false when there is none.
    fn load_part(&mut self, run: &Run<'_>) -> SqlResult<bool> {
        self.forget_counts(run);
        let Some(parts) = &mut self.parts else {
            return Ok(false);
        };
        parts.rows = parts.left.next_part();
        let right = parts.right.next_part();
        assert_eq!(
            parts.rows.is_some(),
            right.is_some(),
            "both sides have as many parts"
        );
        let Some(mut right) = right else {
            return Ok(false);
        };
        while let Some((key, row)) = next_keyed(&mut right)? {
            run.tick()?;
            let [Value::UInt(times)] = row.as_slice() else {
                return Err(SqlError::internal("a part of counts without a count"));
            };
            self.count(run, key, *times)?;
        }
        Ok(true)
    }

    /// The next left row with its key: of the left side, or of one part after the other.
    fn next_left(&mut self, run: &Run<'_>) -> SqlResult<Option<(Vec<u8>, Row)>> {
        loop {
            let Some(parts) = &mut self.parts else {
                let row = self.left.next(run)?;
                return Ok(row.map(|row| (self.key(&row), row)));
            };
            if let Some(rows) = &mut parts.rows
                && let Some(keyed) = next_keyed(rows)?
            {
                return Ok(Some(keyed));
            }
            if !self.load_part(run)? {
                return Ok(None);
            }
        }
    }

    /// The next left row that EXCEPT or INTERSECT keeps.
    fn next_kept(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        while let Some((key, row)) = self.next_left(run)? {
            run.tick()?;
            let in_right = match self.counts.get_mut(&key) {
                Some(count) if *count > 0 => {
                    *count -= u64::from(self.operation.all);
                    true
                }
                _ => false,
            };
            if in_right == (self.operation.op == SetOp::Intersect) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

impl Operator for SetOperationOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.on_right = false;
        self.parts = None;
        self.forget_counts(run);
        if self.operation.op == SetOp::Union {
            return self.left.open(run, base);
        }
        let right = self.count_right(run)?;
        self.left.open(run, base)?;
        right.map_or(Ok(()), |right| self.spill_left(run, right))
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        if self.operation.op != SetOp::Union {
            return self.next_kept(run);
        }
        run.tick()?;
        if !self.on_right {
            if let Some(row) = self.left.next(run)? {
                return Ok(Some(row));
            }
            self.on_right = true;
            self.right.open(run, &[])?;
        }
        self.right.next(run)
    }
}
