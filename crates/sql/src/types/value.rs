//! One SQL value at run time.

use std::sync::Arc;

use super::temporal::{Date, DateTime, Time};

/// Exact number of up to 65 digits; the scale is the one MySQL would show.
pub type Decimal = bigdecimal::BigDecimal;

/// A value as expressions compute with it. The declared [`super::DataType`] travels beside it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// Signed integers of every width, booleans, YEAR.
    Int(i64),
    /// BIGINT UNSIGNED, BIT, and results above `i64::MAX`.
    UInt(u64),
    /// FLOAT and DOUBLE.
    Double(f64),
    /// DECIMAL and exact literals with a fraction.
    Decimal(Box<Decimal>),
    /// Character strings, ENUM, SET.
    Text(String),
    /// BINARY, BLOB, hexadecimal literals.
    Bytes(Vec<u8>),
    /// DATE.
    Date(Date),
    /// TIME.
    Time(Time),
    /// DATETIME, and TIMESTAMP already in the session's time zone.
    DateTime(DateTime),
    /// JSON document.
    Json(Arc<serde_json::Value>),
}

/// A row: one value a column, in plan order.
pub type Row = Vec<Value>;

impl Value {
    /// Whether this is NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }
}
