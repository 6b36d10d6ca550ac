//! JSON_TABLE: the rows of a document.

use std::sync::Arc;
use std::vec::IntoIter;

use serde_json::Value as Json;

use super::memory::row_bytes;
use super::operator::{Operator, Run};
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::{JsonColumn, JsonColumnKind, JsonFallback, JsonRows, JsonTable};
use crate::types::{DataType, Date, Issue, Row, StoreRules, Value, fit, json_to_text, parse_json};

/// The rows of a document, all made when it is opened.
pub(super) struct JsonTableOp<'p> {
    table: &'p JsonTable,
    rows: IntoIter<Row>,
    /// Bytes of the rows, which are given back at the next opening.
    bytes: usize,
}

impl<'p> JsonTableOp<'p> {
    pub fn new(table: &'p JsonTable) -> Self {
        Self {
            table,
            rows: Vec::new().into_iter(),
            bytes: 0,
        }
    }
}

impl Operator for JsonTableOp<'_> {
    fn open(&mut self, run: &Run<'_>, base: &[Value]) -> SqlResult<()> {
        run.memory.release(std::mem::take(&mut self.bytes));
        self.rows = Vec::new().into_iter();
        let Some(document) = document(run.eval(&self.table.document, base)?)? else {
            return Ok(());
        };
        let mut made = Made {
            run,
            row: vec![Value::Null; self.table.width],
            rows: Vec::new(),
            bytes: 0,
        };
        let done = made.level(&document, &self.table.rows);
        self.bytes = made.bytes;
        self.rows = made.rows.into_iter();
        done.map(|_| ())
    }

    fn next(&mut self, run: &Run<'_>) -> SqlResult<Option<Row>> {
        run.tick()?;
        Ok(self.rows.next())
    }
}

/// The document; `None` for NULL.
///
/// # Errors
/// 3141 for text that is no JSON, 3146 for what is neither text nor JSON.
fn document(value: Value) -> SqlResult<Option<Arc<Json>>> {
    match value {
        Value::Null => Ok(None),
        Value::Json(json) => Ok(Some(json)),
        Value::Text(text) => {
            let json = parse_json(&text).map_err(|issue| issue.in_argument(1, "json_table"))?;
            Ok(Some(Arc::new(json)))
        }
        _ => {
            let message = "Invalid data type for JSON data in argument 1 to function json_table; \
                           a JSON string or JSON type is required.";
            Err(SqlError::new(3146, "22032", message))
        }
    }
}

/// Rows in the making.
struct Made<'r, 'c> {
    run: &'r Run<'c>,
    /// The row being filled: columns of levels that have no value are NULL.
    row: Row,
    rows: Vec<Row>,
    bytes: usize,
}

impl Made<'_, '_> {
    /// The rows of one level over `value`; whether there are any.
    fn level(&mut self, value: &Json, level: &JsonRows) -> SqlResult<bool> {
        let mut number = 0;
        for item in level.path.find(value) {
            self.run.tick()?;
            number += 1;
            for column in &level.columns {
                self.row[column.at] = self.column(column, item, number)?;
            }
            let mut has_rows = false;
            for nested in &level.nested {
                has_rows |= self.level(item, nested)?;
            }
            if !has_rows {
                let bytes = row_bytes(&self.row);
                self.run.memory.charge(bytes)?;
                self.bytes += bytes;
                self.rows.push(self.row.clone());
            }
        }
        for column in &level.columns {
            self.row[column.at] = Value::Null;
        }
        Ok(number > 0)
    }

    fn column(&self, column: &JsonColumn, item: &Json, number: u64) -> SqlResult<Value> {
        match &column.kind {
            JsonColumnKind::Ordinality => Ok(Value::Int(i64::try_from(number).unwrap_or(i64::MAX))),
            JsonColumnKind::Exists(path) => {
                let exists = !path.find(item).is_empty();
                self.fitted(&Json::from(u8::from(exists)), column)
            }
            JsonColumnKind::Value {
                path,
                on_empty,
                on_error,
            } => {
                let found = path.find(item);
                let value = match found.as_slice() {
                    [] => return self.fallback(on_empty, column, missing),
                    [one] => self.fitted(one, column),
                    several => {
                        let several = several.iter().map(|value| (*value).clone());
                        self.fitted(&Json::Array(several.collect()), column)
                    }
                };
                match value {
                    Err(error) if is_of_value(&error) => self.fallback(on_error, column, |_| error),
                    done => done,
                }
            }
        }
    }

    fn fallback(
        &self,
        fallback: &JsonFallback,
        column: &JsonColumn,
        error: impl FnOnce(&JsonColumn) -> SqlError,
    ) -> SqlResult<Value> {
        match fallback {
            JsonFallback::Null => Ok(Value::Null),
            JsonFallback::Default(json) => self.fitted(json, column),
            JsonFallback::Error => Err(error(column)),
        }
    }

    /// `json` as a value of the column.
    ///
    /// # Errors
    /// 3666 for an array or object in a column of scalars; 3669, 1406 and 3156 for a scalar that
    /// the column cannot hold.
    fn fitted(&self, json: &Json, column: &JsonColumn) -> SqlResult<Value> {
        let value = match json {
            _ if column.ty == DataType::Json => return Ok(Value::Json(Arc::new(json.clone()))),
            Json::Null => return Ok(Value::Null),
            Json::Array(_) | Json::Object(_) => return Err(not_scalar(column)),
            Json::String(text) => Value::Text(text.clone()),
            Json::Bool(truth) if column.ty.is_number() => Value::Int(i64::from(*truth)),
            scalar if column.ty.is_number() => number(scalar),
            scalar => Value::Text(json_to_text(scalar)),
        };
        let context = self.run.context.eval;
        let rules = StoreRules {
            mode: context.sql_mode,
            zone: &context.time_zone,
            today: Date::ZERO,
        };
        match fit(value, &column.ty, &rules) {
            (value, None | Some(Issue::Note)) => Ok(value),
            (_, Some(Issue::OutOfRange | Issue::TooManyBits)) => Err(out_of_range(column)),
            (_, Some(Issue::TooLong)) => Err(too_long(column)),
            (_, Some(_)) => Err(not_of_type(column)),
        }
    }
}

/// A number of JSON: an integer where it is one.
fn number(json: &Json) -> Value {
    match (json.as_i64(), json.as_u64()) {
        (Some(number), _) => Value::Int(number),
        (None, Some(number)) => Value::UInt(number),
        (None, None) => Value::Json(Arc::new(json.clone())),
    }
}

/// Whether an error says that a column cannot hold a value.
fn is_of_value(error: &SqlError) -> bool {
    matches!(error.code, 3666 | 3669 | 1406 | 3156)
}

fn missing(column: &JsonColumn) -> SqlError {
    let message = format!("Missing value for JSON_TABLE column '{}'", column.name);
    SqlError::new(3665, "22035", message)
}

fn not_scalar(column: &JsonColumn) -> SqlError {
    let message = format!(
        "Can't store an array or an object in the scalar JSON_TABLE column '{}'",
        column.name
    );
    SqlError::new(3666, "2203F", message)
}

fn out_of_range(column: &JsonColumn) -> SqlError {
    let message = format!(
        "Value is out of range for JSON_TABLE's column '{}'",
        column.name
    );
    SqlError::new(3669, "22003", message)
}

fn too_long(column: &JsonColumn) -> SqlError {
    let message = format!("Data too long for column '{}'", column.name);
    SqlError::new(1406, "22001", message)
}

fn not_of_type(column: &JsonColumn) -> SqlError {
    let message = format!(
        "Invalid JSON value for CAST to {} from column {} at row 1",
        column.ty.base_name().to_uppercase(),
        column.name
    );
    SqlError::new(3156, "22018", message)
}
