//! Making text out of text.

use super::{Arguments, MANY, RESULT_BYTES_MAX, ScalarFunction, infer, too_long};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::plan::Expr;
use crate::types::{DataType, Value};

use Arguments::AsText;

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("CONCAT", (1, MANY), infer::text, concat).with(AsText),
    ScalarFunction::new("CONCAT_WS", (2, MANY), infer_concat_ws, concat_ws).with(AsText),
    ScalarFunction::new("LOWER", (1, 1), infer::first_text, lower).with(AsText),
    ScalarFunction::new("UPPER", (1, 1), infer::first_text, upper).with(AsText),
    ScalarFunction::new("LPAD", (3, 3), infer::long_text, lpad).with(AsText),
    ScalarFunction::new("RPAD", (3, 3), infer::long_text, rpad).with(AsText),
    ScalarFunction::new("REPLACE", (3, 3), infer::long_text, replace).with(AsText),
    ScalarFunction::new("REVERSE", (1, 1), infer::first_text, reverse).with(AsText),
    ScalarFunction::new("REPEAT", (2, 2), infer::long_text, repeat).with(AsText),
    ScalarFunction::new("SPACE", (1, 1), infer::long_text, space),
    ScalarFunction::new("INSERT", (4, 4), infer::text, insert).with(AsText),
    ScalarFunction::new("QUOTE", (1, 1), infer_quote, quote).with(AsText),
    ScalarFunction::new("SOUNDEX", (1, 1), infer::first_text, soundex).with(AsText),
];

fn infer_concat_ws(args: &[Expr]) -> (DataType, bool) {
    let (_, nullable) = infer::text(args.get(..1).unwrap_or_default());
    let separators = u32::try_from(args.len()).unwrap_or(u32::MAX);
    let separator = args.first().map_or(0, |arg| arg.ty.char_length());
    let (ty, _) = infer::text(args);
    let length = ty
        .char_length()
        .saturating_add(separators.saturating_mul(separator));
    (
        DataType::text_of(length, ty.collation().unwrap_or_default()),
        nullable,
    )
}

fn infer_quote(args: &[Expr]) -> (DataType, bool) {
    let (ty, _) = infer::text(args);
    (
        DataType::text_of(
            ty.char_length().saturating_mul(2).saturating_add(2),
            ty.collation().unwrap_or_default(),
        ),
        false,
    )
}

/// What a function of type `ty` works on: the text, or a byte string with one character a byte.
pub(super) fn taken(value: &Value, ty: &DataType) -> Option<String> {
    if ty.is_bytes() {
        value.to_byte_characters()
    } else {
        value.to_text()
    }
}

/// The way back from [`taken`].
pub(super) fn made(text: String, ty: &DataType) -> Value {
    if ty.is_bytes() {
        // Characters past U+00FF never come out of `taken`.
        let byte = |character| u8::try_from(u32::from(character)).unwrap_or(b'?');
        Value::Bytes(text.chars().map(byte).collect())
    } else {
        Value::Text(text)
    }
}

fn join(values: &[&Value], separator: &Value, ty: &DataType) -> Value {
    if ty.is_bytes() {
        let parts: Vec<Vec<u8>> = values.iter().filter_map(|value| value.to_bytes()).collect();
        return Value::Bytes(parts.join(separator.to_bytes().unwrap_or_default().as_slice()));
    }
    let mut out = String::new();
    let separator = separator.to_text().unwrap_or_default();
    for (place, value) in values.iter().enumerate() {
        if place > 0 {
            out.push_str(&separator);
        }
        match value {
            Value::Text(text) => out.push_str(text),
            other => out.push_str(&other.to_text().unwrap_or_default()),
        }
    }
    Value::Text(out)
}

fn concat(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    Ok(join(
        &args.iter().collect::<Vec<_>>(),
        &Value::Text(String::new()),
        ty,
    ))
}

fn concat_ws(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    if args[0].is_null() {
        return Ok(Value::Null);
    }
    let present: Vec<&Value> = args[1..].iter().filter(|arg| !arg.is_null()).collect();
    Ok(join(&present, &args[0], ty))
}

/// A wanted length: 0 for what is less, `None` for NULL.
pub(super) fn clamp_length(value: &Value) -> Option<usize> {
    value
        .to_i64()
        .map(|length| usize::try_from(length.max(0)).unwrap_or(usize::MAX))
}

/// Applies `change` to a text; bytes stay as they are where `change` is about letters.
fn map_text(value: &Value, change: impl Fn(&str) -> String) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Bytes(bytes) => Value::Bytes(bytes.clone()),
        Value::Text(text) => Value::Text(change(text)),
        other => Value::Text(change(&other.to_text().unwrap_or_default())),
    }
}

/// Letter by letter: what would become two letters (`ß`) stays as it is.
fn map_letters<I: Iterator<Item = char>>(text: &str, change: fn(char) -> I) -> String {
    let single = |letter: char| {
        let mut changed = change(letter);
        match (changed.next(), changed.next()) {
            (Some(one), None) => one,
            _ => letter,
        }
    };
    text.chars().map(single).collect()
}

fn lower(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(map_text(&args[0], |text| {
        map_letters(text, char::to_lowercase)
    }))
}

fn upper(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(map_text(&args[0], |text| {
        map_letters(text, char::to_uppercase)
    }))
}

fn pad(ctx: &EvalContext<'_>, args: &[Value], in_front: bool, ty: &DataType) -> SqlResult<Value> {
    let (Some(text), Some(length), Some(padding)) =
        (taken(&args[0], ty), args[1].to_i64(), taken(&args[2], ty))
    else {
        return Ok(Value::Null);
    };
    let Ok(length) = usize::try_from(length) else {
        return Ok(Value::Null);
    };
    let have = text.chars().count();
    if length <= have {
        return Ok(made(text.chars().take(length).collect(), ty));
    }
    if padding.is_empty() {
        return Ok(made(String::new(), ty));
    }
    if length > RESULT_BYTES_MAX / 4 {
        return too_long(ctx, if in_front { "lpad" } else { "rpad" });
    }
    let filling: String = padding.chars().cycle().take(length - have).collect();
    Ok(made(
        if in_front {
            filling + &text
        } else {
            text + &filling
        },
        ty,
    ))
}

fn lpad(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    pad(ctx, args, true, ty)
}

fn rpad(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    pad(ctx, args, false, ty)
}

fn replace(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let (Some(text), Some(from), Some(to)) = (
        taken(&args[0], ty),
        taken(&args[1], ty),
        taken(&args[2], ty),
    ) else {
        return Ok(Value::Null);
    };
    if from.is_empty() {
        return Ok(made(text, ty));
    }
    let hits = text.matches(from.as_str()).count();
    if text.len().saturating_add(hits.saturating_mul(to.len())) > RESULT_BYTES_MAX {
        return too_long(ctx, "replace");
    }
    Ok(made(text.replace(from.as_str(), &to), ty))
}

fn reverse(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    if let Value::Bytes(bytes) = &args[0] {
        return Ok(Value::Bytes(bytes.iter().rev().copied().collect()));
    }
    Ok(map_text(&args[0], |text| text.chars().rev().collect()))
}

fn repeat(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let (Some(text), Some(times)) = (taken(&args[0], ty), clamp_length(&args[1])) else {
        return Ok(Value::Null);
    };
    if text.len().saturating_mul(times) > RESULT_BYTES_MAX {
        return too_long(ctx, "repeat");
    }
    Ok(made(
        text.repeat(if text.is_empty() { 0 } else { times }),
        ty,
    ))
}

fn space(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    repeat(ctx, &[Value::Text(" ".to_string()), args[0].clone()], ty)
}

fn insert(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let (Some(text), Some(at), Some(length), Some(new)) = (
        taken(&args[0], ty),
        args[1].to_i64(),
        args[2].to_i64(),
        taken(&args[3], ty),
    ) else {
        return Ok(Value::Null);
    };
    let total = text.chars().count();
    let Some(start) = usize::try_from(at)
        .ok()
        .filter(|at| (1..=total).contains(at))
    else {
        return Ok(made(text, ty));
    };
    let removed = usize::try_from(length).unwrap_or(usize::MAX);
    let mut out: String = text.chars().take(start - 1).collect();
    out.push_str(&new);
    out.extend(text.chars().skip((start - 1).saturating_add(removed)));
    Ok(made(out, ty))
}

fn quote(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let Some(text) = taken(&args[0], ty) else {
        return Ok(made("NULL".to_string(), ty));
    };
    let mut out = String::from("'");
    for character in text.chars() {
        match character {
            '\'' => out.push_str("\\'"),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\u{1a}' => out.push_str("\\Z"),
            other => out.push(other),
        }
    }
    out.push('\'');
    Ok(made(out, ty))
}

fn soundex(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let Some(text) = taken(&args[0], ty) else {
        return Ok(Value::Null);
    };
    let code = |letter: char| match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    };
    let mut letters = text.chars().filter(|c| c.is_alphabetic());
    let Some(first) = letters.next() else {
        return Ok(made(String::new(), ty));
    };
    let mut out: String = first.to_uppercase().collect();
    let mut last = code(first);
    for letter in letters {
        let next = code(letter);
        if next != '0' && next != last {
            out.push(next);
        }
        if next != '0' {
            last = next;
        }
    }
    while out.chars().count() < 4 {
        out.push('0');
    }
    Ok(made(out, ty))
}
