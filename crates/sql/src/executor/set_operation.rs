//! UNION, EXCEPT and INTERSECT.

use std::collections::{HashMap, HashSet};

use super::operator::{BoxedOperator, Operator, Run};
use super::project::row_key;
use crate::error::SqlResult;
use crate::plan::physical::{SetOp, SetOperation};
use crate::types::{Row, Value};

/// Left rows, then for UNION right rows, as the operator decides. Of UNION all rows: those that are
/// not ALL go through [`Distinct`](super::distinct::Distinct), which goes on in files.
pub(super) struct SetOperationOp<'p> {
    operation: &'p SetOperation,
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    on_right: bool,
    seen: HashSet<Vec<u8>>,
    /// How often the right side has each row, for EXCEPT and INTERSECT.
    counts: HashMap<Vec<u8>, u64>,
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
            seen: HashSet::new(),
            counts: HashMap::new(),
        }
    }

    fn key(&self, row: &[Value]) -> Vec<u8> {
        let mut key = Vec::new();
        row_key(row, &self.operation.collations, &mut key);
        key
    }

    fn count_right(&mut self, run: &Run<'_>) -> SqlResult<()> {
        self.right.open(run, &[])?;
        while let Some(row) = self.right.next(run)? {
            run.tick()?;
            let key = self.key(&row);
            run.memory.charge(key.len() + 56)?;
            *self.counts.entry(key).or_default() += 1;
        }
        Ok(())
    }

    /// Whether a row of the stream belongs to the result.
    fn keeps(&mut self, run: &Run<'_>, row: &[Value]) -> SqlResult<bool> {
        if self.operation.op == SetOp::Union {
            return Ok(true);
        }
        let all = self.operation.all;
        let key = self.key(row);
        let in_right = match self.counts.get_mut(&key) {
            Some(count) if *count > 0 => {
                if all {
                    *count -= 1;
                }
                true
            }
            _ => false,
        };
        let wanted = in_right == (self.operation.op == SetOp::Intersect);
        if !wanted || all {
            return Ok(wanted);
        }
        let bytes = key.len() + 48;
        let new = self.seen.insert(key);
        if new {
            run.memory.charge(bytes)?;
        }
        Ok(new)
    }
}

impl Operator for SetOperationOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.on_right = false;
        self.seen.clear();
        self.counts.clear();
        if self.operation.op != SetOp::Union {
            self.count_right(run)?;
        }
        self.left.open(run, base)
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        loop {
            run.tick()?;
            let side = if self.on_right {
                &mut self.right
            } else {
                &mut self.left
            };
            match side.next(run)? {
                Some(row) => {
                    if self.keeps(run, &row)? {
                        return Ok(Some(row));
                    }
                }
                None if !self.on_right && self.operation.op == SetOp::Union => {
                    self.on_right = true;
                    self.right.open(run, &[])?;
                }
                None => return Ok(None),
            }
        }
    }
}
