//! The value MySQL invents for a NOT NULL column that was given none.

use super::data_type::DataType;
use super::store::integer_value;
use super::temporal::{Date, DateTime, Time};
use super::value::{Decimal, Value};

/// The value a NOT NULL column without DEFAULT gets where MySQL must invent one.
#[must_use]
pub fn implicit_default(ty: &DataType) -> Value {
    match ty {
        DataType::Null => Value::Null,
        DataType::Int {
            width, unsigned, ..
        } => integer_value(0, *width, *unsigned),
        DataType::Year => Value::Int(0),
        DataType::Decimal { scale, .. } => {
            Value::decimal(Decimal::new(0.into(), i64::from(*scale)))
        }
        DataType::Float { .. } | DataType::Double { .. } => Value::Double(0.0),
        DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. } => {
            Value::Text(String::new())
        }
        DataType::Binary { length } => Value::Bytes(vec![0; *length as usize]),
        DataType::Varbinary { .. } | DataType::Blob { .. } => Value::Bytes(Vec::new()),
        DataType::Date => Value::Date(Date::ZERO),
        DataType::Time { .. } => Value::Time(Time { micros: 0 }),
        DataType::DateTime { .. } | DataType::Timestamp { .. } => Value::DateTime(DateTime::ZERO),
        DataType::Json => Value::Json(std::sync::Arc::new(serde_json::Value::Null)),
        DataType::Enum { members, .. } => Value::Text(members.first().cloned().unwrap_or_default()),
        DataType::Set { .. } => Value::Text(String::new()),
        DataType::Bit { .. } => Value::UInt(0),
    }
}
