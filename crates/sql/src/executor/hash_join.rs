//! Joins of wide rows by hashing the right side.
//!
//! Where the right side does not fit into memory, both sides are written to temporary files, in
//! parts by the hash of the join key, and joined part by part. That changes the order of the
//! rows, so it is not done where something relies on it.

use std::collections::HashMap;
use std::ops::Range;

use super::memory::row_bytes;
use super::operator::{BoxedOperator, Operator, Run};
use super::spill::{Partitioned, Partitions, RowReader, next_keyed};
use crate::error::{SqlError, SqlResult};
use crate::plan::Expr;
use crate::plan::physical::{HashKeys, Join, JoinKind};
use crate::types::{self, Collation, Row, Value};

/// Right slots of rows, by the group key of the join columns.
type Table = HashMap<Vec<u8>, Vec<Row>>;

/// Hashes the right side once and looks left rows up in it.
pub(super) struct HashJoin<'p> {
    kind: JoinKind,
    keys: &'p HashKeys,
    slots: Range<usize>,
    left: BoxedOperator<'p>,
    right: BoxedOperator<'p>,
    /// The right side changes between openings: it reads a recursive CTE.
    changing: bool,
    /// The order of the left rows is relied on.
    keeps_order: bool,
    table: Option<Table>,
    /// Bytes charged for the table.
    charged: usize,
    /// Both sides lie in files.
    parts: Option<Parts>,
    current: Option<Probe>,
}

/// What is left of a join by parts.
struct Parts {
    right: Partitioned,
    left: Partitioned,
    /// Left rows of the part that is in memory.
    probes: Option<RowReader>,
}

/// A left row among its candidates.
struct Probe {
    row: Row,
    key: Option<Vec<u8>>,
    at: usize,
    found: bool,
}

/// What became of reading the right side.
enum Built {
    Whole,
    InParts(Partitions),
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
            changing: crate::plan::walk::reads_cte(&join.right, None),
            keeps_order: join.keeps_order,
            slots: join.right_slots.clone(),
            left,
            right,
            table: None,
            charged: 0,
            parts: None,
            current: None,
        }
    }

    /// The right side depends on nothing outside itself: one table serves all openings, unless it
    /// is too large to be one.
    fn hash_right(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<Built> {
        if self.table.is_some() && self.parts.is_none() && !self.changing {
            return Ok(Built::Whole);
        }
        self.parts = None;
        self.forget_table(run);
        let mut spilled: Option<Partitions> = None;
        let mut table = Table::new();
        self.right.open(run, base)?;
        while let Some(row) = self.right.next(run)? {
            run.tick()?;
            let sides = self.keys.pairs.iter().map(|(_, right, c)| (right, *c));
            let Some(key) = join_key(run, sides, &row)? else {
                continue;
            };
            let kept = row.get(self.slots.clone()).unwrap_or_default().to_vec();
            let bytes = row_bytes(&kept) + key.len();
            if spilled.is_none() && self.may_spill() && !run.memory.fits_leaving_one_in(2, bytes) {
                spilled = self.move_to_files(run, &mut table)?;
            }
            match &mut spilled {
                Some(parts) => parts.push(run, Some(key), &kept)?,
                None => {
                    run.memory.charge(bytes)?;
                    self.charged += bytes;
                    table.entry(key).or_default().push(kept);
                }
            }
        }
        self.table = Some(table);
        Ok(spilled.map_or(Built::Whole, Built::InParts))
    }

    /// One bucket of all rows cannot be cut into parts.
    fn may_spill(&self) -> bool {
        !self.keeps_order && !self.changing && !self.keys.pairs.is_empty()
    }

    fn forget_table(&mut self, run: &Run<'_>) {
        self.table = None;
        run.memory.release(std::mem::take(&mut self.charged));
    }

    /// Writes the table to files, if there are any.
    fn move_to_files(&mut self, run: &Run<'_>, table: &mut Table) -> SqlResult<Option<Partitions>> {
        let Some(mut parts) = Partitions::create(run)? else {
            return Ok(None);
        };
        for (key, rows) in table.drain() {
            for row in rows {
                parts.push(run, Some(key.clone()), &row)?;
            }
        }
        run.memory.release(std::mem::take(&mut self.charged));
        Ok(Some(parts))
    }

    /// Writes the left side to files too.
    fn spill_left(&mut self, run: &Run<'_>, right: Partitions) -> SqlResult<()> {
        let Some(mut left) = Partitions::create(run)? else {
            return Err(SqlError::internal(
                "one side of a join has files, the other none",
            ));
        };
        while let Some(row) = self.left.next(run)? {
            run.tick()?;
            let key = self.left_key(run, &row)?;
            left.push(run, key, &row)?;
        }
        self.parts = Some(Parts {
            right: right.finish(run)?,
            left: left.finish(run)?,
            probes: None,
        });
        Ok(())
    }

    fn left_key(&self, run: &Run<'_>, row: &[Value]) -> SqlResult<Option<Vec<u8>>> {
        let sides = self.keys.pairs.iter().map(|(left, _, c)| (left, *c));
        join_key(run, sides, row)
    }

    /// The next left row with its key.
    fn next_left(&mut self, run: &Run<'_>) -> SqlResult<Option<(Row, Option<Vec<u8>>)>> {
        loop {
            let Some(parts) = &mut self.parts else {
                let Some(row) = self.left.next(run)? else {
                    return Ok(None);
                };
                let key = self.left_key(run, &row)?;
                return Ok(Some((row, key)));
            };
            if let Some(row) = parts.left.keyless.next()? {
                return Ok(Some((row, None)));
            }
            if let Some(probes) = &mut parts.probes
                && let Some((key, row)) = next_keyed(probes)?
            {
                return Ok(Some((row, Some(key))));
            }
            if !self.load_part(run)? {
                return Ok(None);
            }
        }
    }

    /// Takes the next part into memory; false when there is none.
    fn load_part(&mut self, run: &Run<'_>) -> SqlResult<bool> {
        self.forget_table(run);
        let Some(parts) = &mut self.parts else {
            return Ok(false);
        };
        parts.probes = parts.left.next_part();
        let (Some(mut right), true) = (parts.right.next_part(), parts.probes.is_some()) else {
            return Ok(false);
        };
        let mut table = Table::new();
        while let Some((key, row)) = next_keyed(&mut right)? {
            run.tick()?;
            let bytes = row_bytes(&row) + key.len();
            run.memory.charge(bytes)?;
            self.charged += bytes;
            table.entry(key).or_default().push(row);
        }
        self.table = Some(table);
        Ok(true)
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
        let built = self.hash_right(run, base)?;
        self.left.open(run, base)?;
        match built {
            Built::Whole => Ok(()),
            Built::InParts(right) => self.spill_left(run, right),
        }
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        loop {
            if self.current.is_none() {
                let Some((row, key)) = self.next_left(run)? else {
                    return Ok(None);
                };
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
