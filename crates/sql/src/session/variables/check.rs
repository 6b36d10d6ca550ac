//! Turns a value given to SET into the one the variable holds.

use super::charset;
use super::definition::{Definition, Kind};
use super::sql_mode;
use crate::error::{SqlError, SqlResult};
use crate::types::Value;

/// What SET stores for `value`, and a warning when it was clipped.
///
/// # Errors
/// 1231 wrong value, 1232 wrong type, 1115 unknown character set, 1273 unknown collation,
/// 1298 unknown time zone.
pub(crate) fn check(definition: &Definition, value: &Value) -> SqlResult<(Value, Option<String>)> {
    let name = definition.name;
    let plain = |value: Value| Ok((value, None));
    match definition.kind {
        Kind::Bool => plain(Value::Int(i64::from(boolean(name, value)?))),
        Kind::Int(low, high) => integer(name, value, low, high),
        Kind::Double => plain(Value::Double(double(name, value)?)),
        Kind::Enum(names) => plain(Value::Text(member(name, value, names)?)),
        Kind::Members(names) => plain(Value::Text(members(name, value, names)?)),
        Kind::Isolation => plain(Value::Text(isolation(name, value)?)),
        Kind::SqlMode => plain(Value::Text(match value {
            Value::Int(number) => sql_mode::from_number(*number)?,
            other => sql_mode::normalise(&text(name, other)?)?,
        })),
        Kind::TimeZone => plain(Value::Text(time_zone(&text(name, value)?)?)),
        Kind::NullableText | Kind::Charset(true) if value.is_null() => plain(Value::Null),
        Kind::Text | Kind::Switches | Kind::NullableText => plain(Value::Text(text(name, value)?)),
        Kind::Charset(_) => plain(Value::Text(charset_name(name, value)?)),
        Kind::Collation => plain(Value::Text(collation_name(name, value)?)),
    }
}

fn wrong_value(name: &str, value: &str) -> SqlError {
    SqlError::new(
        1231,
        "42000",
        format!("Variable '{name}' can't be set to the value of '{value}'"),
    )
}

fn wrong_type(name: &str) -> SqlError {
    SqlError::new(
        1232,
        "42000",
        format!("Incorrect argument type to variable '{name}'"),
    )
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_string(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

fn boolean(name: &str, value: &Value) -> SqlResult<bool> {
    let text = written(value);
    match text.to_ascii_uppercase().as_str() {
        "1" | "ON" | "TRUE" => Ok(true),
        "0" | "OFF" | "FALSE" => Ok(false),
        _ => Err(wrong_value(name, &text)),
    }
}

fn integer(name: &str, value: &Value, low: i64, high: i64) -> SqlResult<(Value, Option<String>)> {
    let number = match value {
        Value::Int(number) => *number,
        Value::UInt(number) => i64::try_from(*number).unwrap_or(i64::MAX),
        Value::Null => return Err(wrong_value(name, "NULL")),
        _ => return Err(wrong_type(name)),
    };
    let clipped = number.clamp(low, high);
    // Unlimited values are written as the largest unsigned number by clients: not worth a warning.
    let warning = (clipped != number && !matches!(value, Value::UInt(_)))
        .then(|| format!("Truncated incorrect {name} value: '{number}'"));
    Ok((Value::Int(clipped), warning))
}

fn double(name: &str, value: &Value) -> SqlResult<f64> {
    match value {
        Value::Text(_) | Value::Null => Err(wrong_type(name)),
        other => written(other).parse().map_err(|_| wrong_type(name)),
    }
}

fn text(name: &str, value: &Value) -> SqlResult<String> {
    match value {
        Value::Text(text) => Ok(text.clone()),
        Value::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Value::Null => Err(wrong_value(name, "NULL")),
        _ => Err(wrong_type(name)),
    }
}

fn member(name: &str, value: &Value, names: &[&str]) -> SqlResult<String> {
    let text = written(value);
    if let Value::Int(position) = value {
        let found = usize::try_from(*position).ok().and_then(|at| names.get(at));
        return found
            .map(ToString::to_string)
            .ok_or_else(|| wrong_value(name, &text));
    }
    names
        .iter()
        .find(|candidate| candidate.eq_ignore_ascii_case(&text))
        .map(ToString::to_string)
        .ok_or_else(|| wrong_value(name, &text))
}

fn members(name: &str, value: &Value, names: &[&str]) -> SqlResult<String> {
    let list = text(name, value)?.to_lowercase();
    let parts: Vec<&str> = list.split(',').map(str::trim).collect();
    if parts.iter().all(|part| names.contains(part)) {
        Ok(parts.join(","))
    } else {
        Err(wrong_value(name, &list))
    }
}

fn isolation(name: &str, value: &Value) -> SqlResult<String> {
    const LEVELS: [&str; 4] = [
        "READ-UNCOMMITTED",
        "READ-COMMITTED",
        "REPEATABLE-READ",
        "SERIALIZABLE",
    ];
    let dashed = match value {
        Value::Text(text) => Value::Text(text.replace(' ', "-")),
        other => other.clone(),
    };
    member(name, &dashed, &LEVELS)
}

fn time_zone(text: &str) -> SqlResult<String> {
    if text.eq_ignore_ascii_case("SYSTEM") {
        return Ok("SYSTEM".to_string());
    }
    super::settings::parse_time_zone(text)
        .map(|_| text.to_string())
        .ok_or_else(|| {
            SqlError::new(
                1298,
                "HY000",
                format!("Unknown or incorrect time zone: '{text}'"),
            )
        })
}

fn charset_name(name: &str, value: &Value) -> SqlResult<String> {
    let text = text(name, value)?;
    charset::charset(&text)
        .map(|found| found.name.to_string())
        .ok_or_else(|| SqlError::new(1115, "42000", format!("Unknown character set: '{text}'")))
}

fn collation_name(name: &str, value: &Value) -> SqlResult<String> {
    if let Value::Int(id) = value {
        return charset::collation_by_id(*id)
            .map(|found| found.name.to_string())
            .ok_or_else(|| SqlError::new(1273, "HY000", format!("Unknown collation: '{id}'")));
    }
    let text = text(name, value)?;
    charset::collation(&text)
        .map(|found| found.name.to_string())
        .ok_or_else(|| SqlError::new(1273, "HY000", format!("Unknown collation: '{text}'")))
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    fn set(name: &str, value: Value) -> SqlResult<Value> {
        check(find(name).unwrap().1, &value).map(|(value, _)| value)
    }

    #[test]
    fn booleans_take_words_and_numbers_and_nothing_else() {
        for on in [
            Value::Int(1),
            Value::Text("on".into()),
            Value::Text("TRUE".into()),
        ] {
            assert_eq!(set("autocommit", on), Ok(Value::Int(1)));
        }
        assert_eq!(set("autocommit", Value::Int(2)).unwrap_err().code, 1231);
    }

    #[test]
    fn numbers_outside_the_range_are_clipped_with_a_warning() {
        let (value, warning) = check(find("wait_timeout").unwrap().1, &Value::Int(0)).unwrap();
        assert_eq!(value, Value::Int(1));
        assert_eq!(
            warning.unwrap(),
            "Truncated incorrect wait_timeout value: '0'"
        );
        assert_eq!(
            set("wait_timeout", Value::Text("x".into()))
                .unwrap_err()
                .code,
            1232
        );
    }

    #[test]
    fn a_level_that_does_not_exist_reads_back_as_the_one_in_force() {
        assert_eq!(
            set("tx_isolation", Value::Text("READ-UNCOMMITTED".into())),
            Ok(Value::Text("READ-UNCOMMITTED".into()))
        );
    }

    #[test]
    fn zones_and_character_sets_must_exist() {
        assert!(set("time_zone", Value::Text("+05:30".into())).is_ok());
        assert!(set("time_zone", Value::Text("Europe/Berlin".into())).is_ok());
        assert_eq!(
            set("time_zone", Value::Text("Nowhere/X".into()))
                .unwrap_err()
                .code,
            1298
        );
        assert_eq!(set("character_set_results", Value::Null), Ok(Value::Null));
        assert_eq!(
            set("character_set_client", Value::Text("klingon".into()))
                .unwrap_err()
                .code,
            1115
        );
    }

    #[test]
    fn every_default_passes_its_own_check() {
        for definition in super::super::DEFINITIONS {
            if let Some(default) = definition.default {
                super::super::store::parse_default(definition, default);
            }
        }
    }
}
