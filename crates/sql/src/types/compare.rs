//! Comparing values of any kinds.

use std::cmp::Ordering;

use super::collate::{compare_text, sort_head, sort_key, write_escaped};
use super::convert_json::to_json;
use super::data_type::{Collation, DataType};
use super::json_text::{compare_json, json_to_text};
use super::members::set_bits;
use super::number::write_decimal;
use super::temporal::{Date, DateTime};
use super::value::Value;

/// Compares as SQL's operators do; `None` when a side is NULL or they cannot be compared.
/// Text under `collation`; text against a number as doubles; text against a date as dates.
#[must_use]
pub fn compare(a: &Value, b: &Value, collation: Collation) -> Option<Ordering> {
    match (a, b) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(compare_text(collation, a, b)),
        (Value::UInt(a), Value::UInt(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::UInt(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::UInt(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
        (Value::Bytes(a), Value::Text(b)) => Some(a.as_slice().cmp(b.as_bytes())),
        (Value::Text(a), Value::Bytes(b)) => Some(a.as_bytes().cmp(b)),
        (Value::Json(a), Value::Json(b)) => Some(compare_json(a, b)),
        (Value::Json(a), other) => Some(compare_json(a, &to_json(other))),
        (other, Value::Json(b)) => Some(compare_json(&to_json(other), b)),
        (Value::Date(a), Value::Date(b)) => Some(a.cmp(b)),
        (Value::Time(a), Value::Time(b)) => Some(a.cmp(b)),
        (Value::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
        _ if a.is_temporal() || b.is_temporal() => compare_temporal(a, b),
        _ => compare_numbers(a, b),
    }
}

/// At least one side is a date or time, and they are not of the same kind.
fn compare_temporal(a: &Value, b: &Value) -> Option<Ordering> {
    if a.is_number() || b.is_number() {
        return compare_numbers(a, b);
    }
    if matches!((a, b), (Value::Time(_), Value::Text(_) | Value::Bytes(_)))
        || matches!((a, b), (Value::Text(_) | Value::Bytes(_), Value::Time(_)))
    {
        return Some(a.to_time()?.cmp(&b.to_time()?));
    }
    let (a, b): (DateTime, DateTime) = (a.to_datetime(Date::ZERO)?, b.to_datetime(Date::ZERO)?);
    Some(a.cmp(&b))
}

fn compare_numbers(a: &Value, b: &Value) -> Option<Ordering> {
    let exact = |value: &Value| matches!(value, Value::Int(_) | Value::UInt(_) | Value::Decimal(_));
    if exact(a) && exact(b) {
        return Some(a.to_decimal()?.cmp(&b.to_decimal()?));
    }
    a.to_double()?.partial_cmp(&b.to_double()?)
}

/// A total order for ORDER BY and sorting: NULL first, then [`compare`], kinds that cannot be
/// compared by their text.
#[must_use]
pub fn sort_cmp(a: &Value, b: &Value, collation: Collation) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Less,
        (false, true) => return Ordering::Greater,
        (false, false) => {}
    }
    compare(a, b, collation).unwrap_or_else(|| a.to_text().cmp(&b.to_text()))
}

/// As [`sort_cmp`], with the declared type: ENUM sorts by the place of the member, SET by its number.
#[must_use]
pub fn sort_cmp_typed(a: &Value, b: &Value, ty: &DataType) -> Ordering {
    if let DataType::Enum { members, .. } = ty {
        let place = |value: &Value| match value {
            Value::Text(text) => members
                .iter()
                .position(|member| member == text)
                .map(|at| at + 1),
            _ => None,
        };
        return (!a.is_null(), place(a)).cmp(&(!b.is_null(), place(b)));
    }
    if let DataType::Set { members, .. } = ty {
        let number = |value: &Value| match value {
            Value::Text(text) => Some(set_bits(members, text)),
            _ => None,
        };
        return number(a).cmp(&number(b));
    }
    sort_cmp(a, b, ty.collation().unwrap_or_default())
}

/// A number that often decides [`sort_cmp_typed`] at once: values of one kind whose heads differ
/// are in the order of their heads. `None` where there is no such number.
#[must_use]
pub fn sort_head_typed(value: &Value, ty: &DataType) -> Option<(u8, u64)> {
    match (value, ty) {
        (_, DataType::Enum { .. } | DataType::Set { .. }) => None,
        (Value::Text(text), _) => {
            sort_head(ty.collation().unwrap_or_default(), text).map(|head| (1, head))
        }
        // Flipping the sign bit makes the order of integers that of their bits.
        (Value::Int(number), _) => Some((2, number.cast_unsigned() ^ 1 << 63)),
        _ => None,
    }
}

/// Appends bytes that are equal exactly when the values are equal under `=` (NULL equals NULL
/// here). Both sides must be of one family of types: numbers (integers and decimals exactly;
/// cast to DOUBLE before mixing with doubles), text, dates and times.
pub fn group_key(value: &Value, collation: Collation, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Int(value) => group_integer(i128::from(*value), out),
        Value::UInt(value) => group_integer(i128::from(*value), out),
        Value::Double(value) => {
            if value.fract() == 0.0 && value.abs() < 1e18 {
                group_integer(*value as i128, out);
            } else {
                out.push(2);
                out.extend_from_slice(&value.to_bits().to_be_bytes());
            }
        }
        Value::Decimal(value) => {
            use bigdecimal::ToPrimitive;
            let normal = value.normalized();
            // 1e60 is a whole number of one digit that no integer holds.
            let whole = normal.is_integer().then(|| normal.to_i128()).flatten();
            if let Some(whole) = whole {
                group_integer(whole, out);
            } else {
                out.push(3);
                let mut text = Vec::new();
                write_decimal(&normal, &mut text);
                write_escaped(&text, out);
            }
        }
        Value::Text(text) => {
            out.push(4);
            group_text(text, collation, out);
        }
        Value::Bytes(bytes) => {
            out.push(4);
            write_escaped(bytes, out);
        }
        Value::Date(date) => group_datetime(DateTime::midnight(*date), out),
        Value::DateTime(value) => group_datetime(*value, out),
        Value::Time(time) => {
            out.push(6);
            out.extend_from_slice(&time.micros.to_be_bytes());
        }
        Value::Json(json) => {
            out.push(7);
            write_escaped(json_to_text(json).as_bytes(), out);
        }
    }
}

fn group_text(text: &str, collation: Collation, out: &mut Vec<u8>) {
    match collation {
        // Equality of these is equality of bytes: no need for the ordered form.
        Collation::Bin => write_escaped(text.trim_end_matches(' ').as_bytes(), out),
        _ => sort_key(collation, text, out),
    }
}

fn group_integer(value: i128, out: &mut Vec<u8>) {
    out.push(1);
    out.extend_from_slice(&value.to_be_bytes());
}

fn group_datetime(value: DateTime, out: &mut Vec<u8>) {
    out.push(5);
    out.extend_from_slice(&value.packed().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::number::parse_decimal;
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_string())
    }

    fn decimal(text: &str) -> Value {
        Value::decimal(parse_decimal(text).0)
    }

    #[test]
    fn kinds_compare_as_mysql_compares_them() {
        let date = Value::Date(Date {
            year: 2024,
            month: 1,
            day: 5,
        });
        let table = [
            (Value::Int(1), text("1abc"), Some(Ordering::Equal)),
            (Value::Int(0), text("abc"), Some(Ordering::Equal)),
            (Value::Int(-1), Value::UInt(u64::MAX), Some(Ordering::Less)),
            (decimal("1.10"), decimal("1.1"), Some(Ordering::Equal)),
            (decimal("0.1"), Value::Double(0.1), Some(Ordering::Equal)),
            (date.clone(), text("2024-1-5"), Some(Ordering::Equal)),
            (
                date.clone(),
                text("2024-01-05 00:00:01"),
                Some(Ordering::Less),
            ),
            (date.clone(), Value::Int(20_240_105), Some(Ordering::Equal)),
            (date, text("nonsense"), None),
            (Value::Null, Value::Null, None),
            (
                text("a"),
                Value::Bytes(b"A".to_vec()),
                Some(Ordering::Greater),
            ),
        ];
        for (a, b, expected) in table {
            assert_eq!(
                compare(&a, &b, Collation::default()),
                expected,
                "{a:?} {b:?}"
            );
            assert_eq!(
                compare(&b, &a, Collation::default()),
                expected.map(Ordering::reverse),
                "{b:?} {a:?}"
            );
        }
    }

    #[test]
    fn heads_that_differ_order_as_the_values_do() {
        let values = [
            Value::Null,
            Value::Int(i64::MIN),
            Value::Int(-1),
            Value::Int(0),
            Value::Int(7),
            Value::UInt(7),
            Value::Int(i64::MAX),
            Value::Double(0.5),
        ];
        let ty = DataType::DOUBLE;
        for a in &values {
            for b in &values {
                let heads = (sort_head_typed(a, &ty), sort_head_typed(b, &ty));
                if let (Some(left), Some(right)) = heads
                    && left.0 == right.0
                    && left != right
                {
                    assert_eq!(left.1.cmp(&right.1), sort_cmp_typed(a, b, &ty));
                }
            }
        }
        assert!(sort_head_typed(&Value::Int(-1), &ty) < sort_head_typed(&Value::Int(0), &ty));
    }

    #[test]
    fn equal_values_have_equal_group_keys() {
        let values = [
            Value::Null,
            Value::Int(1),
            Value::UInt(1),
            decimal("1.00"),
            Value::Double(1.0),
            decimal("1.5"),
            decimal("1.50"),
            decimal("0"),
            decimal(&format!("1{}", "0".repeat(60))),
            decimal(&format!("2{}", "0".repeat(60))),
            text("a"),
            text("A "),
            text("b"),
        ];
        for a in &values {
            for b in &values {
                if matches!(a, Value::Text(_)) != matches!(b, Value::Text(_)) {
                    continue;
                }
                let (mut left, mut right) = (Vec::new(), Vec::new());
                group_key(a, Collation::GeneralCi, &mut left);
                group_key(b, Collation::GeneralCi, &mut right);
                let equal = sort_cmp(a, b, Collation::GeneralCi).is_eq();
                assert_eq!(left == right, equal, "{a:?} {b:?}");
            }
        }
    }
}
