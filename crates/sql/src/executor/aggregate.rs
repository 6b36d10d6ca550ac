//! GROUP BY.
//!
//! Groups are kept in memory, in the order in which they are first seen. When no further group fits,
//! rows of groups that are not there yet go to temporary files, in parts by the hash of their keys,
//! and the parts are grouped one after the other (hybrid hash aggregation). The rows of a group stay
//! in their order; the order of groups means nothing to the operators above.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::vec::IntoIter;

use super::accumulate::Accumulator;
use super::memory::row_bytes;
use super::operator::{BoxedOperator, Operator, Run};
use super::spill::{Partitioned, Partitions, next_keyed};
use crate::error::SqlResult;
use crate::plan::physical::Aggregate;
use crate::plan::{AggregateCall, AggregateKind, walk};
use crate::types::{self, Collation, Row, Value};

/// Bytes that an accumulator takes at least, about.
const ACCUMULATOR_BYTES: usize = 96;

/// Hashes rows into groups.
pub(super) struct AggregateOp<'p> {
    aggregate: &'p Aggregate,
    input: BoxedOperator<'p>,
    groups: IntoIter<Group>,
    /// Bytes charged for the groups that are in memory.
    charged: usize,
    /// Rows of groups that did not fit.
    parts: Option<Partitioned>,
}

struct Group {
    keys: Row,
    /// Keys that are grouped by; fewer for the super-aggregates of ROLLUP.
    level: usize,
    accumulators: Vec<Accumulator>,
}

impl<'p> AggregateOp<'p> {
    pub fn new(aggregate: &'p Aggregate, input: BoxedOperator<'p>) -> Self {
        Self {
            aggregate,
            input,
            groups: Vec::new().into_iter(),
            charged: 0,
            parts: None,
        }
    }

    fn forget_groups(&mut self, run: &Run<'_>) {
        self.groups = Vec::new().into_iter();
        run.memory.release(std::mem::take(&mut self.charged));
    }

    fn gather(&mut self, run: &Run<'_>) -> SqlResult<()> {
        let mut table = GroupTable::new(self.aggregate, may_spill(self.aggregate));
        while let Some(row) = self.input.next(run)? {
            run.tick()?;
            table.take(run, &row)?;
        }
        let spilled = table.spilled.take();
        self.parts = spilled.map(|parts| parts.finish(run)).transpose()?;
        self.show(table);
        Ok(())
    }

    /// Groups the next part of what did not fit; false when there is none.
    fn gather_part(&mut self, run: &Run<'_>) -> SqlResult<bool> {
        self.forget_groups(run);
        let Some(mut part) = self.parts.as_mut().and_then(Partitioned::next_part) else {
            return Ok(false);
        };
        let mut table = GroupTable::new(self.aggregate, false);
        while let Some((_, row)) = next_keyed(&mut part)? {
            run.tick()?;
            table.take(run, &row)?;
        }
        self.show(table);
        Ok(true)
    }

    fn show(&mut self, table: GroupTable<'p>) {
        assert!(
            table.spilled.is_none(),
            "no rows of a group are left behind"
        );
        self.charged = table.charged;
        self.groups = table.into_groups().into_iter();
    }
}

/// Whether the keys of a row are the same when they are computed once more. Super-aggregates of
/// ROLLUP are groups of all rows.
fn may_spill(aggregate: &Aggregate) -> bool {
    !aggregate.global && !aggregate.rollup && !aggregate.keys.iter().any(walk::is_changing)
}

/// Groups being gathered.
struct GroupTable<'p> {
    aggregate: &'p Aggregate,
    collations: Vec<Collation>,
    groups: Vec<Group>,
    index: HashMap<Vec<u8>, usize>,
    /// Bytes charged for them.
    charged: usize,
    may_spill: bool,
    spilled: Option<Partitions>,
    key: Vec<u8>,
}

impl<'p> GroupTable<'p> {
    fn new(aggregate: &'p Aggregate, may_spill: bool) -> Self {
        let collation = |ty: &types::DataType| ty.collation().unwrap_or(Collation::Binary);
        let mut table = Self {
            aggregate,
            collations: aggregate.keys.iter().map(|k| collation(&k.ty)).collect(),
            groups: Vec::new(),
            index: HashMap::new(),
            charged: 0,
            may_spill,
            spilled: None,
            key: Vec::new(),
        };
        if aggregate.global {
            table.groups.push(table.group(Vec::new(), 0));
        }
        table
    }

    fn group(&self, keys: Row, level: usize) -> Group {
        Group {
            keys,
            level,
            accumulators: self.aggregate.calls.iter().map(Accumulator::new).collect(),
        }
    }

    /// Adds a row to its group, and to those of ROLLUP.
    fn take(&mut self, run: &Run<'_>, row: &[Value]) -> SqlResult<()> {
        if self.aggregate.global {
            return self.add(run, 0, row);
        }
        let mut keys = Vec::with_capacity(self.aggregate.keys.len());
        for expr in &self.aggregate.keys {
            keys.push(run.eval(expr, row)?);
        }
        let least = if self.aggregate.rollup { 0 } else { keys.len() };
        for level in (least..=keys.len()).rev() {
            if let Some(at) = self.find_or_make(run, &keys, level, row)? {
                self.add(run, at, row)?;
            }
        }
        Ok(())
    }

    /// The group of the first `level` keys; `None` when the row went to a file instead.
    fn find_or_make(
        &mut self,
        run: &Run<'_>,
        keys: &[Value],
        level: usize,
        row: &[Value],
    ) -> SqlResult<Option<usize>> {
        self.key.clear();
        self.key.push(u8::try_from(level).unwrap_or(u8::MAX));
        for (value, collation) in keys[..level].iter().zip(&self.collations) {
            types::group_key(value, *collation, &mut self.key);
        }
        if let Some(at) = self.index.get(&self.key) {
            return Ok(Some(*at));
        }
        let mut own = keys.to_vec();
        own[level..].fill(Value::Null);
        let accumulators = self.aggregate.calls.len() * ACCUMULATOR_BYTES;
        let bytes = self.key.len() + row_bytes(&own) + accumulators;
        if self.spills(run, bytes)?
            && let Some(parts) = &mut self.spilled
        {
            parts.push(run, Some(self.key.clone()), row)?;
            return Ok(None);
        }
        run.memory.charge(bytes)?;
        self.charged += bytes;
        self.groups.push(self.group(own, level));
        self.index.insert(self.key.clone(), self.groups.len() - 1);
        Ok(Some(self.groups.len() - 1))
    }

    /// Whether rows of new groups go to files: from the first one on that does not fit.
    fn spills(&mut self, run: &Run<'_>, bytes: usize) -> SqlResult<bool> {
        if self.spilled.is_none() && self.may_spill && !run.memory.fits_leaving_one_in(4, bytes) {
            self.spilled = Partitions::create(run)?;
        }
        Ok(self.spilled.is_some())
    }

    fn add(&mut self, run: &Run<'_>, at: usize, row: &[Value]) -> SqlResult<()> {
        let before = run.memory.used();
        let group = &mut self.groups[at];
        for (accumulator, call) in group.accumulators.iter_mut().zip(&self.aggregate.calls) {
            accumulator.add(run, call, row)?;
        }
        self.charged += run.memory.used().saturating_sub(before);
        Ok(())
    }

    fn into_groups(mut self) -> Vec<Group> {
        if self.aggregate.rollup {
            self.groups
                .sort_by(|a, b| rollup_order(a, b, self.aggregate));
        }
        self.groups
    }
}

impl Aggregate {
    /// GROUPING of a group of the first `level` keys.
    fn summed_over(&self, level: usize, call: &AggregateCall) -> Value {
        let grouped_by = self.keys.get(..level).unwrap_or(&self.keys);
        let bits = call.arguments.iter().fold(0, |bits, argument| {
            let is_grouped = grouped_by.iter().any(|key| walk::same(key, argument));
            bits << 1 | i64::from(!is_grouped)
        });
        Value::Int(bits)
    }
}

/// Groups by key, each super-aggregate behind what it sums up.
fn rollup_order(a: &Group, b: &Group, aggregate: &Aggregate) -> Ordering {
    let shared = a.level.min(b.level);
    for (at, key) in aggregate.keys.iter().enumerate().take(shared) {
        let ordering = types::sort_cmp_typed(&a.keys[at], &b.keys[at], &key.ty);
        if ordering.is_ne() {
            return ordering;
        }
    }
    b.level.cmp(&a.level)
}

impl Operator for AggregateOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.forget_groups(run);
        self.input.open(run, base)?;
        self.gather(run)
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let group = loop {
            match self.groups.next() {
                Some(group) => break group,
                None if self.gather_part(run)? => {}
                None => return Ok(None),
            }
        };
        let mut row = group.keys;
        for (accumulator, call) in group.accumulators.iter().zip(&self.aggregate.calls) {
            row.push(if call.kind == AggregateKind::Grouping {
                self.aggregate.summed_over(group.level, call)
            } else {
                accumulator.result(run, call)?
            });
        }
        Ok(Some(row))
    }
}
