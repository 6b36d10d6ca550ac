//! Joins of wide rows.

use std::collections::HashMap;
use std::ops::Range;

use super::ahead::Ahead;
use super::operator::{BoxedOperator, Demand, Operator, Run};
use crate::error::SqlResult;
use crate::expr::Expr;
use crate::planner::physical::{HashKeys, Join, JoinKind};
use crate::types::{self, Collation, Row, Value};

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

/// Hashes the right side once and looks left rows up in it.
pub(super) struct HashJoin<'p> {
    kind: JoinKind,
    keys: &'p HashKeys,
    slots: Range<usize>,
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    /// The right side changes between openings: it reads a recursive CTE.
    changing: bool,
    /// Right slots of every row, by the group key of the join columns.
    table: Option<HashMap<Vec<u8>, Vec<Row>>>,
    current: Option<Probe>,
}

/// A left row among its candidates.
struct Probe {
    row: Row,
    key: Option<Vec<u8>>,
    at: usize,
    found: bool,
}

impl<'p> HashJoin<'p> {
    pub fn new(
        join: &Join,
        keys: &'p HashKeys,
        left: BoxedOperator<'p>,
        right: BoxedOperator<'p>,
    ) -> Self {
        Self {
            kind: join.kind,
            keys,
            changing: crate::planner::walk::reads_cte(&join.right, None),
            slots: join.right_slots.clone(),
            left,
            right,
            table: None,
            current: None,
        }
    }

    /// The right side depends on nothing outside itself: one table serves all openings.
    fn hash_right(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        if self.table.is_some() && !self.changing {
            return Ok(());
        }
        let mut table: HashMap<Vec<u8>, Vec<Row>> = HashMap::new();
        self.right.open(run, base)?;
        while let Some(row) = self.right.next(run)? {
            run.tick()?;
            let sides = self.keys.pairs.iter().map(|(_, right, c)| (right, *c));
            if let Some(key) = join_key(run, sides, &row)? {
                let kept = row.get(self.slots.clone()).unwrap_or_default().to_vec();
                run.memory
                    .charge(super::memory::row_bytes(&kept) + key.len())?;
                table.entry(key).or_default().push(kept);
            }
        }
        self.table = Some(table);
        Ok(())
    }

    /// The next joined row of the current left row.
    fn partner(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let (Some(probe), Some(table)) = (&mut self.current, &self.table) else {
            return Ok(None);
        };
        let bucket = probe.key.as_ref().and_then(|key| table.get(key));
        let Some(bucket) = bucket else {
            return Ok(None);
        };
        while let Some(candidate) = bucket.get(probe.at) {
            probe.at += 1;
            run.tick()?;
            let mut joined = probe.row.clone();
            for (slot, value) in self.slots.clone().zip(candidate) {
                joined[slot].clone_from(value);
            }
            if run.holds(&self.keys.residual, &joined)? {
                probe.found = true;
                return Ok(Some(joined));
            }
        }
        Ok(None)
    }
}

impl Operator for HashJoin<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.current = None;
        self.hash_right(run, base)?;
        self.left.open(run, base)
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        loop {
            if self.current.is_none() {
                let Some(row) = self.left.next(run)? else {
                    return Ok(None);
                };
                let sides = self.keys.pairs.iter().map(|(left, _, c)| (left, *c));
                let key = join_key(run, sides, &row)?;
                self.current = Some(Probe {
                    row,
                    key,
                    at: 0,
                    found: false,
                });
            }
            let partner = self.partner(run)?;
            match (self.kind, partner) {
                (JoinKind::Inner | JoinKind::Left, Some(row)) => return Ok(Some(row)),
                (JoinKind::Inner | JoinKind::Semi, None) | (JoinKind::Anti, Some(_)) => {
                    self.current = None;
                }
                (JoinKind::Left, None) => {
                    if let Some(Probe {
                        row, found: false, ..
                    }) = self.current.take()
                    {
                        return Ok(Some(row));
                    }
                }
                (JoinKind::Semi, Some(_)) | (JoinKind::Anti, None) => {
                    return Ok(self.current.take().map(|probe| probe.row));
                }
            }
        }
    }

    fn prepare(&mut self, run: &Run<'_>, bases: &[Row]) -> SqlResult<()> {
        self.left.prepare(run, bases)
    }
}

/// The group key of the join columns; `None` with a NULL among them, which equals nothing.
fn join_key<'e>(
    run: &Run<'_>,
    sides: impl Iterator<Item = (&'e Expr, Collation)>,
    row: &[Value],
) -> SqlResult<Option<Vec<u8>>> {
    let mut key = Vec::new();
    for (expr, collation) in sides {
        let value = run.eval(expr, row)?;
        if value.is_null() {
            return Ok(None);
        }
        types::group_key(&value, collation, &mut key);
    }
    Ok(Some(key))
}
