//! ORDER BY.

use std::cmp::Ordering;
use std::vec::IntoIter;

use super::memory::row_bytes;
use super::operator::{BoxedOperator, Operator, Run};
use super::project::evaluate_limit;
use super::spill::{RowFile, RowReader};
use crate::error::SqlResult;
use crate::plan::physical::{Limit, SortKey};
use crate::types::{self, Row, Value};

/// A run in a file takes at least this part of a statement's memory.
const RUN_PART: usize = 16;

/// Sorts its input; with a limit it never holds many more rows than wanted. What does not fit into
/// memory is sorted in runs, which are merged as they are read.
pub(super) struct Sort<'p> {
    input: BoxedOperator<'p>,
    keys: &'p [SortKey],
    limit: Option<&'p Limit>,
    /// The last run, which is in memory.
    sorted: IntoIter<Headed>,
    /// Those before it, each with its next row.
    runs: Vec<(Headed, RowReader)>,
    /// Rows still wanted.
    left: usize,
    /// Bytes charged for rows in memory.
    charged: usize,
}

impl<'p> Sort<'p> {
    pub fn new(input: BoxedOperator<'p>, keys: &'p [SortKey], limit: Option<&'p Limit>) -> Self {
        Self {
            input,
            keys,
            limit,
            sorted: Vec::new().into_iter(),
            runs: Vec::new(),
            left: 0,
            charged: 0,
        }
    }

    /// Lets go of all rows.
    pub fn forget(&mut self, run: &Run<'_>) {
        self.sorted = Vec::new().into_iter();
        self.runs.clear();
        run.memory.release(std::mem::take(&mut self.charged));
    }

    /// Writes a sorted run to a file, if there may be one; whether it did.
    fn spill(&mut self, run: &Run<'_>, rows: &mut Vec<Headed>) -> SqlResult<bool> {
        if rows.is_empty() {
            return Ok(false);
        }
        let Some(mut file) = RowFile::create(run)? else {
            return Ok(false);
        };
        rows.sort_by(|a, b| a.compare(b, self.keys));
        for row in rows.drain(..) {
            file.push(run, &row.row)?;
        }
        run.memory.release(std::mem::take(&mut self.charged));
        let mut reader = file.into_reader(run)?;
        if let Some(first) = reader.next()? {
            self.runs.push((Headed::new(first, self.keys), reader));
        }
        Ok(true)
    }

    /// The least of the next rows of all runs; of equal ones that of the earliest run.
    fn next_merged(&mut self) -> SqlResult<Option<Row>> {
        let keys = self.keys;
        let least = |a: &usize, b: &usize| match (self.runs.get(*a), self.runs.get(*b)) {
            (Some((a, _)), Some((b, _))) => a.compare(b, keys),
            _ => Ordering::Equal,
        };
        let first = (0..self.runs.len()).min_by(least);
        let Some((at, (head, reader))) = first.and_then(|at| Some((at, self.runs.get_mut(at)?)))
        else {
            return Ok(self.sorted.next().map(|headed| headed.row));
        };
        let in_memory = self.sorted.as_slice().first();
        if in_memory.is_some_and(|row| row.compare(head, keys) == Ordering::Less) {
            return Ok(self.sorted.next().map(|headed| headed.row));
        }
        let row = match reader.next()? {
            Some(next) => std::mem::replace(head, Headed::new(next, keys)).row,
            None => self.runs.remove(at).0.row,
        };
        Ok(Some(row))
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
        self.forget(run);
        self.left = wanted;
        if wanted == 0 {
            return Ok(());
        }
        let most = wanted.saturating_mul(2).saturating_add(64);
        let mut rows: Vec<Headed> = Vec::new();
        let keys = self.keys;
        self.input.open(run, base)?;
        while let Some(row) = self.input.next(run)? {
            run.tick()?;
            let bytes = row_bytes(&row);
            // Runs of a few rows would be too many files.
            if !run.memory.fits_leaving_one_in(4, bytes)
                && self.charged >= run.memory.limit() / RUN_PART
            {
                self.spill(run, &mut rows)?;
            }
            run.memory.charge(bytes)?;
            self.charged += bytes;
            rows.push(Headed::new(row, keys));
            if rows.len() >= most {
                rows.sort_by(|a, b| a.compare(b, keys));
                let dropped: usize = rows[wanted..].iter().map(|row| row_bytes(&row.row)).sum();
                rows.truncate(wanted);
                run.memory.release(dropped);
                self.charged = self.charged.saturating_sub(dropped);
            }
        }
        rows.sort_by(|a, b| a.compare(b, keys));
        rows.truncate(wanted);
        self.sorted = rows.into_iter();
        Ok(())
    }

    fn next(&mut self, _run: &Run<'_>) -> SqlResult<Option<Row>> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        self.left = left;
        self.next_merged()
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
