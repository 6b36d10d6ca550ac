//! Text that a number chooses or becomes, and numbers of characters.

use bigdecimal::RoundingMode;

use super::rounding::round_double;
use super::string::{made, taken};
use super::{Arguments, MANY, ScalarFunction, infer};
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::types::{DataType, Value, decimal_of_double, round_decimal, write_decimal};

use Arguments::AsText;

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("ELT", (2, MANY), infer::text_or_null, elt).with(AsText),
    ScalarFunction::new("MAKE_SET", (2, MANY), infer::text_or_null, make_set).with(AsText),
    ScalarFunction::new("EXPORT_SET", (3, 5), infer::long_text, export_set).with(AsText),
    ScalarFunction::new("ASCII", (1, 1), infer::integer, ascii).with(AsText),
    ScalarFunction::new("ORD", (1, 1), infer::integer, ord).with(AsText),
    ScalarFunction::new("CHAR", (1, MANY), infer::bytes, char_),
    ScalarFunction::new("FORMAT", (2, 3), infer::short_text, format).with(Arguments::Unrounded),
];

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
    Ok(Value::Text(grouped(&text)))
}

/// A number's text with its thousands set apart.
fn grouped(text: &str) -> String {
    let (sign, rest) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
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
    grouped
}
