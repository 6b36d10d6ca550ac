//! Window functions over rows that were collected: in memory, or in temporary files what does not fit.
//!
//! | file | |
//! |---|---|
//! | `partition` | what each function says of a row among those of its partition |
//! | `in_files` | the same rows, sorted and evaluated in temporary files |

mod in_files;
mod partition;

use std::cmp::Ordering;
use std::vec::IntoIter;

use self::in_files::{Numbered, sort_by_number};
use self::partition::{Ordered, Partition};
use super::memory::{row_bytes, value_bytes};
use super::operator::{BoxedOperator, Operator, Run};
use super::sort::Sort;
use crate::error::SqlResult;
use crate::plan::physical::Window;
use crate::plan::window::WindowCall;
use crate::types::{self, Collation, Row, Value};

/// Rows that take more than this part of a statement's memory go to files: what is computed for
/// each of them takes memory too.
const ROWS_PART: usize = 4;

/// Appends the results of window functions to each row.
pub(super) struct WindowOp<'p> {
    window: &'p Window,
    input: BoxedOperator<'p>,
    rows: IntoIter<Row>,
    /// The rows, when they are in files.
    in_files: Option<Sort<'static>>,
    /// Bytes charged for what is in memory.
    charged: usize,
}

impl<'p> WindowOp<'p> {
    pub fn new(window: &'p Window, input: BoxedOperator<'p>) -> Self {
        Self {
            window,
            input,
            rows: Vec::new().into_iter(),
            in_files: None,
            charged: 0,
        }
    }

    fn charge(&mut self, run: &Run<'_>, bytes: usize) -> SqlResult<()> {
        run.memory.charge(bytes)?;
        self.charged += bytes;
        Ok(())
    }

    /// All rows of the input: in memory, or numbered in a file.
    fn collect(&mut self, run: &Run<'_>) -> SqlResult<(Vec<Row>, Option<Numbered>)> {
        let mut rows: Vec<Row> = Vec::new();
        let mut file: Option<Numbered> = None;
        while let Some(row) = self.input.next(run)? {
            run.tick()?;
            let bytes = row_bytes(&row);
            if file.is_none() && self.charged + bytes > run.memory.limit() / ROWS_PART {
                file = Numbered::create(run)?;
                if let Some(file) = &mut file {
                    for row in rows.drain(..) {
                        file.push(run, &row)?;
                    }
                    run.memory.release(std::mem::take(&mut self.charged));
                }
            }
            match &mut file {
                Some(file) => file.push(run, &row)?,
                None => {
                    self.charge(run, bytes)?;
                    rows.push(row);
                }
            }
        }
        Ok((rows, file))
    }
}

impl Operator for WindowOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.rows = Vec::new().into_iter();
        if let Some(mut sort) = self.in_files.take() {
            sort.forget(run);
        }
        run.memory.release(std::mem::take(&mut self.charged));
        self.input.open(run, base)?;
        let (mut rows, file) = self.collect(run)?;
        if let Some(file) = file {
            let mut evaluated = file.into_reader(run)?;
            for call in &self.window.calls {
                evaluated = in_files::evaluate(run, call, evaluated)?;
            }
            self.in_files = Some(sort_by_number(run, evaluated)?);
            return Ok(());
        }
        let mut columns = Vec::with_capacity(self.window.calls.len());
        for call in &self.window.calls {
            let column = evaluate(run, call, &rows)?;
            self.charge(run, column.iter().map(value_bytes).sum())?;
            columns.push(column);
        }
        for column in columns {
            for (row, value) in rows.iter_mut().zip(column) {
                row.push(value);
            }
        }
        self.rows = rows.into_iter();
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        match &mut self.in_files {
            None => Ok(self.rows.next()),
            Some(sort) => Ok(sort.next(run)?.map(in_files::without_number)),
        }
    }
}

/// A row in window order.
struct Placed {
    /// Position in the input.
    at: usize,
    partition: Vec<u8>,
    order: Row,
}

/// The partition that a row belongs to, and its values of ORDER BY.
fn place_of(run: &Run<'_>, call: &WindowCall, row: &[Value]) -> SqlResult<(Vec<u8>, Row)> {
    let mut partition = Vec::new();
    for expr in &call.partition {
        let collation = expr.ty.collation().unwrap_or(Collation::Binary);
        types::group_key(&run.eval(expr, row)?, collation, &mut partition);
    }
    let order: SqlResult<Row> = call.order.iter().map(|(e, _)| run.eval(e, row)).collect();
    Ok((partition, order?))
}

fn evaluate(run: &Run<'_>, call: &WindowCall, rows: &[Row]) -> SqlResult<Vec<Value>> {
    let mut placed = Vec::with_capacity(rows.len());
    let mut charged = 0;
    for (at, row) in rows.iter().enumerate() {
        let (partition, order) = place_of(run, call, row)?;
        let bytes = partition.len() + row_bytes(&order) + 48;
        run.memory.charge(bytes)?;
        charged += bytes;
        placed.push(Placed {
            at,
            partition,
            order,
        });
    }
    placed.sort_by(|a, b| {
        let partitions = a.partition.cmp(&b.partition);
        partitions.then_with(|| compare_order(call, &a.order, &b.order))
    });
    let mut results = vec![Value::Null; rows.len()];
    for placed in placed.chunk_by(|one, next| one.partition == next.partition) {
        let partition = Partition::new(call, InMemory { rows, placed });
        partition.evaluate(run, &mut |at, value| {
            results[placed[at].at] = value;
            Ok(())
        })?;
    }
    run.memory.release(charged);
    Ok(results)
}

/// Rows of a partition in memory.
struct InMemory<'a> {
    rows: &'a [Row],
    placed: &'a [Placed],
}

impl Ordered for InMemory<'_> {
    fn len(&self) -> usize {
        self.placed.len()
    }

    fn with<T>(
        &self,
        at: usize,
        look: impl FnOnce(&[Value], &[Value]) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let placed = &self.placed[at];
        look(&self.rows[placed.at], &placed.order)
    }
}

fn compare_order(call: &WindowCall, a: &[Value], b: &[Value]) -> Ordering {
    for ((left, right), (expr, descending)) in a.iter().zip(b).zip(&call.order) {
        let ordering = types::sort_cmp_typed(left, right, &expr.ty);
        let ordering = if *descending {
            ordering.reverse()
        } else {
            ordering
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}
