//! Making text out of text.

use bigdecimal::RoundingMode;

use super::rounding::round_double;
use super::{Arguments, MANY, RESULT_BYTES_MAX, ScalarFunction, infer, too_long};
use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, Expr};
use crate::types::{DataType, Value, decimal_of_double, round_decimal, write_decimal};

use Arguments::AsText;

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("CONCAT", (1, MANY), infer::text, concat).with(AsText),
    ScalarFunction::new("CONCAT_WS", (2, MANY), infer_concat_ws, concat_ws).with(AsText),
    ScalarFunction::new("SUBSTRING", (2, 3), infer::first_text, substring).with(AsText),
    ScalarFunction::new("LEFT", (2, 2), infer::first_text, left).with(AsText),
    ScalarFunction::new("RIGHT", (2, 2), infer::first_text, right).with(AsText),
    ScalarFunction::new("LENGTH", (1, 1), infer::integer, length).with(AsText),
    ScalarFunction::new("BIT_LENGTH", (1, 1), infer::integer, bit_length).with(AsText),
    ScalarFunction::new("CHAR_LENGTH", (1, 1), infer::integer, char_length).with(AsText),
    ScalarFunction::new("LOWER", (1, 1), infer::first_text, lower).with(AsText),
    ScalarFunction::new("UPPER", (1, 1), infer::first_text, upper).with(AsText),
    ScalarFunction::new("TRIM", (1, 3), infer::first_text, trim).with(AsText),
    ScalarFunction::new("LTRIM", (1, 2), infer::first_text, ltrim).with(AsText),
    ScalarFunction::new("RTRIM", (1, 2), infer::first_text, rtrim).with(AsText),
    ScalarFunction::new("LPAD", (3, 3), infer::long_text, lpad).with(AsText),
    ScalarFunction::new("RPAD", (3, 3), infer::long_text, rpad).with(AsText),
    ScalarFunction::new("REPLACE", (3, 3), infer::long_text, replace).with(AsText),
    ScalarFunction::new("REVERSE", (1, 1), infer::first_text, reverse).with(AsText),
    ScalarFunction::new("REPEAT", (2, 2), infer::long_text, repeat).with(AsText),
    ScalarFunction::new("SPACE", (1, 1), infer::long_text, space),
    ScalarFunction::new("INSERT", (4, 4), infer::text, insert).with(AsText),
    ScalarFunction::new("ELT", (2, MANY), infer::text_or_null, elt).with(AsText),
    ScalarFunction::new("MAKE_SET", (2, MANY), infer::text_or_null, make_set).with(AsText),
    ScalarFunction::new("EXPORT_SET", (3, 5), infer::long_text, export_set).with(AsText),
    ScalarFunction::new(
        "SUBSTRING_INDEX",
        (3, 3),
        infer::first_text,
        substring_index,
    )
    .with(AsText),
    ScalarFunction::new("ASCII", (1, 1), infer::integer, ascii).with(AsText),
    ScalarFunction::new("ORD", (1, 1), infer::integer, ord).with(AsText),
    ScalarFunction::new("CHAR", (1, MANY), infer::bytes, char_),
    ScalarFunction::new("FORMAT", (2, 3), infer::short_text, format).with(Arguments::Unrounded),
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
fn taken(value: &Value, ty: &DataType) -> Option<String> {
    if ty.is_bytes() {
        value.to_byte_characters()
    } else {
        value.to_text()
    }
}

/// The way back from [`taken`].
fn made(text: String, ty: &DataType) -> Value {
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

fn units(value: &Value) -> usize {
    match value {
        Value::Bytes(bytes) => bytes.len(),
        Value::Text(text) => text.chars().count(),
        other => other.to_text().map_or(0, |text| text.chars().count()),
    }
}

fn clamp_length(value: &Value) -> Option<usize> {
    value
        .to_i64()
        .map(|length| usize::try_from(length.max(0)).unwrap_or(usize::MAX))
}

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

fn count(number: Option<usize>) -> Value {
    number.map_or(Value::Null, |number| {
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    })
}

fn byte_length(value: &Value) -> Option<usize> {
    match value {
        Value::Text(text) => Some(text.len()),
        other => other.to_bytes().map(|bytes| bytes.len()),
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

fn elt(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let place = args[0]
        .to_i64()
        .and_then(|place| usize::try_from(place).ok())
        .filter(|place| *place > 0);
    let chosen = place
        .and_then(|place| args.get(place))
        .and_then(|value| taken(value, ty));
    Ok(chosen.map_or(Value::Null, |text| made(text, ty)))
}

fn make_set(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let Some(bits) = args[0].to_bits() else {
        return Ok(Value::Null);
    };
    let chosen = args[1..]
        .iter()
        .take(64)
        .enumerate()
        .filter(|(place, _)| bits >> place & 1 == 1);
    let names: Vec<String> = chosen.filter_map(|(_, arg)| taken(arg, ty)).collect();
    Ok(made(names.join(","), ty))
}

fn export_set(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let separator = args
        .get(3)
        .map_or(Some(",".to_string()), |value| taken(value, ty));
    let count = args.get(4).map_or(Some(64), Value::to_i64);
    let (Some(bits), Some(on), Some(off), Some(separator), Some(count)) = (
        args[0].to_bits(),
        taken(&args[1], ty),
        taken(&args[2], ty),
        separator,
        count,
    ) else {
        return Ok(Value::Null);
    };
    let count = usize::try_from(count).unwrap_or(64).min(64);
    let words: Vec<&str> = (0..count)
        .map(|place| {
            if bits >> place & 1 == 1 {
                on.as_str()
            } else {
                off.as_str()
            }
        })
        .collect();
    Ok(made(words.join(&separator), ty))
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

fn ascii(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let bytes = args[0].to_bytes();
    Ok(bytes.map_or(Value::Null, |bytes| {
        Value::Int(bytes.first().copied().unwrap_or(0).into())
    }))
}

fn ord(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(text) = args[0].to_text() else {
        return Ok(Value::Null);
    };
    let Some(first) = text.chars().next() else {
        return Ok(Value::Int(0));
    };
    let mut buffer = [0u8; 4];
    let number = first
        .encode_utf8(&mut buffer)
        .bytes()
        .fold(0i64, |sum, byte| sum << 8 | i64::from(byte));
    Ok(Value::Int(number))
}

fn char_(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let mut out = Vec::new();
    // Hexadecimal literals are numbers here.
    let number = |arg: &Value| match arg {
        Value::Bytes(bytes) => Some(
            bytes
                .iter()
                .fold(0u64, |number, byte| number << 8 | u64::from(*byte)),
        ),
        other => other.to_bits(),
    };
    for number in args.iter().filter_map(number) {
        let bytes = (number as u32).to_be_bytes();
        let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(3);
        out.extend_from_slice(&bytes[start..]);
    }
    Ok(Value::Bytes(out))
}

/// Groups thousands, as `en_US` does.
fn format(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    if let Some(locale) = args.get(2).and_then(Value::to_text)
        && !matches!(
            locale.to_ascii_lowercase().as_str(),
            "en_us" | "en_gb" | "en_au" | "en_ca"
        )
    {
        let feature = format!("FORMAT for locale '{locale}'");
        return Err(SqlError::not_supported(feature));
    }
    let Some(digits) = args[1].to_i64() else {
        return Ok(Value::Null);
    };
    let digits = digits.clamp(0, 30);
    let number = match &args[0] {
        exact @ (Value::Int(_) | Value::UInt(_) | Value::Decimal(_)) => exact.to_decimal(),
        other => other
            .to_double()
            .map(|number| decimal_of_double(round_double(number, digits, RoundingMode::HalfUp))),
    };
    let Some(number) = number else {
        return Ok(Value::Null);
    };
    let mut out = Vec::new();
    write_decimal(&round_decimal(&number, digits), &mut out);
    let text = String::from_utf8(out).unwrap_or_default();
    let (sign, rest) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = rest
        .split_once('.')
        .map_or((rest, None), |(a, b)| (a, Some(b)));
    let mut grouped = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(fraction) = fraction {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    Ok(Value::Text(grouped))
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
