//! A row as bytes, for temporary files only: no release reads what another has written.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{SqlError, SqlResult};
use crate::types::{Date, DateTime, Decimal, Row, Time, Value};

#[derive(Serialize, Deserialize)]
enum Stored<'a> {
    Null,
    Int(i64),
    UInt(u64),
    Double(f64),
    /// Digits as a big-endian two's complement number, and the scale.
    Decimal(Vec<u8>, i64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Date(Date),
    Time(Time),
    DateTime(DateTime),
    Json(String),
}

/// Appends `row`, its length before it.
pub(super) fn encode(row: &[Value], out: &mut Vec<u8>) -> SqlResult<()> {
    let values = row
        .iter()
        .map(stored)
        .collect::<SqlResult<Vec<Stored<'_>>>>()?;
    let bytes = postcard::to_stdvec(&values).map_err(|error| unwritable(&error))?;
    let length = u32::try_from(bytes.len()).map_err(|error| unwritable(&error))?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&bytes);
    Ok(())
}

/// Takes a row from the front of `bytes`; `None` when they hold none.
pub(super) fn decode(bytes: &mut &[u8]) -> Option<Row> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (row, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    let values: Vec<Stored<'_>> = postcard::from_bytes(row).ok()?;
    values.into_iter().map(value).collect()
}

fn stored(value: &Value) -> SqlResult<Stored<'_>> {
    Ok(match value {
        Value::Null => Stored::Null,
        Value::Int(number) => Stored::Int(*number),
        Value::UInt(number) => Stored::UInt(*number),
        Value::Double(number) => Stored::Double(*number),
        Value::Decimal(decimal) => {
            let (digits, scale) = decimal.as_bigint_and_exponent();
            Stored::Decimal(digits.to_signed_bytes_be(), scale)
        }
        Value::Text(text) => Stored::Text(text),
        Value::Bytes(bytes) => Stored::Bytes(bytes),
        Value::Date(date) => Stored::Date(*date),
        Value::Time(time) => Stored::Time(*time),
        Value::DateTime(value) => Stored::DateTime(*value),
        Value::Json(json) => {
            Stored::Json(serde_json::to_string(json).map_err(|error| unwritable(&error))?)
        }
    })
}

fn value(stored: Stored<'_>) -> Option<Value> {
    Some(match stored {
        Stored::Null => Value::Null,
        Stored::Int(number) => Value::Int(number),
        Stored::UInt(number) => Value::UInt(number),
        Stored::Double(number) => Value::Double(number),
        Stored::Decimal(digits, scale) => {
            let digits = bigdecimal::num_bigint::BigInt::from_signed_bytes_be(&digits);
            Value::Decimal(Box::new(Decimal::new(digits, scale)))
        }
        Stored::Text(text) => Value::Text(text.to_string()),
        Stored::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        Stored::Date(date) => Value::Date(date),
        Stored::Time(time) => Value::Time(time),
        Stored::DateTime(value) => Value::DateTime(value),
        Stored::Json(text) => Value::Json(Arc::new(serde_json::from_str(&text).ok()?)),
    })
}

fn unwritable(error: &dyn std::fmt::Display) -> SqlError {
    SqlError::internal(format!("a row for a temporary file: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_comes_back() {
        let row = vec![
            Value::Null,
            Value::Int(-5),
            Value::UInt(u64::MAX),
            Value::Double(-0.1),
            Value::Decimal(Box::new("-12345678901234567890.50".parse().unwrap())),
            Value::Text("\u{e9}\0".into()),
            Value::Bytes(vec![0, 255]),
            Value::Date(Date {
                year: 0,
                month: 0,
                day: 0,
            }),
            Value::Time(Time { micros: -1 }),
            Value::DateTime(DateTime {
                date: Date {
                    year: 9999,
                    month: 12,
                    day: 31,
                },
                micros: 86_399_999_999,
            }),
            Value::Json(Arc::new(serde_json::json!({"a": [1, 2.5, null]}))),
        ];
        let mut bytes = Vec::new();
        encode(&row, &mut bytes).unwrap();
        encode(&[], &mut bytes).unwrap();
        let mut rest = bytes.as_slice();
        assert_eq!(decode(&mut rest), Some(row));
        assert_eq!(decode(&mut rest), Some(Vec::new()));
        assert_eq!(decode(&mut rest), None);
        assert_eq!(decode(&mut &bytes[..20]), None);
    }
}
