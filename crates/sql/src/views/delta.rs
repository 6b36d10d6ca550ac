//! From rows to what they are to a view: their key, and the row that is held.

use super::contents::RowChange;
use super::neutral;
use super::shape::{KeyColumn, Shape};
use crate::encoding;
use crate::error::SqlResult;
use crate::expr::{EvalContext, Expr};
use crate::types::{DataType, Row, SqlMode, Value, group_key};

/// A change of one key.
pub(super) type KeyChange = (Vec<u8>, RowChange);

impl Shape {
    /// What a change of the row under `suffix` from `old` to `new` is to the view. Records as they
    /// are stored.
    ///
    /// # Errors
    /// 1712 for damaged records; evaluation, also what only warns.
    pub fn changes(
        &self,
        mode: SqlMode,
        suffix: &[u8],
        old: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> SqlResult<Vec<KeyChange>> {
        neutral::evaluate(mode, |eval| {
            let mut changes = Vec::new();
            for (record, adds) in [(old, false), (new, true)] {
                let Some(record) = record else { continue };
                if let Some((key, row)) = self.held_record(eval, suffix, record)? {
                    changes.push((key, RowChange { row, adds }));
                }
            }
            if let [(old_key, old), (new_key, new)] = changes.as_slice()
                && old_key == new_key
                && old.row == new.row
            {
                changes.clear();
            }
            Ok(changes)
        })
    }

    /// The key and the held row of a stored row; `None` when the view does not hold it.
    fn held_record(
        &self,
        eval: &EvalContext<'_>,
        _suffix: &[u8],
        record: &[u8],
    ) -> SqlResult<Option<(Vec<u8>, Row)>> {
        let mut columns = vec![Value::Null; self.table.columns.len()];
        let utc = jiff::tz::TimeZone::UTC;
        encoding::decode_columns(&self.table, record, &self.wanted, &utc, &mut columns)?;
        let mut row = vec![Value::Null; self.width];
        let places = row.get_mut(self.slots.clone()).unwrap_or_default();
        assert_eq!(places.len(), columns.len(), "a slot for each column");
        places.swap_with_slice(&mut columns);
        for condition in &self.conditions {
            if condition.eval_bool(eval, &row, &[])? != Some(true) {
                return Ok(None);
            }
        }
        let Some(key) = self.stored_key(&row) else {
            return Ok(None);
        };
        Ok(Some((key, self.held_row(eval, row)?)))
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
    fn held_row(&self, eval: &EvalContext<'_>, row: Row) -> SqlResult<Row> {
        let Some(grouping) = &self.grouping else {
            return Ok(row);
        };
        let mut held = Row::new();
        for key in &grouping.keys {
            held.push(key.eval(eval, &row, &[])?);
        }
        for call in &grouping.calls {
            let sums = matches!(
                call.kind,
                crate::binder::AggregateKind::Sum | crate::binder::AggregateKind::Avg
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
        for (place, wanted) in self.slots.clone().zip(&self.wanted) {
            if !*wanted && let Some(value) = row.get_mut(place) {
                *value = Value::Null;
            }
        }
        row
    }
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
