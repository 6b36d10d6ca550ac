//! Parts of a text, and how long it is.

use super::string::{clamp_length, made, taken};
use super::{Arguments, ScalarFunction, infer};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::types::{DataType, Value};

use Arguments::AsText;

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("SUBSTRING", (2, 3), infer::first_text, substring).with(AsText),
    ScalarFunction::new("LEFT", (2, 2), infer::first_text, left).with(AsText),
    ScalarFunction::new("RIGHT", (2, 2), infer::first_text, right).with(AsText),
    ScalarFunction::new("LENGTH", (1, 1), infer::integer, length).with(AsText),
    ScalarFunction::new("BIT_LENGTH", (1, 1), infer::integer, bit_length).with(AsText),
    ScalarFunction::new("CHAR_LENGTH", (1, 1), infer::integer, char_length).with(AsText),
    ScalarFunction::new("TRIM", (1, 3), infer::first_text, trim).with(AsText),
    ScalarFunction::new("LTRIM", (1, 2), infer::first_text, ltrim).with(AsText),
    ScalarFunction::new("RTRIM", (1, 2), infer::first_text, rtrim).with(AsText),
    ScalarFunction::new(
        "SUBSTRING_INDEX",
        (3, 3),
        infer::first_text,
        substring_index,
    )
    .with(AsText),
];

fn substring(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let (Some(from), Some(wanted)) = (
        args[1].to_i64(),
        args.get(2).map_or(Some(usize::MAX), clamp_length),
    ) else {
        return Ok(Value::Null);
    };
    if args[0].is_null() {
        return Ok(Value::Null);
    }
    let total = units(&args[0]);
    let start = match usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX) {
        0 => return Ok(made(String::new(), ty)),
        distance if from > 0 => distance - 1,
        distance if distance <= total => total - distance,
        _ => return Ok(made(String::new(), ty)),
    };
    Ok(slice(&args[0], start, start.saturating_add(wanted)))
}

fn left(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (false, Some(count)) = (args[0].is_null(), clamp_length(&args[1])) else {
        return Ok(Value::Null);
    };
    Ok(slice(&args[0], 0, count))
}

fn right(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (false, Some(count)) = (args[0].is_null(), clamp_length(&args[1])) else {
        return Ok(Value::Null);
    };
    let total = units(&args[0]);
    Ok(slice(&args[0], total.saturating_sub(count), total))
}

fn substring_index(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let (Some(text), Some(delimiter), Some(times)) =
        (taken(&args[0], ty), taken(&args[1], ty), args[2].to_i64())
    else {
        return Ok(Value::Null);
    };
    if delimiter.is_empty() || times == 0 {
        return Ok(made(String::new(), ty));
    }
    let count = usize::try_from(times.unsigned_abs()).unwrap_or(usize::MAX);
    let hits = || text.match_indices(delimiter.as_str());
    let part = if times > 0 {
        hits().nth(count - 1).map(|(at, _)| &text[..at])
    } else {
        // Delimiters are told apart from the left, then counted from the right.
        let before = hits().count().checked_sub(count);
        before
            .and_then(|before| hits().nth(before))
            .map(|(at, hit)| &text[at + hit.len()..])
    };
    Ok(made(part.unwrap_or(&text).to_string(), ty))
}

/// Characters `start..end` of a text, or bytes of bytes.
fn slice(value: &Value, start: usize, end: usize) -> Value {
    if let Value::Bytes(bytes) = value {
        let end = end.min(bytes.len());
        return Value::Bytes(bytes[start.min(end)..end].to_vec());
    }
    let text = value.to_text().unwrap_or_default();
    Value::Text(
        text.chars()
            .skip(start)
            .take(end.saturating_sub(start))
            .collect(),
    )
}

/// Characters of a text, bytes of bytes.
fn units(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.len(),
        Value::Text(text) => text.chars().count(),
        other => other.to_text().map_or(0, |text| text.chars().count()),
    }
}

fn length(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(count(byte_length(&args[0])))
}

fn bit_length(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(count(byte_length(&args[0]).map(|length| length * 8)))
}

fn char_length(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(count((!args[0].is_null()).then(|| units(&args[0]))))
}

fn byte_length(value: &Value) -> Option<usize> {
    match value {
        Value::Text(text) => Some(text.len()),
        other => other.to_bytes().map(|bytes| bytes.len()),
    }
}

fn count(number: Option<usize>) -> Value {
    number.map_or(Value::Null, |number| {
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    })
}

/// TRIM(text, characters, side): side is BOTH (the default), LEADING or TRAILING.
fn trim(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let sides = match args.get(2) {
        Some(Value::Text(side)) if side == "LEADING" => (true, false),
        Some(Value::Text(side)) if side == "TRAILING" => (false, true),
        _ => (true, true),
    };
    Ok(trim_with(args, sides, ty))
}

fn ltrim(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    Ok(trim_with(args, (true, false), ty))
}

fn rtrim(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    Ok(trim_with(args, (false, true), ty))
}

/// What to trim: the second argument, a space by default. `None` when something is NULL.
fn trim_with(args: &[Value], both: (bool, bool), ty: &DataType) -> Value {
    let remove = args
        .get(1)
        .map_or(Some(" ".to_string()), |value| taken(value, ty));
    let (Some(text), Some(remove)) = (taken(&args[0], ty), remove) else {
        return Value::Null;
    };
    let mut rest = text.as_str();
    if !remove.is_empty() {
        while both.0
            && let Some(shorter) = rest.strip_prefix(remove.as_str())
        {
            rest = shorter;
        }
        while both.1
            && let Some(shorter) = rest.strip_suffix(remove.as_str())
        {
            rest = shorter;
        }
    }
    made(rest.to_string(), ty)
}
