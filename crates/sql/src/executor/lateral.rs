//! LATERAL subqueries in FROM: run anew for each row of the tables before them.

use std::ops::Range;
use std::vec::IntoIter;

use super::memory::row_bytes;
use super::operator::{Operator, Run};
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::Lateral;
use crate::plan::walk;
use crate::types::{Row, Value};

/// The rows of a LATERAL subquery over one row.
pub(super) struct LateralOp<'p> {
    source: &'p Lateral,
    base: Row,
    rows: IntoIter<Row>,
    /// Bytes of the rows, which are given back at the next opening.
    bytes: usize,
}

impl<'p> LateralOp<'p> {
    pub fn new(source: &'p Lateral) -> Self {
        Self {
            source,
            base: Vec::new(),
            rows: Vec::new().into_iter(),
            bytes: 0,
        }
    }
}

impl Operator for LateralOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.base = base.to_vec();
        run.memory.release(std::mem::take(&mut self.bytes));
        let source = self.source;
        let Some(plan) = walk::plan_of(&source.query) else {
            return Err(SqlError::internal("a LATERAL table without a query"));
        };
        let mut outer = Vec::with_capacity(run.outer.len() + 1);
        outer.push(base);
        outer.extend_from_slice(run.outer);
        let eval = run.context.eval;
        let mut rows = Vec::new();
        eval.subqueries.run(eval, plan, &outer, &mut |row| {
            let bytes = row_bytes(&row);
            run.memory.charge(bytes)?;
            self.bytes += bytes;
            rows.push(row);
            Ok(true)
        })?;
        self.rows = rows.into_iter();
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        for values in self.rows.by_ref() {
            run.tick()?;
            let row = placed(&self.base, &self.source.slots, values);
            if run.holds(&self.source.predicates, &row)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

/// `base` with `values` in `slots`.
fn placed(base: &[Value], slots: &Range<usize>, values: Row) -> Row {
    let mut row = base.to_vec();
    let places = row.get_mut(slots.clone()).unwrap_or_default();
    for (place, value) in places.iter_mut().zip(values) {
        *place = value;
    }
    row
}
