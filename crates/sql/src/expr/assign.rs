//! Storing into a column and CAST, with MySQL's errors and warnings.

#![allow(
    clippy::match_same_arms,
    reason = "one arm a type reads better than merged ones"
)]
#![allow(
    clippy::cast_possible_truncation,
    reason = "CAST to FLOAT rounds to single precision"
)]

use super::EvalContext;
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use crate::types::{
    DataType, Date, IntWidth, Issue, StoreRules, Value, decimal_limit, fit, implicit_default,
    integer_value, parse_integer_cut, parse_json, round_decimal, to_json, to_text, today,
};

/// Fits `value` into `column` for storing; `row_number` counts the statement's rows from 1.
/// TIMESTAMPs stay in session time: the encoding shifts them.
///
/// # Errors
/// In strict mode 1048, 1264, 1265, 1292, 1366, 1406; always 3140 for text that is no JSON and
/// 1048 for an explicit NULL where the statement refuses it. Otherwise a warning and the nearest value.
pub fn assign(
    ctx: &EvalContext<'_>,
    value: Value,
    column: &Column,
    row_number: usize,
) -> SqlResult<Value> {
    if value.is_null() {
        return assign_null(ctx, column);
    }
    // What ORMs send most is already of the column's kind and in range.
    let rules = StoreRules {
        mode: ctx.sql_mode,
        zone: &ctx.time_zone,
        today: today_of(&value, ctx),
    };
    let shown = needs_text(&value, &column.ty).then(|| value.clone());
    let (fitted, issue) = fit(value, &column.ty, &rules);
    if let Some(issue) = issue {
        let shown = shown
            .map(|value| to_text(&value, &DataType::Null))
            .unwrap_or_default();
        report(ctx, &issue, &shown, column, row_number)?;
    }
    Ok(fitted)
}

/// Only TIME into a date needs the current day.
fn today_of(value: &Value, ctx: &EvalContext<'_>) -> Date {
    match value {
        Value::Time(_) => today(ctx.now_micros, &ctx.time_zone),
        _ => Date::ZERO,
    }
}

/// Whether an error could have to quote the value.
fn needs_text(value: &Value, ty: &DataType) -> bool {
    match value {
        Value::Text(_) | Value::Bytes(_) => {
            !ty.is_text() && !ty.is_bytes() && !matches!(ty, DataType::Bit { .. })
                || matches!(value, Value::Bytes(_)) && ty.is_text()
        }
        _ => ty.is_temporal(),
    }
}

fn assign_null(ctx: &EvalContext<'_>, column: &Column) -> SqlResult<Value> {
    if !column.not_null {
        return Ok(Value::Null);
    }
    let message = format!("Column '{}' cannot be null", column.name);
    if ctx.refuses_null {
        return Err(SqlError::new(1048, "23000", message));
    }
    ctx.warn(1048, message);
    Ok(implicit_default(&column.ty))
}

fn report(
    ctx: &EvalContext<'_>,
    issue: &Issue,
    shown: &str,
    column: &Column,
    row: usize,
) -> SqlResult<()> {
    let name = &column.name;
    let (code, state, message) = match issue {
        Issue::OutOfRange => (
            1264,
            "22003",
            format!("Out of range value for column '{name}' at row {row}"),
        ),
        Issue::TooManyBits if !ctx.strict_write => (
            1264,
            "22003",
            format!("Out of range value for column '{name}' at row {row}"),
        ),
        Issue::TooLong | Issue::TooManyBits => (
            1406,
            "22001",
            format!("Data too long for column '{name}' at row {row}"),
        ),
        Issue::Truncated if column.ty.is_temporal() => (
            1292,
            "22007",
            format!(
                "Incorrect {} value: '{shown}' for column '{name}' at row {row}",
                temporal_word(&column.ty)
            ),
        ),
        Issue::Truncated | Issue::Note => (
            1265,
            "01000",
            format!("Data truncated for column '{name}' at row {row}"),
        ),
        Issue::Incorrect(kind) => {
            let (code, state) = if column.ty.is_temporal() {
                (1292, "22007")
            } else {
                (1366, "HY000")
            };
            let message =
                format!("Incorrect {kind} value: '{shown}' for column '{name}' at row {row}");
            (code, state, message)
        }
        Issue::NoSuchTime if ctx.strict_write => (
            1292,
            "22007",
            format!("Incorrect datetime value: '{shown}' for column '{name}' at row {row}"),
        ),
        Issue::NoSuchTime => (
            1299,
            "HY000",
            format!("Invalid TIMESTAMP value in column '{name}' at row {row}"),
        ),
        Issue::InvalidJson(issue) => return Err(issue.in_column(name)),
        Issue::BytesAsJson => return Err(bytes_as_json()),
    };
    if *issue == Issue::Note {
        ctx.note(code, message);
    } else if ctx.strict_write {
        return Err(SqlError::new(code, state, message));
    } else if code == 1406 {
        ctx.warn(
            1265,
            format!("Data truncated for column '{name}' at row {row}"),
        );
    } else {
        ctx.warn(code, message);
    }
    Ok(())
}

fn bytes_as_json() -> SqlError {
    let message = "Cannot create a JSON value from a string with CHARACTER SET 'binary'.";
    SqlError::new(3144, "22032", message)
}

fn temporal_word(ty: &DataType) -> &'static str {
    match ty {
        DataType::Date => "date",
        DataType::Time { .. } => "time",
        _ => "datetime",
    }
}

/// CAST and CONVERT.
///
/// # Errors
/// 3141 for text that is no JSON; 1292 for unreadable text inside a strict write.
pub fn cast(ctx: &EvalContext<'_>, value: Value, to: &DataType) -> SqlResult<Value> {
    match (&value, to) {
        (Value::Null, _) => Ok(Value::Null),
        (_, DataType::Null) => Ok(value),
        (
            _,
            DataType::Int {
                width, unsigned, ..
            },
        ) => cast_integer(ctx, &value, *width, *unsigned),
        (
            _,
            DataType::Decimal {
                precision, scale, ..
            },
        ) => cast_decimal(ctx, &value, *precision, *scale),
        (_, DataType::Float { .. } | DataType::Double { .. }) => {
            let (number, complete) = value.to_double_checked().unwrap_or((0.0, true));
            if !complete {
                ctx.truncated("DOUBLE", &value)?;
            }
            let single = matches!(to, DataType::Float { .. });
            Ok(Value::Double(if single {
                f64::from(number as f32)
            } else {
                number
            }))
        }
        (Value::Text(_), DataType::Text { .. } | DataType::Enum { .. } | DataType::Set { .. }) => {
            Ok(value)
        }
        (_, DataType::Json) => cast_json(value),
        (_, ty) if ty.is_temporal() => cast_temporal(ctx, value, to),
        (_, DataType::Year) => cast_year(ctx, value),
        _ => cast_text(ctx, value, to),
    }
}

fn cast_integer(
    ctx: &EvalContext<'_>,
    value: &Value,
    width: IntWidth,
    unsigned: bool,
) -> SqlResult<Value> {
    if let Value::Int(number) = value
        && !(unsigned && width == IntWidth::Big)
    {
        return Ok(Value::Int(*number));
    }
    let (number, complete) = match value {
        Value::Text(text) => parse_integer_cut(text),
        Value::Bytes(bytes) => parse_integer_cut(&String::from_utf8_lossy(bytes)),
        other => other.to_integer_checked().unwrap_or((0, true)),
    };
    let is_decimal = matches!(value, Value::Decimal(_));
    let wrapped = if unsigned && !is_decimal && number < 0 && number >= i128::from(i64::MIN) {
        number + (1i128 << 64)
    } else if !unsigned
        && number > i128::from(i64::MAX)
        && number <= i128::from(u64::MAX)
        && matches!(value, Value::UInt(_) | Value::Text(_))
    {
        number - (1i128 << 64)
    } else {
        number
    };
    let (least, greatest) = IntWidth::Big.range(unsigned);
    let cut = wrapped.clamp(least, greatest);
    if !complete || cut != wrapped {
        ctx.truncated("INTEGER", value)?;
    }
    Ok(integer_value(
        cut,
        IntWidth::Big,
        unsigned && width == IntWidth::Big,
    ))
}

fn cast_decimal(
    ctx: &EvalContext<'_>,
    value: &Value,
    precision: u8,
    scale: u8,
) -> SqlResult<Value> {
    let (number, complete) = value.to_decimal_checked().unwrap_or_default();
    if !complete {
        ctx.truncated("DECIMAL", value)?;
    }
    let rounded = round_decimal(&number, i64::from(scale));
    let limit = decimal_limit(precision, scale);
    if rounded > limit || rounded < -&limit {
        ctx.warn(1264, "Out of range value for column 'CAST' at row 1");
        let cut = if rounded > limit { limit } else { -limit };
        return Ok(Value::decimal(cut));
    }
    Ok(Value::decimal(rounded))
}

fn cast_json(value: Value) -> SqlResult<Value> {
    let json = match value {
        Value::Json(json) => return Ok(Value::Json(json)),
        Value::Text(text) => {
            parse_json(&text).map_err(|issue| issue.in_argument(1, "cast_as_json"))?
        }
        Value::Bytes(_) => return Err(bytes_as_json()),
        other => to_json(&other),
    };
    Ok(Value::Json(std::sync::Arc::new(json)))
}

fn cast_temporal(ctx: &EvalContext<'_>, value: Value, to: &DataType) -> SqlResult<Value> {
    let rules = StoreRules {
        mode: ctx.sql_mode,
        zone: &ctx.time_zone,
        today: today_of(&value, ctx),
    };
    let shown = value.clone();
    // A computed TIMESTAMP is a DATETIME: its range binds columns only.
    let target = match to {
        DataType::Timestamp { fsp } => &DataType::DateTime { fsp: *fsp },
        other => other,
    };
    let (fitted, issue) = fit(value, target, &rules);
    match issue {
        None | Some(Issue::Note) => Ok(fitted),
        Some(Issue::Truncated) => {
            ctx.truncated(temporal_word(to), &shown)?;
            Ok(fitted)
        }
        Some(Issue::OutOfRange) => {
            ctx.truncated("time", &shown)?;
            Ok(fitted)
        }
        Some(_) => {
            let text = to_text(&shown, &DataType::Null);
            ctx.problem(
                1292,
                "22007",
                format!("Incorrect {} value: '{text}'", temporal_word(to)),
            )?;
            Ok(Value::Null)
        }
    }
}

fn cast_year(ctx: &EvalContext<'_>, value: Value) -> SqlResult<Value> {
    let rules = StoreRules {
        mode: ctx.sql_mode,
        zone: &ctx.time_zone,
        today: today(ctx.now_micros, &ctx.time_zone),
    };
    let shown = value.clone();
    let (fitted, issue) = fit(value, &DataType::Year, &rules);
    if issue.is_some() {
        ctx.truncated("YEAR", &shown)?;
        return Ok(Value::Null);
    }
    Ok(fitted)
}

fn cast_text(ctx: &EvalContext<'_>, value: Value, to: &DataType) -> SqlResult<Value> {
    let rules = StoreRules {
        mode: ctx.sql_mode,
        zone: &ctx.time_zone,
        today: Date::ZERO,
    };
    // Only an explicit length pads or cuts.
    let unbounded = match to {
        DataType::Char { length, collation } => DataType::Varchar {
            length: *length,
            collation: *collation,
        },
        other => other.clone(),
    };
    let shown = matches!(value, Value::Text(_) | Value::Bytes(_)).then(|| value.clone());
    let (fitted, issue) = fit(value, &unbounded, &rules);
    match issue {
        None | Some(Issue::Note) => Ok(fitted),
        Some(Issue::Incorrect(_)) => {
            let text = shown.and_then(|value| value.to_text()).unwrap_or_default();
            ctx.problem(
                1300,
                "HY000",
                format!("Invalid utf8mb4 character string: '{text}'"),
            )?;
            Ok(Value::Null)
        }
        Some(_) => {
            let word = if to.is_bytes() { "BINARY" } else { "CHAR" };
            let kind = format!("{word}({})", to.char_length());
            ctx.truncated(&kind, &shown.unwrap_or(Value::Null))?;
            Ok(fitted)
        }
    }
}
