//! Numbers and bytes as digits of some base, and what their bits sum up to.

use super::{Arguments, ScalarFunction, infer};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::types::{DataType, Value};

use Arguments::{AsText, Numbers};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("BIT_COUNT", (1, 1), infer::integer, bit_count).with(Numbers),
    ScalarFunction::new("BIN", (1, 1), infer::short_text, |_, args, _| {
        Ok(converted(&args[0], 10, 2))
    }),
    ScalarFunction::new("OCT", (1, 1), infer::short_text, |_, args, _| {
        Ok(converted(&args[0], 10, 8))
    }),
    ScalarFunction::new("CONV", (3, 3), infer::short_text, conv),
    ScalarFunction::new("HEX", (1, 1), infer::long_ascii, hex),
    ScalarFunction::new("UNHEX", (1, 1), infer::bytes, unhex).with(AsText),
    ScalarFunction::new("CRC32", (1, 1), infer::integer, crc32).with(AsText),
];

fn bit_count(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    if let Value::Bytes(bytes) = &args[0] {
        return Ok(Value::Int(
            bytes.iter().map(|byte| i64::from(byte.count_ones())).sum(),
        ));
    }
    Ok(args[0]
        .to_bits()
        .map_or(Value::Null, |bits| Value::Int(bits.count_ones().into())))
}

fn conv(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(from), Some(to)) = (args[1].to_i64(), args[2].to_i64()) else {
        return Ok(Value::Null);
    };
    Ok(converted(&args[0], from, to))
}

/// The whole number that the text of `value` starts with in base `from`, written in base `to`;
/// negative bases mean signed numbers. NULL for what has none, and for bases outside 2–36.
fn converted(value: &Value, from: i64, to: i64) -> Value {
    let Some(text) = value.to_text() else {
        return Value::Null;
    };
    let base = |base: i64| {
        u32::try_from(base.unsigned_abs())
            .ok()
            .filter(|base| (2..=36).contains(base))
    };
    let (Some(from_base), Some(to_base)) = (base(from), base(to)) else {
        return Value::Null;
    };
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Value::Null;
    }
    let (negative, digits) = trimmed
        .strip_prefix('-')
        .map_or((false, trimmed), |rest| (true, rest));
    let number = leading_number(digits, from_base);
    let number = if negative {
        number.wrapping_neg()
    } else {
        number
    };
    let signed = number.cast_signed();
    let shown = if to < 0 && signed < 0 {
        format!("-{}", in_base(signed.unsigned_abs(), to_base))
    } else {
        in_base(number, to_base)
    };
    Value::Text(shown)
}

/// The digits that `text` starts with, at most the greatest number there is.
fn leading_number(text: &str, base: u32) -> u64 {
    text.chars()
        .map_while(|character| character.to_digit(base))
        .fold(0u64, |number, digit| {
            number
                .checked_mul(u64::from(base))
                .and_then(|number| number.checked_add(u64::from(digit)))
                .unwrap_or(u64::MAX)
        })
}

fn in_base(mut bits: u64, base: u32) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(bits % u64::from(base)).unwrap_or(0);
        digits.push(
            char::from_digit(digit, base)
                .unwrap_or('0')
                .to_ascii_uppercase(),
        );
        bits /= u64::from(base);
        if bits == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}

fn hex(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(match &args[0] {
        Value::Null => Value::Null,
        value if value.is_number() => value
            .to_bits()
            .map_or(Value::Null, |bits| Value::Text(in_base(bits, 16))),
        value => Value::Text(hex::encode_upper(value.to_bytes().unwrap_or_default())),
    })
}

fn unhex(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(text) = args[0].to_text() else {
        return Ok(Value::Null);
    };
    let padded = if text.len().is_multiple_of(2) {
        text
    } else {
        format!("0{text}")
    };
    let digits: Option<Vec<u8>> = padded
        .chars()
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    Ok(digits.map_or(Value::Null, |digits| {
        Value::Bytes(
            digits
                .chunks_exact(2)
                .map(|pair| pair[0] << 4 | pair[1])
                .collect(),
        )
    }))
}

fn crc32(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let bytes = args[0].to_bytes();
    Ok(bytes.map_or(Value::Null, |bytes| {
        Value::Int(crc32fast::hash(&bytes).into())
    }))
}
