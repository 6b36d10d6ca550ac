//! DISTINCT.
//!
//! Rows are passed on as they are first seen. When no further one can be remembered, rows that were
//! not seen before go to temporary files, in parts by their hash, which are gone through one after
//! the other. That changes the order of the rows, so it is not done where something relies on it.

use std::collections::HashSet;

use super::operator::{BoxedOperator, Operator, Run};
use super::project::row_key;
use super::spill::{Partitioned, Partitions, RowReader, next_keyed};
use crate::error::SqlResult;
use crate::types::{Collation, Row, Value};

/// Different rows that there is space for from the start.
const SEEN_AT_FIRST: usize = 112;
/// Bytes that a remembered row takes beside its key, about.
const ENTRY_BYTES: usize = 48;

/// First of equal rows.
pub(super) struct Distinct<'p> {
    input: BoxedOperator<'p>,
    collations: &'p [Collation],
    keeps_order: bool,
    seen: HashSet<Vec<u8>>,
    /// Bytes charged for what was seen.
    charged: usize,
    /// Rows being written that may not have been seen.
    spilled: Option<Partitions>,
    parts: Option<Partitioned>,
    part: Option<RowReader>,
}

impl<'p> Distinct<'p> {
    pub fn new(input: BoxedOperator<'p>, collations: &'p [Collation], keeps_order: bool) -> Self {
        Self {
            input,
            collations,
            keeps_order,
            seen: HashSet::new(),
            charged: 0,
            spilled: None,
            parts: None,
            part: None,
        }
    }

    fn forget_seen(&mut self, run: &Run<'_>) {
        self.seen.clear();
        run.memory.release(std::mem::take(&mut self.charged));
    }

    /// The next row with its key: of the input, then of one part after the other.
    fn next_keyed(&mut self, run: &Run<'_>) -> SqlResult<Option<(Vec<u8>, Row)>> {
        if self.parts.is_none() {
            if let Some(row) = self.input.next(run)? {
                let mut key = Vec::new();
                row_key(&row, self.collations, &mut key);
                return Ok(Some((key, row)));
            }
            let Some(spilled) = self.spilled.take() else {
                return Ok(None);
            };
            self.parts = Some(spilled.finish(run)?);
        }
        loop {
            if let Some(part) = &mut self.part
                && let Some(keyed) = next_keyed(part)?
            {
                return Ok(Some(keyed));
            }
            self.forget_seen(run);
            self.part = self.parts.as_mut().and_then(Partitioned::next_part);
            if self.part.is_none() {
                return Ok(None);
            }
        }
    }

    /// Whether a row that was not seen goes to a file: from the first one on that does not fit.
    fn spills(&mut self, run: &Run<'_>, bytes: usize) -> SqlResult<bool> {
        let reads_input = self.parts.is_none();
        let is_full = !run.memory.fits_leaving_one_in(4, bytes);
        if self.spilled.is_none() && reads_input && !self.keeps_order && is_full {
            self.spilled = Partitions::create(run)?;
        }
        Ok(self.spilled.is_some())
    }
}

impl Operator for Distinct<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.forget_seen(run);
        // Growing hashes every key anew.
        self.seen.reserve(SEEN_AT_FIRST);
        self.spilled = None;
        self.parts = None;
        self.part = None;
        self.input.open(run, base)
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        while let Some((key, row)) = self.next_keyed(run)? {
            run.tick()?;
            if self.seen.contains(&key) {
                continue;
            }
            let bytes = key.len() + ENTRY_BYTES;
            if self.spills(run, bytes)?
                && let Some(parts) = &mut self.spilled
            {
                parts.push(run, Some(key), &row)?;
                continue;
            }
            run.memory.charge(bytes)?;
            self.charged += bytes;
            self.seen.insert(key);
            return Ok(Some(row));
        }
        Ok(None)
    }
}
