//! Running INSERT and REPLACE: rows are filled, checked and stored one after the other.

use super::{Insert, Source};
use crate::catalog::SequenceKind;
use crate::error::{SqlError, SqlResult};
use crate::executor;
use crate::expr::assign;
use crate::plan::Expr;
use crate::statement::foreign_key::ForeignKeys;
use crate::statement::generated::warn_passed_over;
use crate::statement::rows::{Duplicate, RowWriter};
use crate::statement::{ExecContext, StatementOutcome, is_ignorable, warn};
use crate::types::{ColumnMeta, DataType, Row, Value};

/// Chances one row of REPLACE gets to remove the rows in its way: one a unique key, and some.
const REPLACE_ROUNDS_MAX: usize = 128;

/// What has happened so far.
#[derive(Default)]
struct Tally {
    affected: u64,
    matched: u64,
    records: u64,
    duplicates: u64,
    /// Of the row at hand; 0 when its number was given.
    generated: u64,
    /// Generated for a row that was not stored: the next row takes it. 0 for none.
    spare: u64,
    /// Of the first row that was stored.
    first_generated: u64,
    /// Of the last row stored or changed, given or generated.
    stored: u64,
}

impl Tally {
    /// The row at hand was not stored.
    fn give_back(&mut self) {
        if self.generated != 0 {
            self.spare = self.generated;
        }
    }
}

/// One execution.
pub(super) struct Run<'a> {
    pub(super) context: &'a ExecContext<'a>,
    pub(super) insert: &'a Insert,
    writer: RowWriter<'a>,
    keys: ForeignKeys<'a>,
    tally: Tally,
}

/// Runs a planned INSERT or REPLACE.
pub(in crate::statement) fn run(
    context: &ExecContext<'_>,
    insert: &Insert,
) -> SqlResult<StatementOutcome> {
    insert.target.touch(context)?;
    warn_passed_over(context.eval, &insert.target.table, &insert.passed_over);
    let mut run = Run::new(context, insert);
    match &insert.source {
        Source::Rows(rows) => {
            for (number, exprs) in rows.iter().enumerate() {
                context.waiter.check()?;
                let row = run.ignoring(|run| run.row_of_exprs(exprs, number + 1))?;
                run.store(row, &[], number + 1)?;
            }
        }
        Source::Query(plan) => {
            // All before the first is written: the SELECT may read the table itself.
            let rows = executor::collect(&context.reading(), plan, None)?;
            for (number, values) in rows.enumerate() {
                let mut values = values?;
                context.waiter.check()?;
                // What only ON DUPLICATE KEY UPDATE reads.
                let selected = values.split_off(insert.columns.len().min(values.len()));
                let row =
                    run.ignoring(|run| run.row_of_values(values, &plan.columns, number + 1))?;
                run.store(row, &selected, number + 1)?;
            }
        }
        Source::File(_) => return Err(SqlError::internal("LOAD DATA without its file")),
    }
    Ok(run.outcome())
}

impl<'a> Run<'a> {
    /// Nothing has happened yet.
    pub(super) fn new(context: &'a ExecContext<'a>, insert: &'a Insert) -> Self {
        Self {
            context,
            insert,
            writer: RowWriter {
                txn: context.txn,
                table: &insert.target.table,
                tz: &context.eval.time_zone,
                owners: context.owners,
            },
            keys: ForeignKeys {
                context,
                links: &insert.target.links,
            },
            tally: Tally::default(),
        }
    }

    /// Rows met, and those of them that were duplicates or made some go.
    pub(super) fn lines(&self) -> (u64, u64) {
        (self.tally.records, self.tally.duplicates)
    }

    pub(super) fn outcome(&self) -> StatementOutcome {
        let tally = &self.tally;
        let info = if self.insert.counts {
            format!(
                "Records: {}  Duplicates: {}  Warnings: {}",
                tally.records,
                tally.duplicates,
                self.context.eval.warnings.borrow().len()
            )
        } else {
            String::new()
        };
        StatementOutcome {
            affected_rows: tally.affected,
            matched_rows: tally.matched,
            last_insert_id: tally.first_generated,
            stored_id: tally.stored,
            info,
        }
    }

    /// Under IGNORE, an error about this row becomes a warning and `None`.
    pub(super) fn ignoring<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        match work(self) {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.insert.ignore && is_ignorable(&error) => {
                warn(self.context.eval, error.code, error.message);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn row_of_exprs(&mut self, exprs: &[Option<Expr>], number: usize) -> SqlResult<Row> {
        let eval = self.context.eval;
        let mut row = vec![Value::Null; self.insert.target.table.columns.len()];
        let mut dependent = self.fill_defaults(&mut row, number)?;
        for (&at, expr) in self.insert.columns.iter().zip(exprs) {
            let value = match expr {
                Some(expr) => {
                    let value = expr.eval_unrounded(eval, &row, &[])?.into_owned();
                    self.fit(at, value, &expr.ty, number)?
                }
                None if self.insert.target.default_reads_row(at) => {
                    dependent.push(at);
                    continue;
                }
                None => self.insert.target.default(eval, at, &row, number)?,
            };
            if let Some(slot) = row.get_mut(at) {
                *slot = value;
            }
        }
        self.finish(row, dependent, number)
    }

    fn row_of_values(
        &mut self,
        values: Row,
        sources: &[ColumnMeta],
        number: usize,
    ) -> SqlResult<Row> {
        let mut row = vec![Value::Null; self.insert.target.table.columns.len()];
        let dependent = self.fill_defaults(&mut row, number)?;
        for ((&at, value), source) in self.insert.columns.iter().zip(values).zip(sources) {
            let value = self.fit(at, value, &source.ty, number)?;
            if let Some(slot) = row.get_mut(at) {
                *slot = value;
            }
        }
        self.finish(row, dependent, number)
    }

    /// What follows from the given values: defaults that read them, AUTO_INCREMENT, generated
    /// columns.
    pub(super) fn finish(
        &mut self,
        mut row: Row,
        dependent: Vec<usize>,
        number: usize,
    ) -> SqlResult<Row> {
        self.fill_dependent(&mut row, dependent, number)?;
        self.generate(&mut row, number)?;
        let target = &self.insert.target;
        target.compute(self.context.eval, &mut row, number)?;
        Ok(row)
    }

    /// Defaults of the columns the statement does not name; those that read other columns are
    /// left to [`Run::fill_dependent`] and returned.
    pub(super) fn fill_defaults(&self, row: &mut Row, number: usize) -> SqlResult<Vec<usize>> {
        let mut dependent = Vec::new();
        for at in 0..row.len() {
            if self.insert.columns.contains(&at) {
                continue;
            }
            if self.insert.target.default_reads_row(at) {
                dependent.push(at);
            } else {
                self.fill_default(row, at, number)?;
            }
        }
        Ok(dependent)
    }

    /// Defaults that read other columns, once those have their values: in the order of columns.
    fn fill_dependent(
        &self,
        row: &mut Row,
        mut columns: Vec<usize>,
        number: usize,
    ) -> SqlResult<()> {
        columns.sort_unstable();
        columns
            .into_iter()
            .try_for_each(|at| self.fill_default(row, at, number))
    }

    fn fill_default(&self, row: &mut Row, at: usize, number: usize) -> SqlResult<()> {
        let target = &self.insert.target;
        let value = target.default(self.context.eval, at, row, number)?;
        if let Some(slot) = row.get_mut(at) {
            *slot = value;
        }
        Ok(())
    }

    /// A value of type `from` as the column stores it; NULL stays NULL where a number will be
    /// generated.
    pub(super) fn fit(
        &self,
        at: usize,
        value: Value,
        from: &DataType,
        number: usize,
    ) -> SqlResult<Value> {
        let column = self
            .insert
            .target
            .table
            .columns
            .get(at)
            .ok_or_else(|| SqlError::internal("INSERT into a column that is not there"))?;
        if column.auto_increment && value.is_null() {
            return Ok(Value::Null);
        }
        let value = value.stored_from(from, &column.ty);
        assign(self.context.eval, value, column, number)
    }

    /// AUTO_INCREMENT: a number for NULL (and 0), the counter raised by anything else.
    fn generate(&mut self, row: &mut Row, number: usize) -> SqlResult<()> {
        self.tally.generated = 0;
        let table = &self.insert.target.table;
        let Some((at, column)) = table
            .columns
            .iter()
            .enumerate()
            .find(|(_, column)| column.auto_increment)
        else {
            return Ok(());
        };
        let Some(slot) = row.get_mut(at) else {
            return Ok(());
        };
        let zero_generates = !self.context.eval.sql_mode.no_auto_value_on_zero;
        let given = slot.to_integer_checked().map(|(number, _)| number);
        match given {
            None => {}
            Some(0) if zero_generates => {}
            Some(given) => {
                if let Ok(given @ 1..) = u64::try_from(given) {
                    if given >= self.tally.spare {
                        self.tally.spare = 0;
                    }
                    self.context
                        .sequences
                        .raise(table.id, SequenceKind::AutoIncrement, given)?;
                }
                return Ok(());
            }
        }
        let sequences = self.context.sequences;
        let next = match std::mem::take(&mut self.tally.spare) {
            0 => {
                let most = greatest_number(&column.ty);
                sequences.next_up_to(table.id, SequenceKind::AutoIncrement, most)?
            }
            spare => spare,
        };
        let value = i64::try_from(next).map_or(Value::UInt(next), Value::Int);
        *slot = assign(self.context.eval, value, column, number)?;
        // Outside strict mode a number that does not fit was cut.
        let stored = slot.to_integer_checked().map(|(number, _)| number);
        self.tally.generated = stored.and_then(|n| u64::try_from(n).ok()).unwrap_or(next);
        Ok(())
    }

    /// Writes one row, or does what the statement says of duplicates.
    pub(super) fn store(
        &mut self,
        row: Option<Row>,
        selected: &[Value],
        number: usize,
    ) -> SqlResult<()> {
        self.tally.records += 1;
        let Some(row) = row else {
            self.tally.duplicates += 1;
            return Ok(());
        };
        let mark = self.context.txn.savepoint();
        let stored = self.ignoring(|run| run.store_row(row, selected, number))?;
        if stored.is_none() {
            self.context.txn.rollback_to(mark);
            self.tally.duplicates += 1;
            self.tally.give_back();
        }
        Ok(())
    }

    fn store_row(&mut self, row: Row, selected: &[Value], number: usize) -> SqlResult<()> {
        let target = &self.insert.target;
        target.check(self.context.eval, &row)?;
        let hidden = if target.table.primary_key.is_empty() {
            self.context
                .sequences
                .next(target.table.id, SequenceKind::RowId)?
        } else {
            0
        };
        let suffix = self.writer.suffix(&row, hidden)?;
        for _ in 0..REPLACE_ROUNDS_MAX {
            match self.writer.find_duplicate(&row, &suffix)? {
                None => {
                    self.writer.insert(&row, &suffix)?;
                    self.keys.check_parents(target.table.id, None, &row)?;
                    if self.tally.first_generated == 0 {
                        self.tally.first_generated = self.tally.generated;
                    }
                    self.note_stored(&row);
                    self.tally.affected += 1;
                    self.tally.matched += 1;
                    return Ok(());
                }
                Some(duplicate) if self.insert.replace => self.remove(&duplicate, &row)?,
                Some(duplicate) if !self.insert.on_duplicate.is_empty() => {
                    return self.update_existing(&duplicate, &row, selected, number);
                }
                Some(duplicate) => return Err(duplicate.error),
            }
        }
        Err(SqlError::internal("REPLACE met more duplicates than keys"))
    }

    /// Keeps the row's AUTO_INCREMENT value for the OK packet.
    fn note_stored(&mut self, row: &[Value]) {
        let columns = &self.insert.target.table.columns;
        let stored = columns.iter().zip(row).find(|(c, _)| c.auto_increment);
        let number = stored.and_then(|(_, value)| value.to_integer_checked());
        self.tally.stored = number.map_or(0, |(n, _)| u64::try_from(n).unwrap_or(0));
    }

    /// REPLACE: the row in the way goes. An equal one does not count when MySQL would have updated
    /// it: there is no other unique key, and nothing refers to the table.
    fn remove(&mut self, duplicate: &Duplicate, new: &[Value]) -> SqlResult<()> {
        let Some(old) = self
            .writer
            .read(&duplicate.suffix, manxdb_txn::ReadMode::Update)?
        else {
            return Err(SqlError::internal("a unique index points at no row"));
        };
        self.writer.delete(&old, &duplicate.suffix)?;
        self.keys
            .after_delete(self.insert.target.table.id, &old, 0)?;
        let table = &self.insert.target.table;
        let unique = table.indexes.iter().filter(|index| index.unique).count();
        let keys = unique + usize::from(!table.primary_key.is_empty());
        if old != new || keys > 1 || self.keys.is_parent(table.id) {
            self.tally.affected += 1;
            self.tally.matched += 1;
        }
        self.tally.duplicates += 1;
        Ok(())
    }

    /// ON DUPLICATE KEY UPDATE: counts 2 when something changed.
    fn update_existing(
        &mut self,
        duplicate: &Duplicate,
        new: &[Value],
        selected: &[Value],
        number: usize,
    ) -> SqlResult<()> {
        let eval = self.context.eval;
        let target = &self.insert.target;
        let Some(old) = self
            .writer
            .read(&duplicate.suffix, manxdb_txn::ReadMode::Update)?
        else {
            return Err(SqlError::internal("a unique index points at no row"));
        };
        let mut row = old.clone();
        let mut assigned = Vec::new();
        for (at, expr) in &self.insert.on_duplicate {
            let value = match expr {
                None if target.is_generated(*at) => continue,
                None => target.default(eval, *at, &row, number)?,
                Some(expr) => {
                    let seen = [row.as_slice(), selected].concat();
                    let value = expr.eval_unrounded(eval, &seen, &[new, new])?.into_owned();
                    let column = target.table.columns.get(*at);
                    let column = column.ok_or_else(|| SqlError::internal("no such column"))?;
                    let value = value.stored_from(&expr.ty, &column.ty);
                    assign(eval, value, column, number)?
                }
            };
            if let Some(slot) = row.get_mut(*at) {
                *slot = value;
            }
            assigned.push(*at);
        }
        self.tally.duplicates += 1;
        self.tally.give_back();
        if row == old {
            self.tally.matched += 1;
            return Ok(());
        }
        target.set_update_times(eval, &mut row, &assigned)?;
        target.compute(eval, &mut row, number)?;
        target.check(eval, &row)?;
        target.raise_counter(self.context, &assigned, &row)?;
        self.writer.update(&old, &duplicate.suffix, &row)?;
        let id = target.table.id;
        self.keys.check_parents(id, Some(&old), &row)?;
        self.keys.after_update(id, &old, &row, 0)?;
        self.note_stored(&row);
        self.tally.affected += 2;
        self.tally.matched += 2;
        Ok(())
    }
}

/// The greatest number that AUTO_INCREMENT gives to a column of type `ty`.
fn greatest_number(ty: &DataType) -> u64 {
    match ty {
        DataType::Int {
            width, unsigned, ..
        } => u64::try_from(width.range(*unsigned).1).unwrap_or(u64::MAX),
        // Integers up to here are exact.
        DataType::Float { .. } => 1 << 24,
        _ => 1 << 53,
    }
}
