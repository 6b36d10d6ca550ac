//! Finding text in text, under the collation of the arguments.

use super::{Arguments, MANY, ScalarFunction, infer, split_collation};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::types::{Collation, DataType, Value, compare, text_equal};

use Arguments::Collated;

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("LOCATE", (2, 3), infer::integer, locate).with(Collated),
    ScalarFunction::new("INSTR", (2, 2), infer::integer, instr).with(Collated),
    ScalarFunction::new("FIELD", (2, MANY), infer::integer_always, field).with(Collated),
    ScalarFunction::new("FIND_IN_SET", (2, 2), infer::integer, find_in_set).with(Collated),
    ScalarFunction::new("STRCMP", (2, 2), infer::integer, strcmp).with(Collated),
];

/// Place of `needle` in `text` from character `from` (0-based), counted from 1; 0 for none.
fn find(text: &str, needle: &str, from: usize, collation: Collation) -> i64 {
    let found = |place: usize| i64::try_from(place + 1).unwrap_or(i64::MAX);
    let mut starts = text
        .char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .enumerate()
        .skip(from);
    if collation.is_binary() {
        return starts
            .find(|(_, at)| text[*at..].starts_with(needle))
            .map_or(0, |(place, _)| found(place));
    }
    let length = needle.chars().count();
    for (place, at) in starts {
        let rest = &text[at..];
        let end = rest
            .char_indices()
            .map(|(at, _)| at)
            .chain([rest.len()])
            .nth(length);
        let Some(end) = end else { break };
        if text_equal_exactly(collation, &rest[..end], needle) {
            return found(place);
        }
    }
    0
}

/// Equality without PAD SPACE: 'a' is not found where 'a ' was asked for.
fn text_equal_exactly(collation: Collation, a: &str, b: &str) -> bool {
    a == b || (a.ends_with(' ') == b.ends_with(' ') && text_equal(collation, a, b))
}

fn locate_in(text: &Value, needle: &Value, from: i64, collation: Collation) -> Value {
    let bytes = matches!(text, Value::Bytes(_)) || matches!(needle, Value::Bytes(_));
    let (read, collation): (fn(&Value) -> Option<String>, _) = if bytes {
        (Value::to_byte_characters, Collation::Binary)
    } else {
        (Value::to_text, collation)
    };
    let (Some(text), Some(needle)) = (read(text), read(needle)) else {
        return Value::Null;
    };
    match usize::try_from(from) {
        Ok(from) if from > 0 => Value::Int(find(&text, &needle, from - 1, collation)),
        _ => Value::Int(0),
    }
}

fn locate(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (args, collation) = split_collation(args);
    let Some(from) = args.get(2).map_or(Some(1), Value::to_i64) else {
        return Ok(Value::Null);
    };
    Ok(locate_in(&args[1], &args[0], from, collation))
}

fn instr(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (args, collation) = split_collation(args);
    Ok(locate_in(&args[0], &args[1], 1, collation))
}

fn field(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (args, collation) = split_collation(args);
    let all_text = args
        .iter()
        .all(|arg| matches!(arg, Value::Text(_) | Value::Bytes(_) | Value::Null));
    let all_numbers = args.iter().all(|arg| arg.is_number() || arg.is_null());
    let equal = |a: &Value, b: &Value| {
        if all_text || all_numbers {
            return compare(a, b, collation).is_some_and(std::cmp::Ordering::is_eq);
        }
        a.to_double()
            .zip(b.to_double())
            .is_some_and(|(a, b)| a.total_cmp(&b).is_eq())
    };
    let place = args[1..].iter().position(|arg| equal(&args[0], arg));
    Ok(Value::Int(
        place.map_or(0, |place| i64::try_from(place + 1).unwrap_or(0)),
    ))
}

fn find_in_set(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (args, collation) = split_collation(args);
    let (Some(needle), Some(set)) = (args[0].to_text(), args[1].to_text()) else {
        return Ok(Value::Null);
    };
    if set.is_empty() || needle.contains(',') {
        return Ok(Value::Int(0));
    }
    let place = set
        .split(',')
        .position(|item| text_equal(collation, item, &needle));
    Ok(Value::Int(
        place.map_or(0, |place| i64::try_from(place + 1).unwrap_or(0)),
    ))
}

fn strcmp(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (args, collation) = split_collation(args);
    let text = |value: &Value| value.to_text().map(Value::Text);
    let (Some(a), Some(b)) = (text(&args[0]), text(&args[1])) else {
        return Ok(Value::Null);
    };
    let order = compare(&a, &b, collation);
    Ok(order.map_or(Value::Null, |order| Value::Int(order as i64)))
}
