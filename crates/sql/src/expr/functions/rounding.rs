//! Rounding to whole numbers and to digits, signs and remainders.

#![allow(
    clippy::cast_precision_loss,
    reason = "doubles are approximate; ranges are checked where they matter"
)]

use bigdecimal::{RoundingMode, Signed, ToPrimitive};

use super::numeric::out_of_range;
use super::{Arguments, ScalarFunction, infer};
use crate::error::SqlResult;
use crate::expr::{EvalContext, binary_values};
use crate::plan::{BinaryOp, Expr};
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
];

/// The kind of number an argument is taken as.
fn number_type(arg: Option<&Expr>) -> DataType {
    match arg.map(|arg| &arg.ty) {
        Some(ty @ (DataType::Int { .. } | DataType::Decimal { .. })) => ty.clone().computed(),
        Some(DataType::Year | DataType::Date | DataType::Null) => DataType::BIGINT,
        Some(DataType::Bit { .. }) => DataType::BIGINT_UNSIGNED,
        Some(ty) if ty.is_temporal() => {
            let (precision, scale) = ty.precision_scale();
            DataType::Decimal {
                precision,
                scale,
                sign: DataType::SIGNED,
            }
        }
        _ => DataType::DOUBLE,
    }
}

fn infer_number(args: &[Expr]) -> (DataType, bool) {
    let ty = match number_type(args.first()) {
        DataType::Int { unsigned: true, .. } => DataType::BIGINT_UNSIGNED,
        DataType::Int { .. } => DataType::BIGINT,
        DataType::Double { .. } => {
            DataType::double_with(args.first().and_then(|arg| arg.ty.fraction_digits()))
        }
        other => other,
    };
    (ty, args.iter().any(|arg| arg.nullable))
}

fn infer_whole(args: &[Expr]) -> (DataType, bool) {
    let nullable = args.iter().any(|arg| arg.nullable);
    let ty = match number_type(args.first()) {
        DataType::Double { .. } => DataType::DOUBLE,
        DataType::Decimal {
            precision,
            scale,
            sign,
        } if precision.saturating_sub(scale) >= 18 => DataType::Decimal {
            precision: precision.saturating_sub(scale) + 1,
            scale: 0,
            sign,
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
            sign,
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
                sign,
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

fn ceiling(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    whole(&args[0], ty, RoundingMode::Ceiling, f64::ceil)
}

fn floor(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    whole(&args[0], ty, RoundingMode::Floor, f64::floor)
}

/// CEILING and FLOOR: `mode` for decimals, `double` for doubles.
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

fn round(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    round_to(args, ty, RoundingMode::HalfUp)
}

fn truncate(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    round_to(args, ty, RoundingMode::Down)
}

/// ROUND and TRUNCATE to the digits of the second argument, 0 by default.
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

fn infer_mod(args: &[Expr]) -> (DataType, bool) {
    match args {
        [a, b] => match Expr::binary(BinaryOp::Mod, a.clone(), b.clone()) {
            Ok(expr) => (expr.ty, true),
            Err(_) => (DataType::DOUBLE, true),
        },
        _ => (DataType::DOUBLE, true),
    }
}

fn modulo(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    binary_values(ctx, BinaryOp::Mod, &args[0], &args[1], ty)
}
