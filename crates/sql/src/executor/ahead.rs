//! The left rows of a join, taken some at a time, so that the right side can read what all of
//! them need in one go.

use std::collections::VecDeque;

use super::memory::row_bytes;
use super::operator::{BoxedOperator, Demand, Run};
use crate::error::SqlResult;
use crate::plan::physical::{Join, Node};
use crate::plan::walk;
use crate::types::Row;

/// Rows taken at once, at most.
const ROWS_MAX: usize = 256;
/// Each batch is so many times the one before, while the reader may stop after any row.
const GROWTH: usize = 4;
/// Bytes of rows past which no more are taken at once.
const BYTES_MAX: usize = 1 << 20;

/// Rows on their way from the left side of a join.
pub(super) struct Ahead<'p> {
    join: &'p Join,
    demand: Demand,
    rows: VecDeque<Row>,
    size: usize,
    /// The left side has no more.
    ended: bool,
    /// Evaluating conditions in another order could change their values; looked up when it
    /// matters first.
    is_volatile: Option<bool>,
}

impl<'p> Ahead<'p> {
    pub fn new(join: &'p Join, demand: Demand) -> Self {
        Self {
            join,
            demand,
            rows: VecDeque::new(),
            size: 1,
            ended: false,
            is_volatile: None,
        }
    }

    /// Starts over.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.ended = false;
        self.size = match self.demand {
            Demand::Some => 1,
            Demand::All => ROWS_MAX,
        };
    }

    /// The next row of `left`. Those behind it are shown to `right`.
    pub fn next(
        &mut self,
        run: &Run<'_>,
        left: &mut BoxedOperator<'_>,
        right: &mut BoxedOperator<'_>,
    ) -> SqlResult<Option<Row>> {
        if self.rows.is_empty() && !self.ended {
            self.take(run, left)?;
            // A single row is read when it is opened over; what was prepared before is void.
            let rows: &[Row] = match self.rows.make_contiguous() {
                rows @ [_, _, ..] => rows,
                _ => &[],
            };
            right.prepare(run, rows)?;
        }
        Ok(self.rows.pop_front())
    }

    fn take(&mut self, run: &Run<'_>, left: &mut BoxedOperator<'_>) -> SqlResult<()> {
        let wanted = self.batch(run);
        let mut bytes = 0;
        while self.rows.len() < wanted && bytes < BYTES_MAX {
            let Some(row) = left.next(run)? else {
                self.ended = true;
                break;
            };
            run.tick()?;
            bytes += row_bytes(&row);
            self.rows.push_back(row);
        }
        self.size = (self.size * GROWTH).min(ROWS_MAX);
        Ok(())
    }

    /// Rows to take now. What is locked, or validated at commit, must be wanted.
    fn batch(&mut self, run: &Run<'_>) -> usize {
        if self.size == 1 || !run.reads_ahead(self.demand) {
            return 1;
        }
        let join = self.join;
        let is_volatile = || node_is_volatile(&join.left) || node_is_volatile(&join.right);
        if *self.is_volatile.get_or_insert_with(is_volatile) {
            return 1;
        }
        self.size
    }
}

fn node_is_volatile(node: &Node) -> bool {
    let mut found = false;
    walk::node_exprs(node, &mut |expr| {
        found |= walk::is_volatile(expr)
            || walk::any(expr, &|inner| {
                walk::plan_of(inner).is_some_and(|plan| node_is_volatile(&plan.root))
            });
    });
    found
}
