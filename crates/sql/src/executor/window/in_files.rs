//! Window functions over rows in temporary files.
//!
//! ```text
//! numbered  number · columns                              in the order of the input
//! sorted    partition · ORDER BY values · number · columns   for one call: ([`Sort`], in files too)
//! numbered  number · columns · result                     the next call's input; in any order
//! ```
//!
//! Of the sorted file a row is found by its place: frames look back and ahead. In the end rows are
//! sorted by their number, so that they come as from memory.

use super::partition::{Ordered, Partition};
use super::place_of;
use crate::error::{SqlError, SqlResult};
use crate::executor::operator::{Operator, Run};
use crate::executor::sort::Sort;
use crate::executor::spill::{IndexedRows, RowFile, RowReader};
use crate::plan::physical::SortKey;
use crate::plan::window::WindowCall;
use crate::types::{DataType, Row, TextSize, Value};

/// By the number before the columns.
static BY_NUMBER: [SortKey; 1] = [SortKey {
    column: 0,
    descending: false,
    ty: DataType::BIGINT,
}];

/// Rows being written, each behind its number.
pub(super) struct Numbered {
    file: RowFile,
    next: i64,
}

impl Numbered {
    /// Without rows; `None` when there is no room for files.
    pub fn create(run: &Run<'_>) -> SqlResult<Option<Self>> {
        let file = RowFile::create(run)?;
        Ok(file.map(|file| Self { file, next: 0 }))
    }

    pub fn push(&mut self, run: &Run<'_>, row: &[Value]) -> SqlResult<()> {
        let number = Value::Int(self.next);
        self.next += 1;
        self.file.push(run, &joined(number, row))
    }

    pub fn into_reader(self, run: &Run<'_>) -> SqlResult<RowReader> {
        self.file.into_reader(run)
    }
}

fn joined(first: Value, row: &[Value]) -> Row {
    let mut joined = Vec::with_capacity(row.len() + 2);
    joined.push(first);
    joined.extend_from_slice(row);
    joined
}

/// The columns of a numbered row.
pub(super) fn without_number(mut row: Row) -> Row {
    assert!(!row.is_empty(), "a row is numbered");
    row.remove(0);
    row
}

/// Gives rows of a file to [`Sort`].
struct Numbers(RowReader);

impl Operator for Numbers {
    fn open(&mut self, _run: &Run<'_>, _base: &[Value]) -> SqlResult<()> {
        Ok(())
    }

    fn next(&mut self, _run: &Run<'_>) -> SqlResult<Option<Row>> {
        self.0.next()
    }
}

/// Gives rows of a file with the place that a call gives them.
struct Places<'c> {
    call: &'c WindowCall,
    rows: RowReader,
}

impl Operator for Places<'_> {
    fn open(&mut self, _run: &Run<'_>, _base: &[Value]) -> SqlResult<()> {
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let Some(numbered) = self.rows.next()? else {
            return Ok(None);
        };
        let columns = numbered.get(1..).unwrap_or_default();
        let (partition, order) = place_of(run, self.call, columns)?;
        let mut row = joined(Value::Bytes(partition), &order);
        row.extend(numbered);
        Ok(Some(row))
    }
}

/// How the rows of [`Places`] are sorted; those that nothing tells apart as they came.
fn keys_of(call: &WindowCall) -> Vec<SortKey> {
    let key = |column, descending, ty: &DataType| SortKey {
        column,
        descending,
        ty: ty.clone(),
    };
    let mut keys = vec![key(
        0,
        false,
        &DataType::Blob {
            size: TextSize::Long,
        },
    )];
    for (at, (expr, descending)) in call.order.iter().enumerate() {
        keys.push(key(1 + at, *descending, &expr.ty));
    }
    keys.push(key(1 + call.order.len(), false, &DataType::BIGINT));
    keys
}

/// The rows of `numbered` with the results of `call`.
pub(super) fn evaluate(
    run: &Run<'_>,
    call: &WindowCall,
    numbered: RowReader,
) -> SqlResult<RowReader> {
    let keys = keys_of(call);
    let places = Box::new(Places {
        call,
        rows: numbered,
    });
    let mut sort = Sort::new(places, &keys, None);
    sort.open(run, &[])?;
    let mut sorted = file(run)?;
    while let Some(row) = sort.next(run)? {
        run.tick()?;
        sorted.push(run, &row)?;
    }
    sort.forget(run);
    let sorted = sorted.into_indexed(run)?;
    let mut results = file(run)?;
    let mut start = 0;
    while start < sorted.len() {
        let end = end_of_partition(run, &sorted, start)?;
        let rows = InFile {
            sorted: &sorted,
            start,
            end,
            order: call.order.len(),
        };
        Partition::new(call, rows).evaluate(run, &mut |at, value| {
            let mut row = sorted.with(start + at, |row| {
                Ok(row.get(1 + call.order.len()..).unwrap_or_default().to_vec())
            })?;
            row.push(value);
            results.push(run, &row)
        })?;
        start = end;
    }
    results.into_reader(run)
}

/// Rows of a file in the order of their numbers.
pub(super) fn sort_by_number(run: &Run<'_>, numbered: RowReader) -> SqlResult<Sort<'static>> {
    let mut sort = Sort::new(Box::new(Numbers(numbered)), &BY_NUMBER, None);
    sort.open(run, &[])?;
    Ok(sort)
}

fn file(run: &Run<'_>) -> SqlResult<RowFile> {
    let file = RowFile::create(run)?;
    file.ok_or_else(|| SqlError::internal("one file of a window is there, the next not"))
}

fn end_of_partition(run: &Run<'_>, sorted: &IndexedRows, start: usize) -> SqlResult<usize> {
    let first = sorted.with(start, |row| Ok(row.first().cloned()))?;
    let mut end = start + 1;
    while end < sorted.len() && sorted.with(end, |row| Ok(row.first() == first.as_ref()))? {
        run.tick()?;
        end += 1;
    }
    Ok(end)
}

/// Rows of a partition in a sorted file.
struct InFile<'a> {
    sorted: &'a IndexedRows,
    start: usize,
    end: usize,
    /// Values of ORDER BY, behind the partition.
    order: usize,
}

impl Ordered for InFile<'_> {
    fn len(&self) -> usize {
        self.end - self.start
    }

    fn with<T>(
        &self,
        at: usize,
        look: impl FnOnce(&[Value], &[Value]) -> SqlResult<T>,
    ) -> SqlResult<T> {
        assert!(at < self.len(), "a row is one of its partition");
        self.sorted.with(self.start + at, |row| {
            let (order, columns) = (row.get(1..1 + self.order), row.get(2 + self.order..));
            look(columns.unwrap_or_default(), order.unwrap_or_default())
        })
    }
}
