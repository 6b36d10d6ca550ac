//! GROUP BY.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::vec::IntoIter;

use super::accumulate::Accumulator;
use super::memory::row_bytes;
use super::operator::{BoxedOperator, Operator, Run};
use crate::error::SqlResult;
use crate::planner::physical::Aggregate;
use crate::types::{self, Collation, Row, Value};

/// Hashes rows into groups, in the order the groups are first seen.
pub(super) struct AggregateOp<'p> {
    aggregate: &'p Aggregate,
    input: BoxedOperator<'p>,
    groups: IntoIter<Group>,
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
        }
    }

    fn group(&self, keys: Row, level: usize) -> Group {
        Group {
            keys,
            level,
            accumulators: self.aggregate.calls.iter().map(Accumulator::new).collect(),
        }
    }

    fn gather(&mut self, run: &Run<'_>) -> SqlResult<Vec<Group>> {
        let aggregate = self.aggregate;
        let collations: Vec<Collation> = aggregate
            .keys
            .iter()
            .map(|key| key.ty.collation().unwrap_or(Collation::Binary))
            .collect();
        let mut groups: Vec<Group> = Vec::new();
        let mut index: HashMap<Vec<u8>, usize> = HashMap::new();
        if aggregate.global {
            groups.push(self.group(Vec::new(), 0));
        }
        let count = aggregate.keys.len();
        let least = if aggregate.rollup { 0 } else { count };
        let mut key = Vec::new();
        while let Some(row) = self.input.next(run)? {
            run.tick()?;
            if aggregate.global {
                add(run, aggregate, &mut groups[0], &row)?;
                continue;
            }
            let mut keys = Vec::with_capacity(count);
            for expr in &aggregate.keys {
                keys.push(run.eval(expr, &row)?);
            }
            for level in (least..=count).rev() {
                key.clear();
                key.push(u8::try_from(level).unwrap_or(u8::MAX));
                for (value, collation) in keys[..level].iter().zip(&collations) {
                    types::group_key(value, *collation, &mut key);
                }
                let at = if let Some(at) = index.get(&key) {
                    *at
                } else {
                    let mut own = keys.clone();
                    own[level..].fill(Value::Null);
                    let size = key.len() + row_bytes(&own) + aggregate.calls.len() * 96;
                    run.memory.charge(size)?;
                    groups.push(self.group(own, level));
                    index.insert(key.clone(), groups.len() - 1);
                    groups.len() - 1
                };
                add(run, aggregate, &mut groups[at], &row)?;
            }
        }
        if aggregate.rollup {
            groups.sort_by(|a, b| rollup_order(a, b, aggregate));
        }
        Ok(groups)
    }
}

fn add(run: &Run<'_>, aggregate: &Aggregate, group: &mut Group, row: &[Value]) -> SqlResult<()> {
    for (accumulator, call) in group.accumulators.iter_mut().zip(&aggregate.calls) {
        accumulator.add(run, call, row)?;
    }
    Ok(())
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
        self.input.open(run, base)?;
        self.groups = self.gather(run)?.into_iter();
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let Some(group) = self.groups.next() else {
            return Ok(None);
        };
        let mut row = group.keys;
        for (accumulator, call) in group.accumulators.iter().zip(&self.aggregate.calls) {
            row.push(accumulator.result(run, call)?);
        }
        Ok(Some(row))
    }
}
