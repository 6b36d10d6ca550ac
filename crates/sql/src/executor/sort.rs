//! ORDER BY.

use std::cmp::Ordering;
use std::vec::IntoIter;

use super::memory::row_bytes;
use super::operator::{BoxedOperator, Operator, Run};
use super::project::evaluate_limit;
use crate::error::SqlResult;
use crate::planner::physical::{Limit, SortKey};
use crate::types::{self, Row, Value};

/// Sorts its input; with a limit it never holds many more rows than wanted.
pub(super) struct Sort<'p> {
    input: BoxedOperator<'p>,
    keys: &'p [SortKey],
    limit: Option<&'p Limit>,
    sorted: IntoIter<Headed>,
}

impl<'p> Sort<'p> {
    pub fn new(input: BoxedOperator<'p>, keys: &'p [SortKey], limit: Option<&'p Limit>) -> Self {
        Self {
            input,
            keys,
            limit,
            sorted: Vec::new().into_iter(),
        }
    }

    fn wanted(&self, run: &Run<'_>) -> SqlResult<usize> {
        let Some(limit) = self.limit else {
            return Ok(usize::MAX);
        };
        let (count, offset) = evaluate_limit(run, limit)?;
        Ok(usize::try_from(count.saturating_add(offset)).unwrap_or(usize::MAX))
    }
}

impl Operator for Sort<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        let wanted = self.wanted(run)?;
        if wanted == 0 {
            self.sorted = Vec::new().into_iter();
            return Ok(());
        }
        let most = wanted.saturating_mul(2).saturating_add(64);
        let mut rows: Vec<Headed> = Vec::new();
        let keys = self.keys;
        self.input.open(run, base)?;
        while let Some(row) = self.input.next(run)? {
            run.tick()?;
            run.memory.charge(row_bytes(&row))?;
            rows.push(Headed::new(row, keys));
            if rows.len() >= most {
                rows.sort_by(|a, b| a.compare(b, keys));
                let dropped: usize = rows[wanted..].iter().map(|row| row_bytes(&row.row)).sum();
                rows.truncate(wanted);
                run.memory.release(dropped);
            }
        }
        rows.sort_by(|a, b| a.compare(b, keys));
        rows.truncate(wanted);
        self.sorted = rows.into_iter();
        Ok(())
    }

    fn next(&mut self, _run: &Run<'_>) -> SqlResult<Option<Row>> {
        Ok(self.sorted.next().map(|headed| headed.row))
    }
}

/// A row with the head of its first sort value, which saves most comparisons of long text.
struct Headed {
    head: Option<(u8, u64)>,
    row: Row,
}

impl Headed {
    fn new(row: Row, keys: &[SortKey]) -> Self {
        let first = keys.first();
        let head = first.and_then(|key| types::sort_head_typed(row.get(key.column)?, &key.ty));
        Self { head, row }
    }

    fn compare(&self, other: &Self, keys: &[SortKey]) -> Ordering {
        if let (Some(key), Some((kind, head)), Some((other_kind, other_head))) =
            (keys.first(), self.head, other.head)
            && kind == other_kind
            && head != other_head
        {
            let ordering = head.cmp(&other_head);
            return if key.descending {
                ordering.reverse()
            } else {
                ordering
            };
        }
        compare_rows(&self.row, &other.row, keys)
    }
}

fn compare_rows(a: &[Value], b: &[Value], keys: &[SortKey]) -> Ordering {
    for key in keys {
        let (Some(left), Some(right)) = (a.get(key.column), b.get(key.column)) else {
            continue;
        };
        let ordering = types::sort_cmp_typed(left, right, &key.ty);
        let ordering = if key.descending {
            ordering.reverse()
        } else {
            ordering
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}
