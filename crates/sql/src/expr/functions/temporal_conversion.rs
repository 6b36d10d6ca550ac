//! Dates and times made of numbers, put together, or brought to another zone.

use bigdecimal::ToPrimitive;

use super::temporal_arithmetic::clamped;
use super::temporal_parse::{datetime_arg, time_arg};
use super::{ScalarFunction, infer};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::plan::Expr;
use crate::types::{
    DataType, Date, DateTime, Decimal, MICROS_PER_SECOND, Value, expand_year, from_utc_micros,
    parse_datetime, parse_time_zone, to_utc_micros,
};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("TIMESTAMP", (1, 2), infer_timestamp, timestamp),
    ScalarFunction::new("MAKEDATE", (2, 2), infer::date, makedate),
    ScalarFunction::new("MAKETIME", (3, 3), infer_maketime, maketime),
    ScalarFunction::new("SEC_TO_TIME", (1, 1), infer_sec_to_time, sec_to_time),
    ScalarFunction::new("TIME_TO_SEC", (1, 1), infer::integer_or_null, time_to_sec),
    ScalarFunction::new("CONVERT_TZ", (3, 3), infer_datetime, convert_tz),
    ScalarFunction::new("UNIX_TIMESTAMP", (0, 1), infer_unix, unix_timestamp).per_statement(),
];

fn infer_timestamp(args: &[Expr]) -> (DataType, bool) {
    let fsp = args.iter().map(datetime_fsp).max().unwrap_or(0);
    (DataType::DateTime { fsp }, true)
}

/// Digits of the fraction of what `arg` is as a date and time.
fn datetime_fsp(arg: &Expr) -> u8 {
    match arg.as_literal() {
        Some(Value::Text(text)) => parse_datetime(text).map_or(0, |(parsed, _)| parsed.fsp),
        _ => infer::fraction_digits(&arg.ty),
    }
}

fn timestamp(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(start) = datetime_arg(ctx, &args[0])? else {
        return Ok(Value::Null);
    };
    let Some(more) = args.get(1) else {
        return Ok(Value::DateTime(start));
    };
    let Some(by) = time_arg(ctx, more)? else {
        return Ok(Value::Null);
    };
    let end = DateTime::from_linear_micros(start.linear_micros() + by.micros);
    Ok(end.map_or(Value::Null, Value::DateTime))
}

fn makedate(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(year), Some(day)) = (args[0].to_i64(), args[1].to_i64()) else {
        return Ok(Value::Null);
    };
    let Ok(year) = u64::try_from(year) else {
        return Ok(Value::Null);
    };
    let year = u16::try_from(expand_year(year))
        .ok()
        .filter(|year| *year <= 9999);
    let (Some(year), true) = (year, day > 0) else {
        return Ok(Value::Null);
    };
    let first = Date {
        year,
        month: 1,
        day: 1,
    }
    .day_number();
    Ok(Date::from_day_number(first.saturating_add(day - 1)).map_or(Value::Null, Value::Date))
}

/// A time with the digits that its seconds, the third argument, have.
fn infer_maketime(args: &[Expr]) -> (DataType, bool) {
    let fsp = args.get(2);
    let fsp = fsp.map_or(0, |seconds| infer::fraction_digits(&seconds.ty));
    (DataType::Time { fsp }, true)
}

fn maketime(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(hours), Some(minutes), Some(seconds)) =
        (args[0].to_i64(), args[1].to_i64(), args[2].to_decimal())
    else {
        return Ok(Value::Null);
    };
    let micros = (seconds * Decimal::from(MICROS_PER_SECOND)).to_i64();
    let Some(micros) = micros.filter(|micros| (0..60 * MICROS_PER_SECOND).contains(micros)) else {
        return Ok(Value::Null);
    };
    if !(0..60).contains(&minutes) {
        return Ok(Value::Null);
    }
    let rest = minutes * 60 * MICROS_PER_SECOND + micros;
    let whole = hours.clamp(-1_000_000, 1_000_000).abs() * 3600 * MICROS_PER_SECOND + rest;
    Ok(Value::Time(clamped(
        ctx,
        if hours < 0 { -whole } else { whole },
    )?))
}

fn infer_sec_to_time(args: &[Expr]) -> (DataType, bool) {
    let fsp = args.first();
    let fsp = fsp.map_or(0, |seconds| infer::fraction_digits(&seconds.ty));
    (DataType::Time { fsp }, true)
}

fn sec_to_time(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(seconds) = args[0].to_decimal() else {
        return Ok(Value::Null);
    };
    let micros = (seconds * Decimal::from(MICROS_PER_SECOND))
        .to_i64()
        .unwrap_or(i64::MAX);
    Ok(Value::Time(clamped(ctx, micros)?))
}

fn time_to_sec(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let time = time_arg(ctx, &args[0])?;
    Ok(time.map_or(Value::Null, |time| {
        Value::Int(time.micros / MICROS_PER_SECOND)
    }))
}

fn infer_datetime(args: &[Expr]) -> (DataType, bool) {
    let fsp = args.first().map_or(0, datetime_fsp);
    (DataType::DateTime { fsp }, true)
}

fn convert_tz(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(value), Some(from), Some(to)) = (
        datetime_arg(ctx, &args[0])?,
        args[1].to_text(),
        args[2].to_text(),
    ) else {
        return Ok(Value::Null);
    };
    let (Ok(from), Ok(to)) = (parse_time_zone(&from, "UTC"), parse_time_zone(&to, "UTC")) else {
        return Ok(Value::Null);
    };
    let Some(micros) = to_utc_micros(value, &from) else {
        return Ok(Value::Null);
    };
    // Outside the range of TIMESTAMP the value is handed back unchanged.
    if !(0..32_536_771_200_000_000).contains(&micros) {
        return Ok(Value::DateTime(value));
    }
    Ok(Value::DateTime(from_utc_micros(micros, &to)))
}

fn infer_unix(args: &[Expr]) -> (DataType, bool) {
    let fsp = args.first().map_or(0, datetime_fsp);
    let nullable = args.iter().any(|arg| arg.nullable);
    if fsp == 0 {
        return (DataType::BIGINT, nullable);
    }
    (
        DataType::Decimal {
            precision: 18,
            scale: fsp,
            sign: DataType::SIGNED,
        },
        nullable,
    )
}

fn unix_timestamp(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let Some(arg) = args.first() else {
        return Ok(Value::Int(ctx.now_micros.div_euclid(MICROS_PER_SECOND)));
    };
    if arg.is_null() {
        return Ok(Value::Null);
    }
    let micros = datetime_arg(ctx, arg)?.and_then(|value| to_utc_micros(value, &ctx.time_zone));
    let micros = micros.filter(|micros| *micros >= 0).unwrap_or(0);
    Ok(match ty {
        DataType::Decimal { scale, .. } => {
            let seconds = Decimal::new(micros.into(), 6);
            let cut = seconds.with_scale_round(i64::from(*scale), bigdecimal::RoundingMode::Down);
            Value::decimal(cut)
        }
        _ => Value::Int(micros / MICROS_PER_SECOND),
    })
}
