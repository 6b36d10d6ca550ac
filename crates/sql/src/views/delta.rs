//! From rows to what they are to a view: their key, and the row that is held.

use std::cell::Cell;
use std::collections::HashSet;

use manxdb_txn::{Transaction, Waiter};

use super::contents::RowChange;
use super::neutral;
use super::shape::{HeldTable, KeyColumn, Shape};
use crate::catalog::TableId;
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::executor::{Upkeep, encode_kept, upkeep_rows};
use crate::expr::EvalContext;
use crate::plan::Expr;
use crate::planner::delta::Step;
use crate::types::{DataType, Row, SqlMode, Value, group_key};

/// A change of one key.
pub(crate) type KeyChange = (Vec<u8>, RowChange);

/// A row that a commit changed, as it is stored.
pub(crate) struct Changed<'a> {
    pub table: TableId,
    pub suffix: &'a [u8],
    pub old: Option<Vec<u8>>,
    pub new: Option<&'a [u8]>,
}

/// The states before and after a commit.
pub(crate) struct States<'a> {
    pub before: &'a Transaction,
    pub after: &'a Transaction,
    pub waiter: &'a dyn Waiter,
    /// Counts rows that deltas touch.
    pub touched: &'a Cell<u64>,
}

impl Shape {
    /// What the changed rows of a commit are to a view of one table.
    ///
    /// # Errors
    /// 1712 for damaged records; evaluation, also what only warns.
    pub fn changes(&self, mode: SqlMode, rows: &[Changed<'_>]) -> SqlResult<Vec<KeyChange>> {
        assert_eq!(self.tables.len(), 1, "a join has steps");
        let held = self.tables.first().ok_or_else(no_table)?;
        neutral::evaluate(mode, |eval| {
            let mut changes = Vec::new();
            for row in rows {
                let (old, new) = columns_of(held, &held.wanted, row)?;
                for (columns, adds) in [(old, false), (new, true)] {
                    let Some(columns) = columns else { continue };
                    let wide = self.placed(held, columns);
                    if self.holds(eval, &wide)? {
                        self.take(eval, wide, adds, &mut changes)?;
                    }
                }
            }
            Ok(changes)
        })
    }

    /// What the changed rows of a commit are to a view of a join: step by step, in the order of
    /// FROM.
    ///
    /// # Errors
    /// As [`Shape::changes`]; storage.
    pub fn join_changes(
        &self,
        mode: SqlMode,
        states: &States<'_>,
        rows: &[Changed<'_>],
    ) -> SqlResult<Vec<KeyChange>> {
        neutral::evaluate(mode, |eval| {
            let mut changes = Vec::new();
            for (step, held) in self.steps.iter().zip(&self.tables) {
                assert_eq!(step.slots, held.slots, "a step for each table, in order");
                let (mut old, mut new) = (Vec::new(), Vec::new());
                for row in rows.iter().filter(|row| row.table == held.table.id) {
                    let (before, after) = columns_of(held, &step.wanted, row)?;
                    old.extend(before);
                    new.extend(after);
                }
                self.take_step(eval, states, step, (old, new), &mut changes)?;
            }
            Ok(changes)
        })
    }

    fn take_step(
        &self,
        eval: &EvalContext<'_>,
        states: &States<'_>,
        step: &Step,
        (old, new): (Vec<Row>, Vec<Row>),
        changes: &mut Vec<KeyChange>,
    ) -> SqlResult<()> {
        let upkeep = Upkeep {
            after: states.after,
            before: states.before,
            waiter: states.waiter,
            eval,
            touched: states.touched,
        };
        let Some((before, after)) = &step.optional else {
            for (rows, adds) in [(old, false), (new, true)] {
                if !rows.is_empty() {
                    for wide in upkeep_rows(&upkeep, &step.rows, rows, &[])? {
                        self.take(eval, wide, adds, changes)?;
                    }
                }
            }
            return Ok(());
        };
        let rows: Vec<Row> = old.into_iter().chain(new).collect();
        if rows.is_empty() {
            return Ok(());
        }
        let mut seen = HashSet::new();
        for mut other in upkeep_rows(&upkeep, &step.rows, rows, &[])? {
            if let Some(own) = other.get_mut(step.slots.clone()) {
                own.fill(Value::Null);
            }
            if !seen.insert(encode_kept(&other)?) {
                continue;
            }
            for (node, adds) in [(before, false), (after, true)] {
                for wide in upkeep_rows(&upkeep, node, Vec::new(), &other)? {
                    self.take(eval, wide, adds, changes)?;
                }
            }
        }
        Ok(())
    }

    /// Notes a joined row that comes or goes.
    fn take(
        &self,
        eval: &EvalContext<'_>,
        wide: Row,
        adds: bool,
        changes: &mut Vec<KeyChange>,
    ) -> SqlResult<()> {
        if let Some(key) = self.stored_key(&wide) {
            let row = self.held_row(eval, self.masked(wide))?;
            changes.push((key, RowChange { row, adds }));
        }
        Ok(())
    }

    /// A joined row of one table's columns.
    fn placed(&self, held: &HeldTable, mut columns: Row) -> Row {
        let mut row = vec![Value::Null; self.width];
        let places = row.get_mut(held.slots.clone()).unwrap_or_default();
        assert_eq!(places.len(), columns.len(), "a slot for each column");
        places.swap_with_slice(&mut columns);
        row
    }

    fn holds(&self, eval: &EvalContext<'_>, row: &[Value]) -> SqlResult<bool> {
        for condition in &self.conditions {
            if condition.eval_bool(eval, row, &[])? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The bytes of a row's key; `None` when a value is NULL, which equals nothing.
    fn stored_key(&self, row: &[Value]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        for key in &self.keys {
            let value = row.get(key.slot).filter(|value| !value.is_null())?;
            group_key(value, key.collation, &mut out);
        }
        Some(out)
    }

    /// What is held of a joined row.
    fn held_row(&self, eval: &EvalContext<'_>, mut row: Row) -> SqlResult<Row> {
        let Some(grouping) = &self.grouping else {
            for (key, _) in self.top.iter().flat_map(|top| &top.keys) {
                let value = key.eval(eval, &row, &[])?;
                row.push(value);
            }
            return Ok(row);
        };
        let mut held = Row::new();
        for key in &grouping.keys {
            held.push(key.eval(eval, &row, &[])?);
        }
        for call in &grouping.calls {
            let sums = matches!(
                call.kind,
                crate::plan::AggregateKind::Sum | crate::plan::AggregateKind::Avg
            );
            for argument in &call.arguments {
                held.push(argument_value(eval, argument, &row, sums)?);
            }
        }
        Ok(held)
    }

    /// What is held of each of `rows`, which the fill gave.
    ///
    /// # Errors
    /// Evaluation, also what only warns.
    pub fn held_rows(&self, mode: SqlMode, rows: Vec<Row>) -> SqlResult<Vec<Row>> {
        if self.grouping.is_none() {
            return Ok(rows.into_iter().map(|row| self.masked(row)).collect());
        }
        neutral::evaluate(mode, |eval| {
            rows.into_iter()
                .map(|row| self.held_row(eval, row))
                .collect()
        })
    }
}

impl Shape {
    /// A joined row without what is not held.
    fn masked(&self, mut row: Row) -> Row {
        for held in &self.tables {
            for (place, wanted) in held.slots.clone().zip(&held.wanted) {
                if !*wanted && let Some(value) = row.get_mut(place) {
                    *value = Value::Null;
                }
            }
        }
        row
    }
}

fn no_table() -> SqlError {
    SqlError::internal("a view is over a table")
}

/// The columns of a changed row before and after; neither when none that is wanted changed.
fn columns_of(
    held: &HeldTable,
    wanted: &[bool],
    row: &Changed<'_>,
) -> SqlResult<(Option<Row>, Option<Row>)> {
    let decode = |record: &[u8]| {
        let mut columns = vec![Value::Null; held.table.columns.len()];
        let utc = jiff::tz::TimeZone::UTC;
        let stored = (row.suffix, record);
        encoding::decode_columns(&held.table, stored, wanted, &utc, &mut columns)?;
        Ok::<Row, SqlError>(columns)
    };
    let old = row.old.as_deref().map(decode).transpose()?;
    let new = row.new.map(decode).transpose()?;
    if old == new {
        return Ok((None, None));
    }
    Ok((old, new))
}

/// As the executor takes the arguments of aggregates: sums add quotients with all their digits.
fn argument_value(
    eval: &EvalContext<'_>,
    argument: &Expr,
    row: &[Value],
    sums: bool,
) -> SqlResult<Value> {
    if !sums {
        return argument.eval(eval, row, &[]);
    }
    let value = argument.eval_unrounded(eval, row, &[])?.into_owned();
    Ok(value.stored_from(&argument.ty, &DataType::DOUBLE))
}

impl Shape {
    /// The bytes of the key that a reader asks for; `None` when the view cannot tell, and the base
    /// plan answers.
    pub fn reader_key(&self, values: &[Value]) -> Option<Vec<u8>> {
        assert_eq!(values.len(), self.keys.len(), "a value for each key column");
        let mut out = Vec::new();
        for (value, column) in values.iter().zip(&self.keys) {
            if !is_of_kind(value, column) {
                return None;
            }
            group_key(value, column.collation, &mut out);
        }
        Some(out)
    }
}

/// Whether a value is compared with the column as two values of the column are.
fn is_of_kind(value: &Value, column: &KeyColumn) -> bool {
    match &column.ty {
        DataType::Int { .. } => matches!(value, Value::Int(_) | Value::UInt(_)),
        DataType::Decimal { .. } => {
            matches!(value, Value::Int(_) | Value::UInt(_) | Value::Decimal(_))
        }
        DataType::Date => matches!(value, Value::Date(_)),
        DataType::DateTime { .. } => matches!(value, Value::DateTime(_)),
        DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. } => {
            matches!(value, Value::Text(_))
        }
        DataType::Varbinary { .. } | DataType::Blob { .. } => matches!(value, Value::Bytes(_)),
        _ => false,
    }
}
