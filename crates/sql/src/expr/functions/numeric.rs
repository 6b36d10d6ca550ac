//! Powers, logarithms and angles.

use super::{Arguments, ScalarFunction, infer};
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::types::{DataType, Value};

use Arguments::{Numbers, Unrounded};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
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
];

/// 1690.
pub(super) fn out_of_range(kind: &str, what: &str) -> SqlError {
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

/// NULL with warning 3020 for what has none.
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
