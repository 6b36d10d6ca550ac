//! Sums and differences of dates and times.

use super::interval::{self, Amount, Unit};
use super::temporal_parse::{date_arg, datetime_arg, time_arg};
use super::{Arguments, ScalarFunction, infer};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::plan::Expr;
use crate::types::{
    DataType, DateTime, MICROS_PER_SECOND, Time, Value, expand_year, parse_datetime, parse_time,
    to_text,
};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("DATE_ADD", (2, 3), infer_date_add, date_add),
    ScalarFunction::new("DATE_SUB", (2, 3), infer_date_add, date_sub),
    ScalarFunction::new("TIMESTAMPADD", (3, 3), infer_timestampadd, timestampadd),
    ScalarFunction::new(
        "TIMESTAMPDIFF",
        (3, 3),
        infer::integer_or_null,
        timestampdiff,
    ),
    ScalarFunction::new("DATEDIFF", (2, 2), infer::integer_or_null, datediff),
    ScalarFunction::new("TIMEDIFF", (2, 2), infer_time6, timediff),
    ScalarFunction::new("ADDTIME", (2, 2), infer_addtime, addtime).with(Arguments::Plain),
    ScalarFunction::new("SUBTIME", (2, 2), infer_addtime, subtime),
    ScalarFunction::new("_MOMENT_NUMBER", (1, 1), infer::double, moment_number),
    ScalarFunction::new("PERIOD_ADD", (2, 2), infer::integer, period_add),
    ScalarFunction::new("PERIOD_DIFF", (2, 2), infer::integer, period_diff),
];

fn unit_of(args: &[Expr], at: usize) -> Option<&'static Unit> {
    match args.get(at).and_then(Expr::as_literal) {
        Some(Value::Text(name)) => interval::unit(name),
        _ => interval::unit("DAY"),
    }
}

fn amount_fsp(amount: Option<&Expr>, unit: &Unit) -> u8 {
    match amount.map(|amount| &amount.ty) {
        _ if unit.has_micros() => 6,
        Some(DataType::Decimal { scale, .. }) if unit.name == "SECOND" => (*scale).min(6),
        Some(ty) if unit.name == "SECOND" && (ty.is_text() || ty.is_float()) => 6,
        _ => 0,
    }
}

/// DATE stays DATE with units of days, times and datetimes keep their kind, text gives text.
fn sum_type(value: &DataType, unit: &Unit, fsp: u8) -> DataType {
    match value {
        DataType::Date if unit.keeps_date() => DataType::Date,
        DataType::Date => DataType::DateTime { fsp },
        DataType::Time { fsp: own } if !unit.keeps_date() || unit.name == "DAY" => {
            DataType::Time { fsp: fsp.max(*own) }
        }
        DataType::Time { fsp: own }
        | DataType::DateTime { fsp: own }
        | DataType::Timestamp { fsp: own } => DataType::DateTime { fsp: fsp.max(*own) },
        _ => DataType::varchar(29),
    }
}

fn infer_date_add(args: &[Expr]) -> (DataType, bool) {
    let Some((value, unit)) = args.first().zip(unit_of(args, 2)) else {
        return (DataType::Null, true);
    };
    (
        sum_type(&value.ty, unit, amount_fsp(args.get(1), unit)),
        true,
    )
}

fn infer_timestampadd(args: &[Expr]) -> (DataType, bool) {
    let Some((value, unit)) = args.get(2).zip(unit_of(args, 0)) else {
        return (DataType::Null, true);
    };
    (
        sum_type(&value.ty, unit, amount_fsp(args.get(1), unit)),
        true,
    )
}

/// `value + amount` as a value of `ty`.
fn sum(
    ctx: &EvalContext<'_>,
    value: &Value,
    amount: Option<Amount>,
    unit: &Unit,
    ty: &DataType,
) -> SqlResult<Value> {
    let Some(amount) = amount else {
        return Ok(Value::Null);
    };
    if let (Value::Time(time), DataType::Time { .. }) = (value, ty) {
        let Some(micros) = time.micros.checked_add(amount.micros) else {
            return Ok(Value::Null);
        };
        return Ok(Value::Time(Time::clamped(micros).0));
    }
    let Some(start) = datetime_arg(ctx, value)? else {
        return Ok(Value::Null);
    };
    let allowed = !start.date.is_partial() || (amount.micros == 0 && start.date.month > 0);
    let Some(end) = interval::add(start, amount).filter(|_| allowed) else {
        ctx.problem(1441, "22008", "Datetime function: datetime field overflow")?;
        return Ok(Value::Null);
    };
    Ok(match ty {
        DataType::Date => Value::Date(end.date),
        _ if ty.is_temporal() => Value::DateTime(end),
        _ => Value::Text(text_sum(value, end, unit)),
    })
}

/// A text that is a date or time as the number of its digits, 20240201 for '2024-02-01'.
fn moment_number(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Value::Text(text) = &args[0] else {
        return Ok(args[0].to_double().map_or(Value::Null, Value::Double));
    };
    let moment = match parse_datetime(text).filter(|_| text.contains('-')) {
        Some((parsed, _)) if parsed.has_time => Some(Value::DateTime(parsed.value)),
        Some((parsed, _)) => Some(Value::Date(parsed.value.date)),
        None => parse_time(text).map(|parsed| Value::Time(parsed.value)),
    };
    let number = moment.and_then(|moment| moment.to_double());
    Ok(number.map_or(Value::Null, Value::Double))
}

/// Text plus an interval is text: a date as long as no time of day is involved.
fn text_sum(value: &Value, end: DateTime, unit: &Unit) -> String {
    let (had_time, fsp) = match value {
        Value::Text(text) => {
            parse_datetime(text).map_or((true, 0), |(parsed, _)| (parsed.has_time, parsed.fsp))
        }
        Value::Int(number) => (*number >= 100_000_000, 0),
        _ => (true, 0),
    };
    if !had_time && unit.keeps_date() {
        return to_text(&Value::Date(end.date), &DataType::Date);
    }
    let fsp = if fsp > 0 || end.time().micros % MICROS_PER_SECOND != 0 {
        6
    } else {
        0
    };
    to_text(&Value::DateTime(end), &DataType::DateTime { fsp })
}

fn date_add(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let Some(unit) = unit_argument(args.get(2)) else {
        return Ok(Value::Null);
    };
    sum(ctx, &args[0], interval::amount(&args[1], unit), unit, ty)
}

fn date_sub(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let Some(unit) = unit_argument(args.get(2)) else {
        return Ok(Value::Null);
    };
    let amount = interval::amount(&args[1], unit).and_then(Amount::negated);
    sum(ctx, &args[0], amount, unit, ty)
}

fn unit_argument(arg: Option<&Value>) -> Option<&'static Unit> {
    match arg {
        Some(Value::Text(name)) => interval::unit(name),
        Some(_) => None,
        None => interval::unit("DAY"),
    }
}

fn timestampadd(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let Some(unit) = unit_argument(args.first()) else {
        return Ok(Value::Null);
    };
    sum(ctx, &args[2], interval::amount(&args[1], unit), unit, ty)
}

fn timestampdiff(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(unit) = unit_argument(args.first()) else {
        return Ok(Value::Null);
    };
    let (Some(from), Some(to)) = (datetime_arg(ctx, &args[1])?, datetime_arg(ctx, &args[2])?)
    else {
        return Ok(Value::Null);
    };
    if from.date.is_partial() || to.date.is_partial() {
        return Ok(Value::Null);
    }
    let micros = to.linear_micros() - from.linear_micros();
    let one = interval::amount(&Value::Int(1), unit);
    Ok(match one {
        Some(Amount {
            months: 0,
            micros: step,
        }) if step != 0 => Value::Int(micros / step),
        Some(Amount { months, .. }) if months != 0 => Value::Int(whole_months(from, to) / months),
        _ => Value::Null,
    })
}

/// Full months between two moments, negative backwards.
fn whole_months(from: DateTime, to: DateTime) -> i64 {
    if to < from {
        return -whole_months(to, from);
    }
    let months = |value: DateTime| i64::from(value.date.year) * 12 + i64::from(value.date.month);
    let incomplete = (to.date.day, to.micros) < (from.date.day, from.micros);
    months(to) - months(from) - i64::from(incomplete)
}

fn datediff(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(a), Some(b)) = (date_arg(ctx, &args[0])?, date_arg(ctx, &args[1])?) else {
        return Ok(Value::Null);
    };
    if a.is_partial() || b.is_partial() {
        return Ok(Value::Null);
    }
    Ok(Value::Int(a.day_number() - b.day_number()))
}

fn args_fsp(args: &[Expr]) -> u8 {
    let of = |arg: &Expr| match arg.as_literal() {
        Some(Value::Text(text)) => parse_time(text).map_or(0, |parsed| parsed.fsp),
        _ if arg.ty.is_text() => 6,
        _ => {
            arg.ty.precision_scale().1.min(6)
                * u8::from(arg.ty.is_temporal() || matches!(arg.ty, DataType::Decimal { .. }))
        }
    };
    args.iter().map(of).max().unwrap_or(0)
}

fn infer_time6(args: &[Expr]) -> (DataType, bool) {
    (
        DataType::Time {
            fsp: args_fsp(args),
        },
        true,
    )
}

/// Whether a value is or looks like a date, with or without a time.
pub(super) fn has_date(value: &Value) -> bool {
    match value {
        Value::Date(_) | Value::DateTime(_) => true,
        Value::Text(text) => {
            text.len() >= 12 && (text.trim_start_matches('-').contains('-') || text.contains('/'))
        }
        _ => false,
    }
}

/// TIMEDIFF of two times or two datetimes; of one each NULL.
fn timediff(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let dated = (has_date(&args[0]), has_date(&args[1]));
    let micros = match dated {
        (true, true) => {
            let (Some(a), Some(b)) = (datetime_arg(ctx, &args[0])?, datetime_arg(ctx, &args[1])?)
            else {
                return Ok(Value::Null);
            };
            a.linear_micros() - b.linear_micros()
        }
        (false, false) => {
            let (Some(a), Some(b)) = (time_arg(ctx, &args[0])?, time_arg(ctx, &args[1])?) else {
                return Ok(Value::Null);
            };
            a.micros - b.micros
        }
        _ => return Ok(Value::Null),
    };
    Ok(Value::Time(clamped(ctx, micros)?))
}

/// A time within its range; 1292 where it was cut to that.
pub(super) fn clamped(ctx: &EvalContext<'_>, micros: i64) -> SqlResult<Time> {
    let (time, cut) = Time::clamped(micros);
    if cut {
        ctx.truncated("time", &Value::Time(Time { micros }))?;
    }
    Ok(time)
}

fn infer_addtime(args: &[Expr]) -> (DataType, bool) {
    let fsp = args_fsp(args);
    let ty = match args.first().map(|arg| &arg.ty) {
        Some(DataType::Time { .. }) => DataType::Time { fsp },
        Some(ty) if ty.is_temporal() => DataType::DateTime { fsp },
        _ => DataType::varchar(26),
    };
    (ty, true)
}

fn addtime(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    shift(ctx, args, ty, 1)
}

fn subtime(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    shift(ctx, args, ty, -1)
}

/// The first argument and `sign` times the second, a time.
fn shift(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType, sign: i64) -> SqlResult<Value> {
    let Some(by) = time_arg(ctx, &args[1])? else {
        return Ok(Value::Null);
    };
    let (value, micros) = if has_date(&args[0]) {
        let Some(start) = datetime_arg(ctx, &args[0])? else {
            return Ok(Value::Null);
        };
        let end = DateTime::from_linear_micros(start.linear_micros() + sign * by.micros);
        let Some(end) = end else {
            return Ok(Value::Null);
        };
        (Value::DateTime(end), end.time().micros)
    } else {
        let Some(start) = time_arg(ctx, &args[0])? else {
            return Ok(Value::Null);
        };
        let end = clamped(ctx, start.micros + sign * by.micros)?;
        (Value::Time(end), end.micros)
    };
    Ok(if ty.is_temporal() {
        value
    } else {
        Value::Text(shortest_text(&value, micros))
    })
}

/// With a fraction only where there is one.
fn shortest_text(value: &Value, micros: i64) -> String {
    let fsp = if micros % MICROS_PER_SECOND == 0 {
        0
    } else {
        6
    };
    let ty = if matches!(value, Value::Time(_)) {
        DataType::Time { fsp }
    } else {
        DataType::DateTime { fsp }
    };
    to_text(value, &ty)
}

/// Months of a period `YYYYMM` or `YYMM`.
fn period_months(period: i64) -> i64 {
    let year = u64::try_from(period / 100).map_or(0, expand_year);
    i64::try_from(year).unwrap_or(0) * 12 + period % 100 - 1
}

fn period_add(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(period), Some(by)) = (args[0].to_i64(), args[1].to_i64()) else {
        return Ok(Value::Null);
    };
    let months = period_months(period).saturating_add(by);
    Ok(Value::Int(
        months
            .div_euclid(12)
            .saturating_mul(100)
            .saturating_add(months.rem_euclid(12) + 1),
    ))
}

fn period_diff(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(a), Some(b)) = (args[0].to_i64(), args[1].to_i64()) else {
        return Ok(Value::Null);
    };
    Ok(Value::Int(period_months(a) - period_months(b)))
}
