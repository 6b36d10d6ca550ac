//! Arithmetic and bit operators on values.

use bigdecimal::{RoundingMode, ToPrimitive, Zero};

use super::EvalContext;
use crate::error::{SqlError, SqlResult};
use crate::plan::BinaryOp;
use crate::types::{
    DataType, Decimal, IntWidth, MAX_DECIMAL_SCALE, Value, decimal_limit, integer_value,
    round_decimal,
};

/// Describes the expression for error 1690.
type Describe<'a> = &'a dyn Fn() -> String;

fn out_of_range(kind: &str, describe: Describe<'_>) -> SqlError {
    SqlError::new(
        1690,
        "22003",
        format!("{kind} value is out of range in '{}'", describe()),
    )
}

/// `a op b` with the result type `ty`.
///
/// # Errors
/// 1690; 1292 and 1365 inside a strict write.
pub fn binary(
    ctx: &EvalContext<'_>,
    op: BinaryOp,
    a: &Value,
    b: &Value,
    ty: &DataType,
    describe: Describe<'_>,
) -> SqlResult<Value> {
    use BinaryOp::{BitAnd, BitOr, BitXor, IntDiv, ShiftLeft, ShiftRight};
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    match (op, ty) {
        (BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight, _) => bits(ctx, op, a, b),
        (IntDiv, _) => integer_division(ctx, a, b, ty, describe),
        // Parameters count as integers until their values are known.
        (_, DataType::Int { .. }) if is_approximate(a) || is_approximate(b) => {
            doubles(ctx, op, a, b, describe)
        }
        (_, DataType::Int { .. }) if [a, b].iter().any(|v| matches!(v, Value::Decimal(_))) => {
            decimals(ctx, op, a, b, describe)
        }
        (_, DataType::Int { unsigned, .. }) => integers(ctx, op, a, b, *unsigned, describe),
        (_, DataType::Decimal { .. }) => decimals(ctx, op, a, b, describe),
        _ => doubles(ctx, op, a, b, describe),
    }
}

/// Whether a value is calculated with as a double.
fn is_approximate(value: &Value) -> bool {
    matches!(
        value,
        Value::Double(_) | Value::Text(_) | Value::Bytes(_) | Value::Json(_)
    )
}

fn bits(ctx: &EvalContext<'_>, op: BinaryOp, a: &Value, b: &Value) -> SqlResult<Value> {
    for side in [a, b] {
        if let (Value::Text(_), Some((_, false))) = (side, side.to_integer_checked()) {
            ctx.truncated("INTEGER", side)?;
        }
    }
    let (Some(left), Some(right)) = (a.to_bits(), b.to_bits()) else {
        return Ok(Value::Null);
    };
    let shift = u32::try_from(right).unwrap_or(u32::MAX);
    Ok(Value::UInt(match op {
        BinaryOp::BitAnd => left & right,
        BinaryOp::BitOr => left | right,
        BinaryOp::BitXor => left ^ right,
        BinaryOp::ShiftLeft => left.checked_shl(shift).unwrap_or(0),
        _ => left.checked_shr(shift).unwrap_or(0),
    }))
}

fn division_by_zero(ctx: &EvalContext<'_>) -> SqlResult<Value> {
    if ctx.sql_mode.error_for_division_by_zero {
        ctx.problem(1365, "22012", "Division by 0")?;
    }
    Ok(Value::Null)
}

fn integers(
    ctx: &EvalContext<'_>,
    op: BinaryOp,
    a: &Value,
    b: &Value,
    unsigned: bool,
    describe: Describe<'_>,
) -> SqlResult<Value> {
    if let (Value::Int(left), Value::Int(right), false) = (a, b, unsigned) {
        let result = match op {
            BinaryOp::Add => left.checked_add(*right),
            BinaryOp::Sub => left.checked_sub(*right),
            BinaryOp::Mul => left.checked_mul(*right),
            _ if *right == 0 => return division_by_zero(ctx),
            _ => Some(left.checked_rem(*right).unwrap_or(0)),
        };
        return result
            .map(Value::Int)
            .ok_or_else(|| out_of_range("BIGINT", describe));
    }
    let (left, right) = (integer(a), integer(b));
    let result = match op {
        BinaryOp::Add => left.checked_add(right),
        BinaryOp::Sub => left.checked_sub(right),
        BinaryOp::Mul => left.checked_mul(right),
        _ if right == 0 => return division_by_zero(ctx),
        _ => left.checked_rem(right),
    };
    let signed_result = unsigned && op == BinaryOp::Sub && ctx.sql_mode.no_unsigned_subtraction;
    ranged(result, unsigned && !signed_result, describe)
}

fn integer(value: &Value) -> i128 {
    value.to_integer_checked().map_or(0, |(number, _)| number)
}

fn ranged(result: Option<i128>, unsigned: bool, describe: Describe<'_>) -> SqlResult<Value> {
    let (least, greatest) = IntWidth::Big.range(unsigned);
    match result {
        Some(number) if (least..=greatest).contains(&number) => {
            Ok(integer_value(number, IntWidth::Big, unsigned))
        }
        _ => Err(out_of_range(
            if unsigned {
                "BIGINT UNSIGNED"
            } else {
                "BIGINT"
            },
            describe,
        )),
    }
}

fn integer_division(
    ctx: &EvalContext<'_>,
    a: &Value,
    b: &Value,
    ty: &DataType,
    describe: Describe<'_>,
) -> SqlResult<Value> {
    let unsigned = ty.is_unsigned();
    let whole = |value: &Value| matches!(value, Value::Int(_) | Value::UInt(_));
    if whole(a) && whole(b) {
        let (left, right) = (integer(a), integer(b));
        if right == 0 {
            return division_by_zero(ctx);
        }
        return ranged(left.checked_div(right), unsigned, describe);
    }
    let (left, right) = (exact(ctx, a)?, exact(ctx, b)?);
    if right.is_zero() {
        return division_by_zero(ctx);
    }
    let quotient = divide(&left, &right, 0, RoundingMode::Down);
    ranged(quotient.to_i128(), unsigned, describe)
}

fn exact(ctx: &EvalContext<'_>, value: &Value) -> SqlResult<Decimal> {
    let (number, complete) = value.to_decimal_checked().unwrap_or_default();
    if !complete {
        ctx.truncated("DECIMAL", value)?;
    }
    Ok(number)
}

/// Digits after the point an operand of decimal arithmetic brings.
fn scale_of(value: &Decimal) -> i64 {
    value.fractional_digit_count().clamp(0, 30)
}

/// `a / b` to `scale` digits after the point; `b` is not zero.
fn divide(a: &Decimal, b: &Decimal, scale: i64, mode: RoundingMode) -> Decimal {
    let (a_digits, a_scale) = a.as_bigint_and_scale();
    let (b_digits, b_scale) = b.as_bigint_and_scale();
    // One digit more than asked for, then round: exact halves need the remainder's presence.
    let shift = scale + 1 + b_scale - a_scale;
    let ten = bigdecimal::num_bigint::BigInt::from(10u8);
    let power = u32::try_from(shift.unsigned_abs()).unwrap_or(0);
    let (numerator, denominator) = if shift >= 0 {
        (a_digits.as_ref() * ten.pow(power), b_digits.into_owned())
    } else {
        (a_digits.into_owned(), b_digits.as_ref() * ten.pow(power))
    };
    Decimal::new(numerator / denominator, scale + 1).with_scale_round(scale, mode)
}

fn decimals(
    ctx: &EvalContext<'_>,
    op: BinaryOp,
    a: &Value,
    b: &Value,
    describe: Describe<'_>,
) -> SqlResult<Value> {
    let (left, right) = (exact(ctx, a)?, exact(ctx, b)?);
    let scale = scale_of(&left).max(scale_of(&right));
    let result = match op {
        BinaryOp::Add => (left + right).with_scale(scale),
        BinaryOp::Sub => (left - right).with_scale(scale),
        BinaryOp::Mul => {
            let scale = (scale_of(&left) + scale_of(&right)).min(i64::from(MAX_DECIMAL_SCALE));
            round_decimal(&(left * right), scale)
        }
        _ if right.is_zero() => return division_by_zero(ctx),
        BinaryOp::Div => {
            let scale = scale_of(&left) + i64::from(ctx.div_precision_increment);
            divide(
                &left,
                &right,
                scale.min(i64::from(MAX_DECIMAL_SCALE)),
                RoundingMode::HalfUp,
            )
        }
        _ => {
            let quotient = divide(&left, &right, 0, RoundingMode::Down);
            (left - quotient * right).with_scale(scale)
        }
    };
    // 65 digits have at least 215 bits: what is shorter fits without a closer look.
    if result.as_bigint_and_scale().0.bits() > 215 {
        let limit = decimal_limit(65, 0);
        if result > limit || result < -limit {
            return Err(out_of_range("DECIMAL", describe));
        }
    }
    Ok(Value::decimal(result))
}

fn doubles(
    ctx: &EvalContext<'_>,
    op: BinaryOp,
    a: &Value,
    b: &Value,
    describe: Describe<'_>,
) -> SqlResult<Value> {
    let (left, right) = (double(ctx, a)?, double(ctx, b)?);
    let result = match op {
        BinaryOp::Add => left + right,
        BinaryOp::Sub => left - right,
        BinaryOp::Mul => left * right,
        _ if right == 0.0 => return division_by_zero(ctx),
        BinaryOp::Div => left / right,
        _ => left % right,
    };
    if !result.is_finite() {
        return Err(out_of_range("DOUBLE", describe));
    }
    Ok(Value::Double(result))
}

fn double(ctx: &EvalContext<'_>, value: &Value) -> SqlResult<f64> {
    let (number, complete) = value.to_double_checked().unwrap_or((0.0, true));
    if !complete {
        ctx.truncated("DOUBLE", value)?;
    }
    Ok(number)
}

/// `a / b` as an operand of further arithmetic: cut at the next multiple of nine digits, the
/// unit MySQL's decimals are kept in.
///
/// # Errors
/// 1292 and 1365 inside a strict write.
pub fn quotient(ctx: &EvalContext<'_>, a: &Value, b: &Value) -> SqlResult<Value> {
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    let (left, right) = (exact(ctx, a)?, exact(ctx, b)?);
    if right.is_zero() {
        return division_by_zero(ctx);
    }
    let shown = scale_of(&left) + i64::from(ctx.div_precision_increment);
    let kept = ((shown + 8) / 9 * 9).min(i64::from(MAX_DECIMAL_SCALE));
    Ok(Value::decimal(divide(
        &left,
        &right,
        kept,
        RoundingMode::Down,
    )))
}

/// `-a` with the result type `ty`.
///
/// # Errors
/// 1690; 1292 inside a strict write.
pub fn negate(
    ctx: &EvalContext<'_>,
    value: &Value,
    ty: &DataType,
    describe: Describe<'_>,
) -> SqlResult<Value> {
    match (value, ty) {
        (Value::Null, _) => Ok(Value::Null),
        (value, DataType::Int { .. }) if is_approximate(value) => {
            Ok(Value::Double(-double(ctx, value)?))
        }
        (Value::Decimal(decimal), _) => Ok(Value::decimal(-(**decimal).clone())),
        (_, DataType::Int { .. }) => ranged(integer(value).checked_neg(), false, describe),
        (_, DataType::Decimal { .. }) => Ok(Value::decimal(-exact(ctx, value)?)),
        _ => Ok(Value::Double(-double(ctx, value)?)),
    }
}

/// As [`binary`], for callers that have values and no expression to show.
///
/// # Errors
/// As [`binary`].
pub fn binary_values(
    ctx: &EvalContext<'_>,
    op: BinaryOp,
    a: &Value,
    b: &Value,
    ty: &DataType,
) -> SqlResult<Value> {
    let show = |value: &Value| value.to_text().unwrap_or_default();
    binary(ctx, op, a, b, ty, &|| {
        format!("({} {} {})", show(a), op.symbol(), show(b))
    })
}
