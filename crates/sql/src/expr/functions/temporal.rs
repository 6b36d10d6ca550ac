//! The current moment, and parts of dates and times.

use super::temporal_arithmetic::has_date;
use super::temporal_parse::{date_arg, datetime_arg, time_arg};
use super::{ScalarFunction, infer, interval};
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::plan::Expr;
use crate::types::{
    DataType, Date, DateTime, MICROS_PER_SECOND, Time, Value, from_utc_micros, last_day,
};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("NOW", (0, 1), infer_now, now).per_statement(),
    ScalarFunction::new("SYSDATE", (0, 1), infer_now, sysdate).volatile(),
    ScalarFunction::new("CURDATE", (0, 0), infer_today, curdate).per_statement(),
    ScalarFunction::new("CURTIME", (0, 1), infer_clock, curtime).per_statement(),
    ScalarFunction::new("UTC_TIMESTAMP", (0, 1), infer_now, utc_timestamp).per_statement(),
    ScalarFunction::new("UTC_DATE", (0, 0), infer_today, utc_date).per_statement(),
    ScalarFunction::new("UTC_TIME", (0, 1), infer_clock, utc_time).per_statement(),
    ScalarFunction::new("DATE", (1, 1), infer::date, date),
    ScalarFunction::new("TIME", (1, 1), infer_time, time),
    ScalarFunction::new("YEAR", (1, 1), infer::integer_or_null, |c, a, _| {
        of_date(c, a, |d| d.year.into())
    }),
    ScalarFunction::new("MONTH", (1, 1), infer::integer_or_null, |c, a, _| {
        of_date(c, a, |d| d.month.into())
    }),
    ScalarFunction::new("DAYOFMONTH", (1, 1), infer::integer_or_null, |c, a, _| {
        of_date(c, a, |d| d.day.into())
    }),
    ScalarFunction::new("QUARTER", (1, 1), infer::integer_or_null, |c, a, _| {
        of_date(c, a, |d| (i64::from(d.month) + 2) / 3)
    }),
    ScalarFunction::new("DAYOFWEEK", (1, 1), infer::integer_or_null, |c, a, _| {
        of_day(c, a, |d| (d.weekday() + 1) % 7 + 1)
    }),
    ScalarFunction::new("WEEKDAY", (1, 1), infer::integer_or_null, |c, a, _| {
        of_day(c, a, Date::weekday)
    }),
    ScalarFunction::new("DAYOFYEAR", (1, 1), infer::integer_or_null, |c, a, _| {
        of_day(c, a, Date::day_of_year)
    }),
    ScalarFunction::new("WEEK", (1, 2), infer::integer_or_null, week),
    ScalarFunction::new("WEEKOFYEAR", (1, 1), infer::integer_or_null, |c, a, _| {
        of_day(c, a, |d| week_of(d, 3).1)
    }),
    ScalarFunction::new("YEARWEEK", (1, 2), infer::integer_or_null, yearweek),
    ScalarFunction::new("DAYNAME", (1, 1), infer::short_text, dayname),
    ScalarFunction::new("MONTHNAME", (1, 1), infer::short_text, monthname),
    ScalarFunction::new("LAST_DAY", (1, 1), infer::date, last_day_of),
    ScalarFunction::new("TO_DAYS", (1, 1), infer::integer_or_null, |c, a, _| {
        of_day(c, a, Date::day_number)
    }),
    ScalarFunction::new("TO_SECONDS", (1, 1), infer::integer_or_null, to_seconds),
    ScalarFunction::new("FROM_DAYS", (1, 1), infer::date, from_days),
    ScalarFunction::new("HOUR", (1, 1), infer::integer_or_null, |c, a, _| {
        of_time(c, a, |t| t.parts().0)
    }),
    ScalarFunction::new("MINUTE", (1, 1), infer::integer_or_null, |c, a, _| {
        of_time(c, a, |t| t.parts().1)
    }),
    ScalarFunction::new("SECOND", (1, 1), infer::integer_or_null, |c, a, _| {
        of_time(c, a, |t| t.parts().2)
    }),
    ScalarFunction::new("MICROSECOND", (1, 1), infer::integer_or_null, |c, a, _| {
        of_time(c, a, |t| t.parts().3)
    }),
    ScalarFunction::new("EXTRACT", (2, 2), infer::integer_or_null, extract),
];

pub(super) const DAY_NAMES: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
pub(super) const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn infer_now(args: &[Expr]) -> (DataType, bool) {
    (
        DataType::DateTime {
            fsp: infer::constant_fsp(args.first(), 0),
        },
        false,
    )
}

fn infer_clock(args: &[Expr]) -> (DataType, bool) {
    (
        DataType::Time {
            fsp: infer::constant_fsp(args.first(), 0),
        },
        false,
    )
}

fn infer_today(_args: &[Expr]) -> (DataType, bool) {
    (DataType::Date, false)
}

fn infer_time(args: &[Expr]) -> (DataType, bool) {
    let fsp = args.first().map_or(0, |arg| match arg.as_literal() {
        Some(Value::Text(text)) => crate::types::parse_time(text).map_or(0, |parsed| parsed.fsp),
        _ => infer::fraction_digits(&arg.ty),
    });
    (DataType::Time { fsp }, true)
}

/// Digits of the fraction asked for: 0–6.
fn precision(args: &[Value]) -> SqlResult<u8> {
    let Some(asked) = args.first().and_then(Value::to_i64) else {
        return Ok(0);
    };
    u8::try_from(asked)
        .ok()
        .filter(|fsp| *fsp <= 6)
        .ok_or_else(|| {
            let message = format!("Too-big precision {asked} specified for 'now'. Maximum is 6.");
            SqlError::new(1426, "42000", message)
        })
}

/// The moment cut (not rounded) to the asked precision.
fn cut(value: DateTime, fsp: u8) -> DateTime {
    let unit = 10u64.pow(6 - u32::from(fsp.min(6)));
    DateTime {
        micros: value.micros / unit * unit,
        ..value
    }
}

fn local(ctx: &EvalContext<'_>) -> DateTime {
    from_utc_micros(ctx.now_micros, &ctx.time_zone)
}

fn utc(ctx: &EvalContext<'_>) -> DateTime {
    from_utc_micros(ctx.now_micros, &jiff::tz::TimeZone::UTC)
}

fn now(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::DateTime(cut(local(ctx), precision(args)?)))
}

fn sysdate(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let moment = from_utc_micros((ctx.clock)(), &ctx.time_zone);
    Ok(Value::DateTime(cut(moment, precision(args)?)))
}

fn curdate(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Date(local(ctx).date))
}

fn curtime(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Time(cut(local(ctx), precision(args)?).time()))
}

fn utc_timestamp(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::DateTime(cut(utc(ctx), precision(args)?)))
}

fn utc_date(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Date(utc(ctx).date))
}

fn utc_time(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Time(cut(utc(ctx), precision(args)?).time()))
}

/// A number from a date whose month or day may be zero.
fn of_date(ctx: &EvalContext<'_>, args: &[Value], part: fn(Date) -> i64) -> SqlResult<Value> {
    Ok(date_arg(ctx, &args[0])?.map_or(Value::Null, |date| Value::Int(part(date))))
}

/// A number from a day that exists.
fn of_day(ctx: &EvalContext<'_>, args: &[Value], part: fn(Date) -> i64) -> SqlResult<Value> {
    let day = date_arg(ctx, &args[0])?.filter(|date| !date.is_partial());
    Ok(day.map_or(Value::Null, |date| Value::Int(part(date))))
}

fn of_time(ctx: &EvalContext<'_>, args: &[Value], part: fn(Time) -> i64) -> SqlResult<Value> {
    Ok(time_arg(ctx, &args[0])?.map_or(Value::Null, |time| Value::Int(part(time))))
}

fn date(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(date_arg(ctx, &args[0])?.map_or(Value::Null, Value::Date))
}

fn time(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(time_arg(ctx, &args[0])?.map_or(Value::Null, Value::Time))
}

/// Year and week of a date under a mode of `WEEK()` (bits: 1 Monday first, 2 ISO years, 4 first
/// week starts with the first weekday).
pub(super) fn week_of(date: Date, mode: i64) -> (i64, i64) {
    let monday_first = mode & 1 != 0;
    let mut week_year = mode & 2 != 0;
    let first_weekday = (mode & 4 != 0) == monday_first;
    let day_number = date.day_number();
    let first = Date {
        year: date.year,
        month: 1,
        day: 1,
    };
    let mut first_number = first.day_number();
    let weekday_of = |number: i64| (number + if monday_first { 5 } else { 6 }).rem_euclid(7);
    let mut weekday = weekday_of(first_number);
    let mut year = i64::from(date.year);
    let year_days = |year: i64| {
        if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) {
            366
        } else {
            365
        }
    };
    let starts_late =
        |weekday: i64| (first_weekday && weekday != 0) || (!first_weekday && weekday >= 4);
    if date.month == 1 && i64::from(date.day) <= 7 - weekday {
        if !week_year && starts_late(weekday) {
            return (year, 0);
        }
        if starts_late(weekday) {
            week_year = true;
            year -= 1;
            first_number -= year_days(year);
            weekday = weekday_of(first_number);
        }
    }
    let days = if starts_late(weekday) {
        day_number - (first_number + (7 - weekday))
    } else {
        day_number - (first_number - weekday)
    };
    if week_year && days >= 52 * 7 {
        let next = (weekday + year_days(year)) % 7;
        if !starts_late(next) {
            return (year + 1, 1);
        }
    }
    (year, days / 7 + 1)
}

/// The mode that was asked for. The binder gives WEEK() that of `default_week_format`; that of YEARWEEK() is 0.
fn week_mode(args: &[Value]) -> i64 {
    args.get(1).and_then(Value::to_i64).unwrap_or(0) & 7
}

fn week(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let mode = week_mode(args);
    let day = date_arg(ctx, &args[0])?.filter(|date| !date.is_partial());
    Ok(day.map_or(Value::Null, |date| Value::Int(week_of(date, mode).1)))
}

fn yearweek(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let mode = week_mode(args) | 2;
    let day = date_arg(ctx, &args[0])?.filter(|date| !date.is_partial());
    Ok(day.map_or(Value::Null, |date| {
        let (year, week) = week_of(date, mode);
        Value::Int(year * 100 + week)
    }))
}

fn dayname(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let day = date_arg(ctx, &args[0])?.filter(|date| !date.is_partial());
    let name = day.and_then(|date| DAY_NAMES.get(usize::try_from(date.weekday()).ok()?));
    Ok(name.map_or(Value::Null, |name| Value::Text((*name).to_string())))
}

fn monthname(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let date = date_arg(ctx, &args[0])?;
    let name = date.and_then(|date| MONTH_NAMES.get(usize::from(date.month).checked_sub(1)?));
    Ok(name.map_or(Value::Null, |name| Value::Text((*name).to_string())))
}

fn last_day_of(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let date = date_arg(ctx, &args[0])?.filter(|date| date.month > 0);
    Ok(date.map_or(Value::Null, |date| Value::Date(last_day(date))))
}

fn to_seconds(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let value = datetime_arg(ctx, &args[0])?.filter(|value| !value.date.is_partial());
    Ok(value.map_or(Value::Null, |value| {
        Value::Int(value.linear_micros() / MICROS_PER_SECOND)
    }))
}

fn from_days(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(number) = args[0].to_i64() else {
        return Ok(Value::Null);
    };
    let date = if number <= 365 {
        Some(Date::ZERO)
    } else {
        Date::from_day_number(number)
    };
    Ok(date.map_or(Value::Null, Value::Date))
}

/// EXTRACT(unit FROM value): the fields of the unit written one behind the other.
fn extract(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let name = args[0].to_text().unwrap_or_default();
    let Some(unit) = interval::unit(&name) else {
        return Ok(Value::Null);
    };
    if unit.keeps_date() {
        let Some(date) = date_arg(ctx, &args[1])? else {
            return Ok(Value::Null);
        };
        return Ok(Value::Int(match unit.name {
            "YEAR" => date.year.into(),
            "QUARTER" => (i64::from(date.month) + 2) / 3,
            "MONTH" => date.month.into(),
            "DAY" => date.day.into(),
            "WEEK" => week_of(date, 0).1,
            _ => i64::from(date.year) * 100 + i64::from(date.month),
        }));
    }
    // A TIME of more than a day has its days in the hours; a DATETIME has its day of the month.
    let is_time = matches!(args[1], Value::Time(_))
        || matches!(args[1], Value::Text(_)) && !has_date(&args[1]);
    let (days, time) = if unit.name.starts_with("DAY_") && !is_time {
        let Some(value) = datetime_arg(ctx, &args[1])? else {
            return Ok(Value::Null);
        };
        (i64::from(value.date.day), value.time())
    } else {
        let Some(time) = time_arg(ctx, &args[1])? else {
            return Ok(Value::Null);
        };
        (0, time)
    };
    let (hours, minutes, seconds, micros) = time.parts();
    let number = match unit.name {
        "HOUR" => hours,
        "MINUTE" => minutes,
        "SECOND" => seconds,
        "MICROSECOND" => micros,
        "DAY_HOUR" => days * 100 + hours,
        "DAY_MINUTE" => days * 10_000 + hours * 100 + minutes,
        "DAY_SECOND" => days * 1_000_000 + hours * 10_000 + minutes * 100 + seconds,
        "DAY_MICROSECOND" => {
            (days * 1_000_000 + hours * 10_000 + minutes * 100 + seconds) * MICROS_PER_SECOND
                + micros
        }
        "HOUR_MINUTE" => hours * 100 + minutes,
        "HOUR_SECOND" => hours * 10_000 + minutes * 100 + seconds,
        "HOUR_MICROSECOND" => {
            (hours * 10_000 + minutes * 100 + seconds) * MICROS_PER_SECOND + micros
        }
        "MINUTE_SECOND" => minutes * 100 + seconds,
        "MINUTE_MICROSECOND" => (minutes * 100 + seconds) * MICROS_PER_SECOND + micros,
        _ => seconds * MICROS_PER_SECOND + micros,
    };
    Ok(Value::Int(if time.micros < 0 { -number } else { number }))
}
