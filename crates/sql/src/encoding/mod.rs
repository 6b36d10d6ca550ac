//! How rows and keys lie in the key space.
//!
//! ```text
//! row          0x01 ‖ table u32 BE ‖ 0u32 BE ‖ key columns       → row record
//! unique index 0x01 ‖ table u32 BE ‖ index u32 BE ‖ columns      → row key suffix
//!              (with a NULL in it: ‖ row key suffix, so that NULLs never collide)
//! index        0x01 ‖ table u32 BE ‖ index u32 BE ‖ columns ‖ row key suffix → row key suffix
//! catalog      0x00 ‖ …                                          → see `catalog::store`
//! ```
//! The *row key suffix* is the encoded primary key (or the hidden row id, 8 bytes big-endian).
//! A key column is one tag byte (0x00 NULL, 0x01 value) and an order-preserving, self-delimiting
//! body, so byte order is MySQL's order and NULL sorts first. Text keys are collation sort keys:
//! lossy, so the row record always holds every column.

use crate::catalog::{Index, Table};
use crate::error::SqlResult;
use crate::types::{DataType, Row, Value};

/// Appends one key column.
///
/// # Errors
/// 1105 when the value is not of the column's type (a defect: values are coerced before).
pub fn encode_key_column(
    _value: &Value,
    _ty: &DataType,
    _prefix: Option<u32>,
    _out: &mut Vec<u8>,
) -> SqlResult<()> {
    Ok(())
}

/// `0x01 ‖ table ‖ index`.
#[must_use]
pub fn index_prefix(_table: &Table, _index: u32) -> Vec<u8> {
    Vec::new()
}

/// Encoded primary key of a row (tables without one pass the hidden row id).
///
/// # Errors
/// As [`encode_key_column`].
pub fn row_key_suffix(_table: &Table, _row: &[Value], _hidden_row_id: u64) -> SqlResult<Vec<u8>> {
    Ok(Vec::new())
}

/// Full key of an index entry; its value is always the row key suffix.
///
/// # Errors
/// As [`encode_key_column`].
pub fn index_key(
    _table: &Table,
    _index: &Index,
    _row: &[Value],
    _suffix: &[u8],
) -> SqlResult<Vec<u8>> {
    Ok(Vec::new())
}

/// A row record: format byte, then `(column id, value)` pairs, self-describing.
#[must_use]
pub fn encode_row(_table: &Table, _row: &[Value]) -> Vec<u8> {
    Vec::new()
}

/// Back to one value a column in table order; absent columns get their `absent_value`,
/// dropped ones are skipped. TIMESTAMP values stay in UTC: the executor shifts them.
///
/// # Errors
/// 1712 when the record is damaged.
pub fn decode_row(_table: &Table, _record: &[u8]) -> SqlResult<Row> {
    Ok(Vec::new())
}
