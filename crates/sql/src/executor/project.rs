//! Operators that look at one row at a time.

use std::vec::IntoIter;

use super::memory::row_bytes;
use super::operator::{BoxedOperator, Operator, Run};
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::Limit;
use crate::plan::{Expr, ExprKind};
use crate::types::{self, Collation, Row, Value};

/// The base row, once.
#[derive(Default)]
pub(super) struct Single {
    row: Option<Row>,
}

impl Operator for Single {
    fn open(&mut self, _run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.row = Some(base.to_vec());
        Ok(())
    }

    fn next(&mut self, _run: &Run<'_>) -> SqlResult<Option<Row>> {
        Ok(self.row.take())
    }
}

/// Rows of expressions.
pub(super) struct ValuesOp<'p> {
    rows: &'p [Vec<Expr>],
    at: usize,
}

impl<'p> ValuesOp<'p> {
    pub fn new(rows: &'p [Vec<Expr>]) -> Self {
        Self { rows, at: 0 }
    }
}

impl Operator for ValuesOp<'_> {
    fn open(&mut self, _run: &Run<'_>, _base: &[Value]) -> SqlResult<()> {
        self.at = 0;
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let Some(row) = self.rows.get(self.at) else {
            return Ok(None);
        };
        self.at += 1;
        let values: SqlResult<Row> = row.iter().map(|expr| run.eval(expr, &[])).collect();
        values.map(Some)
    }
}

/// Begins a wide row.
pub(super) struct From<'p> {
    width: usize,
    input: BoxedOperator<'p>,
}

impl<'p> From<'p> {
    pub fn new(width: usize, input: BoxedOperator<'p>) -> Self {
        Self { width, input }
    }
}

impl Operator for From<'_> {
    fn open(&mut self, run: &Run<'_>, _base: &[Value]) -> SqlResult<()> {
        self.input.open(run, &vec![Value::Null; self.width])
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        self.input.next(run)
    }
}

/// Keeps rows for which all conditions are true.
pub(super) struct Filter<'p> {
    input: BoxedOperator<'p>,
    predicates: &'p [Expr],
}

impl<'p> Filter<'p> {
    pub fn new(input: BoxedOperator<'p>, predicates: &'p [Expr]) -> Self {
        Self { input, predicates }
    }
}

impl Operator for Filter<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.input.open(run, base)
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        while let Some(row) = self.input.next(run)? {
            run.tick()?;
            if run.holds(self.predicates, &row)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    fn prepare(&mut self, run: &Run<'_>, bases: &[Row]) -> SqlResult<()> {
        self.input.prepare(run, bases)
    }
}

/// Computes output rows. A column that nothing after it needs is moved there, not copied.
pub(super) struct Project<'p> {
    input: BoxedOperator<'p>,
    /// What is computed, or copied, with its place in the output.
    computed: Vec<(usize, &'p Expr)>,
    /// Columns that move: from where to where.
    moved: Vec<(usize, usize)>,
    width: usize,
    /// The output is the beginning of the row as it is.
    keeps_row: bool,
}

impl<'p> Project<'p> {
    pub fn new(input: BoxedOperator<'p>, expressions: &'p [Expr]) -> Self {
        let mut computed = Vec::new();
        let mut moved: Vec<(usize, usize)> = Vec::with_capacity(expressions.len());
        for (place, expr) in expressions.iter().enumerate() {
            match expr.kind {
                ExprKind::Column(at) if moved.iter().all(|(from, _)| *from != at) => {
                    moved.push((at, place));
                }
                _ => computed.push((place, expr)),
            }
        }
        Self {
            input,
            keeps_row: computed.is_empty() && moved.iter().all(|(from, place)| from == place),
            computed,
            moved,
            width: expressions.len(),
        }
    }
}

impl Operator for Project<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.input.open(run, base)
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let Some(mut row) = self.input.next(run)? else {
            return Ok(None);
        };
        if self.keeps_row {
            if row.len() < self.width {
                return Err(missing(row.len()));
            }
            row.truncate(self.width);
            return Ok(Some(row));
        }
        let mut output = vec![Value::Null; self.width];
        for (place, expr) in &self.computed {
            output[*place] = run.eval(expr, &row)?;
        }
        for (from, place) in &self.moved {
            let value = row.get_mut(*from).ok_or_else(|| missing(*from))?;
            std::mem::swap(&mut output[*place], value);
        }
        Ok(Some(output))
    }
}

fn missing(at: usize) -> SqlError {
    SqlError::internal(format!("column {at} is not there at run time"))
}

/// Appends the group key of the first columns.
pub(super) fn row_key(row: &[Value], collations: &[Collation], key: &mut Vec<u8>) {
    for (value, collation) in row.iter().zip(collations) {
        types::group_key(value, *collation, key);
    }
}

/// LIMIT and OFFSET.
pub(super) struct LimitOp<'p> {
    input: BoxedOperator<'p>,
    limit: &'p Limit,
    left: u64,
}

impl<'p> LimitOp<'p> {
    pub fn new(input: BoxedOperator<'p>, limit: &'p Limit) -> Self {
        Self {
            input,
            limit,
            left: 0,
        }
    }
}

impl Operator for LimitOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        let (count, offset) = evaluate_limit(run, self.limit)?;
        self.left = count;
        if count == 0 {
            return Ok(());
        }
        self.input.open(run, base)?;
        for _ in 0..offset {
            run.tick()?;
            if self.input.next(run)?.is_none() {
                self.left = 0;
                break;
            }
        }
        Ok(())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.input.next(run)
    }
}

/// Rows to give and to skip.
pub(super) fn evaluate_limit(run: &Run<'_>, limit: &Limit) -> SqlResult<(u64, u64)> {
    let number = |expr: &Option<Expr>, absent: u64| -> SqlResult<u64> {
        let Some(expr) = expr else { return Ok(absent) };
        let wrong = || SqlError::new(1210, "HY000", "Incorrect arguments to LIMIT");
        match run.eval(expr, &[])? {
            Value::Int(number) => u64::try_from(number).map_err(|_| wrong()),
            Value::UInt(number) => Ok(number),
            Value::Text(text) => text.trim().parse().map_err(|_| wrong()),
            other => other
                .to_i64()
                .and_then(|number| u64::try_from(number).ok())
                .ok_or_else(wrong),
        }
    };
    Ok((number(&limit.count, u64::MAX)?, number(&limit.offset, 0)?))
}

/// Drops columns at the end.
pub(super) struct Cut<'p> {
    input: BoxedOperator<'p>,
    width: usize,
}

impl<'p> Cut<'p> {
    pub fn new(input: BoxedOperator<'p>, width: usize) -> Self {
        Self { input, width }
    }
}

impl Operator for Cut<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        self.input.open(run, base)
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        let row = self.input.next(run)?;
        Ok(row.map(|mut row| {
            row.truncate(self.width);
            row
        }))
    }
}

/// All rows of an input, charged to the statement.
pub(super) fn collect(run: &Run<'_>, input: &mut BoxedOperator<'_>) -> SqlResult<IntoIter<Row>> {
    let mut rows = Vec::new();
    while let Some(row) = input.next(run)? {
        run.tick()?;
        run.memory.charge(row_bytes(&row))?;
        rows.push(row);
    }
    Ok(rows.into_iter())
}
