//! Joins of wide rows by nested loops.

use super::ahead::Ahead;
use super::operator::{BoxedOperator, Demand, Operator, Run};
use crate::error::SqlResult;
use crate::plan::physical::{Join, JoinKind};
use crate::types::{Row, Value};

/// Opens the right side over every left row, which it hears of some at a time.
pub(super) struct LoopJoin<'p> {
    kind: JoinKind,
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    ahead: Ahead<'p>,
    /// The left row whose partners are being read, and whether one was found.
    current: Option<(Row, bool)>,
}

impl<'p> LoopJoin<'p> {
    pub fn new(
        join: &'p Join,
        left: BoxedOperator<'p>,
        right: BoxedOperator<'p>,
        demand: Demand,
    ) -> Self {
        Self {
            kind: join.kind,
            left,
            right,
            ahead: Ahead::new(join, demand),
            current: None,
        }
    }
}

impl Operator for LoopJoin<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.current = None;
        self.ahead.clear();
        self.left.open(run, base)
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        loop {
            if self.current.is_none() {
                let left = self.ahead.next(run, &mut self.left, &mut self.right)?;
                let Some(row) = left else {
                    return Ok(None);
                };
                self.right.open(run, &row)?;
                self.current = Some((row, false));
            }
            let partner = self.right.next(run)?;
            match (self.kind, partner) {
                (JoinKind::Inner | JoinKind::Left, Some(row)) => {
                    if let Some((_, found)) = &mut self.current {
                        *found = true;
                    }
                    return Ok(Some(row));
                }
                (JoinKind::Inner | JoinKind::Semi, None) | (JoinKind::Anti, Some(_)) => {
                    self.current = None;
                }
                (JoinKind::Left, None) => {
                    if let Some((row, false)) = self.current.take() {
                        return Ok(Some(row));
                    }
                }
                (JoinKind::Semi, Some(_)) | (JoinKind::Anti, None) => {
                    return Ok(self.current.take().map(|(row, _)| row));
                }
            }
        }
    }

    fn prepare(&mut self, run: &Run<'_>, bases: &[Row]) -> SqlResult<()> {
        self.left.prepare(run, bases)
    }
}
