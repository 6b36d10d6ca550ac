//! How many rows a way into a table meets.
//!
//! After ANALYZE TABLE that follows from the number of rows and of different values of the key's
//! columns. Before, a table counts as [`TABLE_ROWS`] rows, an equality on a leading index column
//! as one in fifty, a range as one in five, a column as NULL in most rows: enough to prefer unique
//! look-ups to index look-ups to ranges.

use super::keys::{count, points};
use crate::catalog::{IndexId, KeyStatistics, Table, TableStatistics};
use crate::plan::physical::KeyPart;
use crate::plan::{Expr, ExprKind};
use crate::types::{DataType, Value};

/// Rows an unknown table is taken to have.
pub(crate) const TABLE_ROWS: f64 = 1000.0;
/// Share of rows that an equality on a key column leaves.
const EQUAL: f64 = 0.02;
/// Share of rows in which a column that may be NULL is.
const NULL: f64 = 0.6;
/// Share of rows that a range leaves: with two ends, and with one.
const BETWEEN: f64 = 0.05;
const BEYOND: f64 = 0.2;
/// Bytes of a value of unknown length: of a short text, and of a long one.
const SOME_TEXT: u64 = 32;
const LONG_TEXT: u64 = 256;
/// Rows that a point of a key that is not unique has at least.
const ROWS_OF_A_POINT: f64 = 2.0;
/// The same of a point that fixes two columns by one row of values.
const ROWS_OF_A_PAIR: f64 = 8.0;

/// Rows of a whole table.
pub(crate) fn rows_of(table: &Table) -> f64 {
    table
        .statistics()
        .map_or(TABLE_ROWS, |known| as_f64(known.rows).max(1.0))
}

/// Bytes of a row, on average.
pub(super) fn row_bytes(table: &Table) -> u64 {
    if let Some(known) = table.statistics().filter(|known| known.rows > 0) {
        return known.bytes / known.rows;
    }
    let widths = table.columns.iter().map(|column| match &column.ty {
        DataType::Int { width, .. } => u64::from(width.bytes()),
        DataType::Char { length, .. } | DataType::Varchar { length, .. } => {
            u64::from(*length).min(SOME_TEXT)
        }
        DataType::Binary { length } | DataType::Varbinary { length } => {
            u64::from(*length).min(SOME_TEXT)
        }
        DataType::Text { .. } | DataType::Blob { .. } | DataType::Json => LONG_TEXT,
        _ => 8,
    });
    widths.sum()
}

/// Rows that a key of `table` with these bounds leads to; `index` as in
/// [`crate::plan::physical::Access`].
pub(super) fn rows_met(
    table: &Table,
    index: Option<usize>,
    parts: &[KeyPart],
    unique: bool,
) -> f64 {
    if parts.is_empty() {
        return rows_of(table);
    }
    let id = match index {
        None => Some(IndexId(0)),
        Some(at) => table.indexes.get(at).map(|index| index.id),
    };
    let known = table.statistics();
    let key = known.zip(id).and_then(|(known, id)| known.key(id));
    match known.zip(key) {
        Some((known, key)) => known_rows(known, key, parts, unique),
        None if unique => points(parts),
        None => guessed_rows(rows_of(table), parts),
    }
}

/// By the average number of rows that have a value, or values together, of the key's columns.
fn known_rows(
    known: &TableStatistics,
    key: &KeyStatistics,
    parts: &[KeyPart],
    unique: bool,
) -> f64 {
    let rows = as_f64(known.rows).max(1.0);
    if unique {
        return points(parts).min(rows);
    }
    let nulls = |at: usize| {
        key.nulls
            .get(at)
            .map_or(NULL, |count| as_f64(*count) / rows)
    };
    let mut met = rows;
    let mut before = 1.0;
    for (at, part) in parts.iter().enumerate() {
        let distinct = key.distinct.get(at).map_or(before, |count| as_f64(*count));
        let distinct = distinct.max(before);
        met *= match part {
            part if is_null(part) => nulls(at),
            // What is NULL in most rows has few rows of any other value.
            KeyPart::Points { values, .. } if at == 0 && nulls(at) > 0.0 => {
                (1.0 - nulls(at)) * (count(values) / (distinct - 1.0).max(1.0)).min(1.0)
            }
            KeyPart::Points { tied: Some(_), .. } => before / distinct,
            KeyPart::Points { values, .. } => (count(values) * before / distinct).min(1.0),
            KeyPart::Span { low, high } => span(low.as_ref(), high.as_ref()),
        };
        before = distinct;
    }
    met.max(1.0)
}

fn guessed_rows(mut rows: f64, parts: &[KeyPart]) -> f64 {
    for part in parts {
        rows *= match part {
            part if is_null(part) => NULL,
            KeyPart::Points { tied: Some(_), .. } => EQUAL,
            // A list on a later column leaves no more than the columns before it do.
            KeyPart::Points { values, .. } => (EQUAL * count(values)).min(1.0),
            KeyPart::Span { low, high } => span(low.as_ref(), high.as_ref()),
        };
    }
    rows.max(rows_of_sets(parts))
}

/// Rows that sets of points lead to at least. Each row of values is taken for several rows of the
/// table, fewer the more columns it fixes, so that a unique key over all of them comes first.
fn rows_of_sets(parts: &[KeyPart]) -> f64 {
    let tied = |part: &&KeyPart| matches!(part, KeyPart::Points { tied: Some(_), .. });
    let fixed = parts.iter().filter(tied).count();
    if fixed == 0 {
        return ROWS_OF_A_POINT;
    }
    let halvings = i32::try_from(fixed - 1).unwrap_or(i32::MAX);
    let rows_of_a_point = ROWS_OF_A_PAIR * 0.5_f64.powi(halvings);
    points(parts) * rows_of_a_point.max(ROWS_OF_A_POINT)
}

fn span(low: Option<&Expr>, high: Option<&Expr>) -> f64 {
    match (low, high) {
        (Some(_), Some(_)) => BETWEEN,
        _ => BEYOND,
    }
}

fn is_null(part: &KeyPart) -> bool {
    let is_null = |expr: &Expr| matches!(expr.kind, ExprKind::Literal(Value::Null));
    matches!(
        part,
        KeyPart::Points { values, null_matches: true, .. } if values.iter().all(is_null)
    )
}

#[allow(clippy::cast_precision_loss)] // an estimate
fn as_f64(count: u64) -> f64 {
    count as f64
}
