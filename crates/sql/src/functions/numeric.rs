//! Numbers.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "doubles are approximate; ranges are checked where they matter"
)]

use bigdecimal::{RoundingMode, Signed, ToPrimitive};

use super::{Arguments, ScalarFunction, infer};
use crate::error::{SqlError, SqlResult};
use crate::expr::{BinaryOp, EvalContext, Expr};
use crate::types::{DataType, IntWidth, Value, decimal_scale, integer_value};

use Arguments::{Numbers, Unrounded};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("ABS", (1, 1), infer_number, abs).with(Numbers),
    ScalarFunction::new("SIGN", (1, 1), infer::integer, sign).with(Unrounded),
    ScalarFunction::new("MOD", (2, 2), infer_mod, modulo).with(Unrounded),
    ScalarFunction::new("CEILING", (1, 1), infer_whole, ceiling).with(Unrounded),
    ScalarFunction::new("FLOOR", (1, 1), infer_whole, floor).with(Unrounded),
    ScalarFunction::new("ROUND", (1, 2), infer_round, round).with(Unrounded),
    ScalarFunction::new("TRUNCATE", (2, 2), infer_round, truncate).with(Unrounded),
    ScalarFunction::new("SQRT", (1, 1), infer::double_or_null, sqrt).with(Unrounded),
    ScalarFunction::new("POW", (2, 2), infer::double, pow).with(Unrounded),
    ScalarFunction::new("EXP", (1, 1), infer::double, exp).with(Unrounded),
    ScalarFunction::new("LN", (1, 1), infer::double_or_null, ln).with(Unrounded),
    ScalarFunction::new("LOG", (1, 2), infer::double_or_null, log).with(Unrounded),
    ScalarFunction::new("LOG2", (1, 1), infer::double_or_null, log2).with(Unrounded),
    ScalarFunction::new("LOG10", (1, 1), infer::double_or_null, log10).with(Unrounded),
    ScalarFunction::new("PI", (0, 0), infer::double, pi),
    ScalarFunction::new("SIN", (1, 1), infer::double, |_, args, _| {
        real(args, f64::sin)
    })
    .with(Numbers),
    ScalarFunction::new("COS", (1, 1), infer::double, |_, args, _| {
        real(args, f64::cos)
    })
    .with(Numbers),
    ScalarFunction::new("TAN", (1, 1), infer::double, |_, args, _| {
        real(args, f64::tan)
    })
    .with(Numbers),
    ScalarFunction::new("COT", (1, 1), infer::double, cot).with(Numbers),
    ScalarFunction::new("ASIN", (1, 1), infer::double_or_null, |_, args, _| {
        real(args, f64::asin)
    })
    .with(Numbers),
    ScalarFunction::new("ACOS", (1, 1), infer::double_or_null, |_, args, _| {
        real(args, f64::acos)
    })
    .with(Numbers),
    ScalarFunction::new("ATAN", (1, 2), infer::double, atan).with(Numbers),
    ScalarFunction::new("ATAN2", (2, 2), infer::double, atan).with(Numbers),
    ScalarFunction::new("DEGREES", (1, 1), infer::double, |_, args, _| {
        real(args, f64::to_degrees)
    })
    .with(Numbers),
    ScalarFunction::new("RADIANS", (1, 1), infer::double, |_, args, _| {
        real(args, f64::to_radians)
    })
    .with(Numbers),
    ScalarFunction::new("BIT_COUNT", (1, 1), infer::integer, bit_count).with(Numbers),
    ScalarFunction::new("BIN", (1, 1), infer::short_text, |_, args, _| {
        Ok(converted(&args[0], 10, 2))
    }),
    ScalarFunction::new("OCT", (1, 1), infer::short_text, |_, args, _| {
        Ok(converted(&args[0], 10, 8))
    }),
    ScalarFunction::new("CONV", (3, 3), infer::short_text, conv),
    ScalarFunction::new("HEX", (1, 1), infer::long_ascii, hex),
    ScalarFunction::new("UNHEX", (1, 1), infer::bytes, unhex).with(Arguments::AsText),
    ScalarFunction::new("CRC32", (1, 1), infer::integer, crc32).with(Arguments::AsText),
];

fn number_type(arg: Option<&Expr>) -> DataType {
    match arg.map(|arg| &arg.ty) {
        Some(ty @ (DataType::Int { .. } | DataType::Decimal { .. })) => ty.clone(),
        Some(DataType::Year | DataType::Date | DataType::Null) => DataType::BIGINT,
        Some(DataType::Bit { .. }) => DataType::BIGINT_UNSIGNED,
        Some(ty) if ty.is_temporal() => {
            let (precision, scale) = ty.precision_scale();
            DataType::Decimal {
                precision,
                scale,
                unsigned: false,
            }
        }
        _ => DataType::DOUBLE,
    }
}

fn infer_number(args: &[Expr]) -> (DataType, bool) {
    let ty = match number_type(args.first()) {
        DataType::Int { unsigned: true, .. } => DataType::BIGINT_UNSIGNED,
        DataType::Int { .. } => DataType::BIGINT,
        other => other,
    };
    (ty, args.iter().any(|arg| arg.nullable))
}

fn infer_mod(args: &[Expr]) -> (DataType, bool) {
    match args {
        [a, b] => match Expr::binary(BinaryOp::Mod, a.clone(), b.clone()) {
            Ok(expr) => (expr.ty, true),
            Err(_) => (DataType::DOUBLE, true),
        },
        _ => (DataType::DOUBLE, true),
    }
}

fn infer_whole(args: &[Expr]) -> (DataType, bool) {
    let nullable = args.iter().any(|arg| arg.nullable);
    let ty = match number_type(args.first()) {
        DataType::Double { .. } => DataType::DOUBLE,
        DataType::Decimal {
            precision,
            scale,
            unsigned,
        } if precision.saturating_sub(scale) >= 18 => DataType::Decimal {
            precision: precision.saturating_sub(scale) + 1,
            scale: 0,
            unsigned,
        },
        ty if ty.is_unsigned() => DataType::BIGINT_UNSIGNED,
        _ => DataType::BIGINT,
    };
    (ty, nullable)
}

fn infer_round(args: &[Expr]) -> (DataType, bool) {
    let nullable = args.iter().any(|arg| arg.nullable);
    let ty = match number_type(args.first()) {
        DataType::Int { unsigned: true, .. } => DataType::BIGINT_UNSIGNED,
        DataType::Int { .. } => DataType::BIGINT,
        DataType::Decimal {
            precision,
            scale,
            unsigned,
        } => {
            let wanted = match args.get(1) {
                None => Some(0),
                Some(arg) => arg.as_literal().and_then(Value::to_i64),
            };
            let kept = wanted.map_or(scale, |wanted| {
                u8::try_from(wanted.clamp(0, 30)).unwrap_or(scale)
            });
            DataType::Decimal {
                precision: (precision.saturating_sub(scale) + kept + u8::from(kept < scale))
                    .clamp(1, 65),
                scale: kept,
                unsigned,
            }
        }
        other => other,
    };
    (ty, nullable)
}

fn integer(value: &Value) -> Option<i128> {
    match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::UInt(number) => Some(i128::from(*number)),
        _ => None,
    }
}

/// An integer result in the range of its type.
fn ranged(number: i128, ty: &DataType, what: &str) -> SqlResult<Value> {
    let unsigned = ty.is_unsigned();
    let (least, greatest) = IntWidth::Big.range(unsigned);
    if !(least..=greatest).contains(&number) {
        let kind = if unsigned {
            "BIGINT UNSIGNED"
        } else {
            "BIGINT"
        };
        return Err(out_of_range(kind, what));
    }
    Ok(integer_value(number, IntWidth::Big, unsigned))
}

fn out_of_range(kind: &str, what: &str) -> SqlError {
    SqlError::new(
        1690,
        "22003",
        format!("{kind} value is out of range in '{what}'"),
    )
}

fn finite(number: f64, what: &str) -> SqlResult<Value> {
    if number.is_finite() {
        Ok(Value::Double(number))
    } else {
        Err(out_of_range("DOUBLE", what))
    }
}

fn abs(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    match &args[0] {
        Value::Null => Ok(Value::Null),
        Value::Decimal(decimal) => Ok(Value::decimal(decimal.abs())),
        value => match integer(value) {
            Some(number) => ranged(number.abs(), ty, &format!("abs({number})")),
            None => Ok(Value::Double(value.to_double().unwrap_or(0.0).abs())),
        },
    }
}

fn sign(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(number) = args[0].to_decimal() else {
        return Ok(Value::Null);
    };
    Ok(Value::Int(
        i64::from(number.is_positive()) - i64::from(number.is_negative()),
    ))
}

fn modulo(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    crate::expr::binary_values(ctx, BinaryOp::Mod, &args[0], &args[1], ty)
}

fn whole(
    value: &Value,
    ty: &DataType,
    mode: RoundingMode,
    double: fn(f64) -> f64,
) -> SqlResult<Value> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::Int(_) | Value::UInt(_) => Ok(value.clone()),
        Value::Decimal(decimal) => {
            let rounded = decimal.with_scale_round(0, mode);
            if matches!(ty, DataType::Decimal { .. }) {
                return Ok(Value::decimal(rounded));
            }
            ranged(rounded.to_i128().unwrap_or(i128::MAX), ty, "rounding")
        }
        other => {
            let number = double(other.to_double().unwrap_or(0.0));
            match ty {
                DataType::Int { .. } => ranged(number as i128, ty, "rounding"),
                _ => Ok(Value::Double(number)),
            }
        }
    }
}

fn ceiling(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    whole(&args[0], ty, RoundingMode::Ceiling, f64::ceil)
}

fn floor(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    whole(&args[0], ty, RoundingMode::Floor, f64::floor)
}

fn round(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    round_to(args, ty, RoundingMode::HalfUp)
}

fn truncate(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    round_to(args, ty, RoundingMode::Down)
}

fn round_to(args: &[Value], ty: &DataType, mode: RoundingMode) -> SqlResult<Value> {
    let Some(digits) = args.get(1).map_or(Some(0), Value::to_i64) else {
        return Ok(Value::Null);
    };
    let digits = digits.clamp(-100, 30);
    match (&args[0], ty) {
        (Value::Null, _) => Ok(Value::Null),
        (Value::Int(_) | Value::UInt(_), DataType::Int { .. }) if digits >= 0 => {
            Ok(args[0].clone())
        }
        // A parameter counts as an integer until its value is known.
        (Value::Decimal(number), DataType::Int { .. }) => {
            let kept = digits.min(i64::from(decimal_scale(number)));
            let rounded = number.with_scale_round(kept, mode);
            Ok(Value::decimal(rounded.with_scale(kept.max(0))))
        }
        (value, DataType::Int { .. }) if !matches!(value, Value::Double(_) | Value::Text(_)) => {
            let number = value
                .to_decimal()
                .unwrap_or_default()
                .with_scale_round(digits, mode);
            ranged(number.to_i128().unwrap_or(0), ty, "round")
        }
        (value, DataType::Decimal { scale, .. }) => {
            let number = value.to_decimal().unwrap_or_default();
            let kept = digits.min(i64::from(*scale));
            let rounded = number.with_scale_round(kept, mode);
            Ok(Value::decimal(if kept < 0 {
                rounded.with_scale(0)
            } else {
                rounded.with_scale(i64::from(*scale))
            }))
        }
        (value, _) => Ok(Value::Double(round_double(
            value.to_double().unwrap_or(0.0),
            digits,
            mode,
        ))),
    }
}

/// Doubles round half to even as MySQL's `rint` does, decimals half away from zero.
pub(super) fn round_double(number: f64, digits: i64, mode: RoundingMode) -> f64 {
    let power = 10f64.powi(i32::try_from(digits.abs()).unwrap_or(100));
    let cut = |number: f64| {
        if mode == RoundingMode::Down {
            number.trunc()
        } else {
            number.round_ties_even()
        }
    };
    let result = if digits < 0 {
        if power.is_infinite() {
            0.0
        } else {
            cut(number / power) * power
        }
    } else {
        let scaled = number * power;
        if scaled.is_infinite() {
            number
        } else {
            cut(scaled) / power
        }
    };
    if result.is_nan() { number } else { result }
}

/// A function of a double; NULL where it has no value.
fn real(args: &[Value], function: fn(f64) -> f64) -> SqlResult<Value> {
    let Some(number) = args[0].to_double() else {
        return Ok(Value::Null);
    };
    let result = function(number);
    Ok(if result.is_finite() {
        Value::Double(result)
    } else {
        Value::Null
    })
}

fn sqrt(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    real(args, f64::sqrt)
}

fn pow(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(base), Some(power)) = (args[0].to_double(), args[1].to_double()) else {
        return Ok(Value::Null);
    };
    finite(base.powf(power), &format!("pow({base},{power})"))
}

fn exp(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(number) = args[0].to_double() else {
        return Ok(Value::Null);
    };
    finite(number.exp(), &format!("exp({number})"))
}

fn logarithm(ctx: &EvalContext<'_>, value: &Value, function: fn(f64) -> f64) -> SqlResult<Value> {
    let Some(number) = value.to_double() else {
        return Ok(Value::Null);
    };
    if number <= 0.0 {
        ctx.warn(3020, "Invalid argument for logarithm");
        return Ok(Value::Null);
    }
    Ok(Value::Double(function(number)))
}

fn ln(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    logarithm(ctx, &args[0], f64::ln)
}

fn log(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let base = logarithm(ctx, &args[0], f64::ln)?;
    let Some(number) = args.get(1) else {
        return Ok(base);
    };
    match (base, logarithm(ctx, number, f64::ln)?) {
        (Value::Double(base), Value::Double(number)) if base != 0.0 => {
            Ok(Value::Double(number / base))
        }
        _ => Ok(Value::Null),
    }
}

fn log2(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    logarithm(ctx, &args[0], f64::log2)
}

fn log10(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    logarithm(ctx, &args[0], f64::log10)
}

fn pi(_ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Double(std::f64::consts::PI))
}

fn cot(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(number) = args[0].to_double() else {
        return Ok(Value::Null);
    };
    finite(1.0 / number.tan(), &format!("cot({number})"))
}

fn atan(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    match (args[0].to_double(), args.get(1).map(Value::to_double)) {
        (Some(y), Some(Some(x))) => Ok(Value::Double(y.atan2(x))),
        (Some(x), None) => Ok(Value::Double(x.atan())),
        _ => Ok(Value::Null),
    }
}

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
        u32::try_from(base.abs())
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
    let number = digits
        .chars()
        .map_while(|c| c.to_digit(from_base))
        .fold(0u64, |number, digit| {
            number
                .checked_mul(u64::from(from_base))
                .and_then(|number| number.checked_add(u64::from(digit)))
                .unwrap_or(u64::MAX)
        });
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

/// Upper-case hexadecimal digits.
pub(super) fn hex_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    bytes
        .iter()
        .flat_map(|byte| {
            [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]
        })
        .map(char::from)
        .collect()
}

fn hex(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(match &args[0] {
        Value::Null => Value::Null,
        value if value.is_number() => value
            .to_bits()
            .map_or(Value::Null, |bits| Value::Text(in_base(bits, 16))),
        value => Value::Text(hex_of(&value.to_bytes().unwrap_or_default())),
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
