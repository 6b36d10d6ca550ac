//! `DATE_FORMAT`, `STR_TO_DATE` and their kin.

use super::temporal::{DAY_NAMES, MONTH_NAMES, week_of};
use super::temporal_parse::{datetime_arg, time_arg};
use super::{ScalarFunction, infer};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::plan::Expr;
use crate::types::{
    DataType, Date, DateTime, Decimal, MICROS_PER_SECOND, Value, expand_year, from_utc_micros,
};
use bigdecimal::{Signed, ToPrimitive};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("DATE_FORMAT", (2, 3), infer::long_text, date_format),
    ScalarFunction::new("TIME_FORMAT", (2, 2), infer::long_text, time_format),
    ScalarFunction::new("STR_TO_DATE", (2, 2), infer_str_to_date, str_to_date),
    ScalarFunction::new("FROM_UNIXTIME", (1, 2), infer_from_unixtime, from_unixtime),
    ScalarFunction::new("GET_FORMAT", (2, 2), infer::short_text, get_format),
];

/// Appends one `%x` of a format; false when `value` has no such part (the result is NULL).
fn write_part(specifier: char, value: DateTime, hours: i64, out: &mut String) -> bool {
    let date = value.date;
    let (_, minute, second, micros) = value.time().parts();
    let hour = hours % 24;
    let hour12 = (hour + 11) % 12 + 1;
    let half = if hour < 12 { "AM" } else { "PM" };
    let weekday = || (!date.is_partial()).then(|| date.weekday());
    let week = |mode: i64| (!date.is_partial()).then(|| week_of(date, mode));
    let piece = match specifier {
        'Y' => Some(format!("{:04}", date.year)),
        'y' => Some(format!("{:02}", date.year % 100)),
        'm' => Some(format!("{:02}", date.month)),
        'c' => Some(date.month.to_string()),
        'M' => month_name(date).map(str::to_string),
        'b' => month_name(date).map(|name| name[..3].to_string()),
        'd' => Some(format!("{:02}", date.day)),
        'e' => Some(date.day.to_string()),
        'D' => Some(format!("{}{}", date.day, ordinal(date.day))),
        'j' => (!date.is_partial()).then(|| format!("{:03}", date.day_of_year())),
        'H' => Some(format!("{hours:02}")),
        'k' => Some(hours.to_string()),
        'h' | 'I' => Some(format!("{hour12:02}")),
        'l' => Some(hour12.to_string()),
        'i' => Some(format!("{minute:02}")),
        's' | 'S' => Some(format!("{second:02}")),
        'f' => Some(format!("{micros:06}")),
        'p' => Some(half.to_string()),
        'r' => Some(format!("{hour12:02}:{minute:02}:{second:02} {half}")),
        'T' => Some(format!("{hours:02}:{minute:02}:{second:02}")),
        'W' => weekday().and_then(day_name).map(str::to_string),
        'a' => weekday()
            .and_then(day_name)
            .map(|name| name[..3].to_string()),
        'w' => weekday().map(|day| ((day + 1) % 7).to_string()),
        'U' => week(0).map(|(_, week)| format!("{week:02}")),
        'u' => week(1).map(|(_, week)| format!("{week:02}")),
        'V' => week(2).map(|(_, week)| format!("{week:02}")),
        'v' => week(3).map(|(_, week)| format!("{week:02}")),
        'X' => week(2).map(|(year, _)| format!("{year:04}")),
        'x' => week(3).map(|(year, _)| format!("{year:04}")),
        other => Some(other.to_string()),
    };
    match piece {
        Some(piece) => {
            out.push_str(&piece);
            true
        }
        None => false,
    }
}

fn month_name(date: Date) -> Option<&'static str> {
    MONTH_NAMES
        .get(usize::from(date.month).checked_sub(1)?)
        .copied()
}

fn day_name(weekday: i64) -> Option<&'static str> {
    DAY_NAMES.get(usize::try_from(weekday).ok()?).copied()
}

fn ordinal(day: u8) -> &'static str {
    match (day, day % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// `None` when a part asked for does not exist in the value.
fn formatted(value: DateTime, hours: i64, format: &str) -> Option<String> {
    if format.is_empty() {
        return None;
    }
    let mut out = String::new();
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        match characters.next() {
            Some(specifier) => write_part(specifier, value, hours, &mut out).then_some(())?,
            None => out.push('%'),
        }
    }
    Some(out)
}

fn date_format(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(value), Some(format)) = (datetime_arg(ctx, &args[0])?, args[1].to_text()) else {
        return Ok(Value::Null);
    };
    let hours = value.time().parts().0;
    Ok(formatted(value, hours, &format).map_or(Value::Null, Value::Text))
}

fn time_format(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(time), Some(format)) = (time_arg(ctx, &args[0])?, args[1].to_text()) else {
        return Ok(Value::Null);
    };
    let magnitude = time.micros.unsigned_abs();
    let value = DateTime {
        date: Date::ZERO,
        micros: magnitude % 86_400_000_000,
    };
    let text = formatted(value, time.parts().0, &format);
    let sign = if time.micros < 0 { "-" } else { "" };
    Ok(text.map_or(Value::Null, |text| Value::Text(format!("{sign}{text}"))))
}

/// Which parts a format asks for: (date, time, fraction).
fn parts_of(format: &str) -> (bool, bool, bool) {
    let mut found = (false, false, false);
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            continue;
        }
        match characters.next() {
            Some('f') => {
                found.1 = true;
                found.2 = true;
            }
            Some('H' | 'k' | 'h' | 'I' | 'l' | 'i' | 's' | 'S' | 'p' | 'r' | 'T') => found.1 = true,
            Some('%') | None => {}
            Some(_) => found.0 = true,
        }
    }
    found
}

fn infer_str_to_date(args: &[Expr]) -> (DataType, bool) {
    let format = args.get(1).and_then(Expr::as_literal);
    let ty = match format {
        Some(Value::Text(format)) => match parts_of(format) {
            (true, false, _) => DataType::Date,
            (false, true, fraction) => DataType::Time {
                fsp: if fraction { 6 } else { 0 },
            },
            (_, _, fraction) => DataType::DateTime {
                fsp: if fraction { 6 } else { 0 },
            },
        },
        _ => DataType::DateTime { fsp: 6 },
    };
    (ty, true)
}

/// A week of `%U %u %V %v`.
#[derive(Clone, Copy)]
struct Week {
    number: u64,
    /// Begins on Sunday, not on Monday.
    sunday: bool,
    /// Counts within the year of `%X` or `%x`, not that of `%Y`.
    of_week_year: bool,
}

/// What `STR_TO_DATE` has read so far.
#[derive(Default)]
struct Reading {
    year: u64,
    month: u64,
    day: u64,
    day_of_year: Option<u64>,
    week: Option<Week>,
    /// Year of `%X` (weeks begin on Sunday: true) or `%x`.
    week_year: Option<(u64, bool)>,
    /// 1 for Monday to 7 for Sunday.
    weekday: Option<u64>,
    hour: u64,
    minute: u64,
    second: u64,
    micros: u64,
    twelve_hour: bool,
    afternoon: bool,
}

/// A number of at most `most` digits at the start; the rest.
fn take_number(text: &str, most: usize) -> Option<(u64, &str)> {
    let length = text
        .bytes()
        .take(most)
        .take_while(u8::is_ascii_digit)
        .count();
    let value = text.get(..length)?.parse().ok()?;
    Some((value, &text[length..]))
}

/// A name of a list at the start, whole or its first three letters: its place; the rest.
fn take_name<'a>(text: &'a str, names: &[&str], short: bool) -> Option<(u64, &'a str)> {
    for (place, name) in (1..).zip(names) {
        let name = if short { &name[..3] } else { name };
        if text
            .get(..name.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(name))
        {
            return Some((place, &text[name.len()..]));
        }
    }
    None
}

impl Reading {
    fn take<'a>(&mut self, specifier: char, text: &'a str) -> Option<&'a str> {
        let mut number = |field: fn(&mut Self) -> &mut u64, most: usize| {
            let (value, rest) = take_number(text, most)?;
            *field(self) = value;
            Some(rest)
        };
        match specifier {
            'Y' => number(|r| &mut r.year, 4),
            'm' | 'c' => number(|r| &mut r.month, 2),
            'd' | 'e' => number(|r| &mut r.day, 2),
            'H' | 'k' => number(|r| &mut r.hour, 2),
            'i' => number(|r| &mut r.minute, 2),
            's' | 'S' => number(|r| &mut r.second, 2),
            'y' => {
                let (value, rest) = take_number(text, 2)?;
                self.year = expand_year(value);
                Some(rest)
            }
            'h' | 'I' | 'l' => {
                let (value, rest) = take_number(text, 2)?;
                if !(1..=12).contains(&value) {
                    return None;
                }
                self.hour = value;
                self.twelve_hour = true;
                Some(rest)
            }
            'D' => {
                let (value, rest) = take_number(text, 2)?;
                self.day = value;
                Some(rest.get(2..).unwrap_or_default())
            }
            'j' => {
                let (value, rest) = take_number(text, 3)?;
                self.day_of_year = Some(value);
                Some(rest)
            }
            'M' | 'b' => {
                let (value, rest) = take_name(text, &MONTH_NAMES, specifier == 'b')?;
                self.month = value;
                Some(rest)
            }
            'W' | 'a' => {
                let (value, rest) = take_name(text, &DAY_NAMES, specifier == 'a')?;
                self.weekday = Some(value);
                Some(rest)
            }
            'w' => {
                let (value, rest) = take_number(text, 1)?;
                self.weekday = Some(if value == 0 { 7 } else { value });
                (value < 7).then_some(rest)
            }
            'U' | 'u' | 'V' | 'v' => {
                let (number, rest) = take_number(text, 2)?;
                self.week = Some(Week {
                    number,
                    sunday: specifier.is_ascii_uppercase(),
                    of_week_year: matches!(specifier, 'V' | 'v'),
                });
                (number <= 53).then_some(rest)
            }
            'X' | 'x' => {
                let (year, rest) = take_number(text, 4)?;
                self.week_year = Some((year, specifier == 'X'));
                Some(rest)
            }
            '.' => Some(text.trim_start_matches(|c: char| c.is_ascii_punctuation())),
            '@' => Some(text.trim_start_matches(char::is_alphabetic)),
            '#' => Some(text.trim_start_matches(|c: char| c.is_ascii_digit())),
            'f' => self.take_fraction(text),
            'p' => self.take_half(text),
            'T' => self.take_all("%H:%i:%S", text),
            'r' => self.take_all("%I:%i:%S %p", text),
            '%' => text.strip_prefix('%'),
            _ => None,
        }
    }

    fn take_fraction<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let length = text.bytes().take(6).take_while(u8::is_ascii_digit).count();
        let padded: String = text[..length]
            .chars()
            .chain("000000".chars())
            .take(6)
            .collect();
        self.micros = padded.parse().ok()?;
        Some(&text[length..])
    }

    fn take_half<'a>(&mut self, text: &'a str) -> Option<&'a str> {
        let head = text.get(..2)?;
        self.afternoon = head.eq_ignore_ascii_case("PM");
        (self.afternoon || head.eq_ignore_ascii_case("AM")).then(|| &text[2..])
    }

    /// Reads `text` along `format`; the rest of the text.
    fn take_all<'a>(&mut self, format: &str, text: &'a str) -> Option<&'a str> {
        let mut rest = text;
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            if character == '%' {
                // White space in front of a part does not matter.
                rest = rest.trim_start();
                if rest.is_empty() {
                    return Some(rest);
                }
                rest = self.take(characters.next()?, rest)?;
            } else if character.is_whitespace() {
                rest = rest.trim_start();
            } else {
                rest = rest.trim_start();
                if rest.is_empty() {
                    return Some(rest);
                }
                rest = rest.strip_prefix(character)?;
            }
        }
        Some(rest)
    }

    /// The day of a week: week 1 is the first with a Sunday, or the first with four days.
    fn day_of_week(&self, week: Week, weekday: u64) -> Option<Date> {
        let year = match (week.of_week_year, self.week_year) {
            (true, Some((year, sunday))) if sunday == week.sunday => year,
            (false, None) => self.year,
            _ => return None,
        };
        let first = Date {
            year: u16::try_from(year).ok()?,
            month: 1,
            day: 1,
        };
        let number = i64::try_from(week.number).ok()?;
        let weekday = i64::try_from(weekday).ok()?;
        let (place, from, short) = if week.sunday {
            let place = (first.weekday() + 1) % 7;
            (place, weekday % 7, place != 0)
        } else {
            (first.weekday(), weekday - 1, first.weekday() > 3)
        };
        let start = first.day_number() - place + if short { 7 } else { 0 };
        Date::from_day_number(start + (number - 1) * 7 + from)
    }

    fn finish(&self) -> Option<DateTime> {
        let hour = match (self.twelve_hour, self.afternoon) {
            (true, true) => self.hour % 12 + 12,
            (true, false) => self.hour % 12,
            _ => self.hour,
        };
        if hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let date = match (self.week.zip(self.weekday), self.day_of_year) {
            (Some((week, weekday)), _) => self.day_of_week(week, weekday)?,
            (None, Some(day)) if day > 0 => {
                let first = Date {
                    year: u16::try_from(self.year).ok()?,
                    month: 1,
                    day: 1,
                };
                Date::from_day_number(first.day_number() + i64::try_from(day).ok()? - 1)?
            }
            _ => Date {
                year: u16::try_from(self.year).ok()?,
                month: u8::try_from(self.month).ok()?,
                day: u8::try_from(self.day).ok()?,
            },
        };
        let seconds = hour * 3600 + self.minute * 60 + self.second;
        let micros = seconds * MICROS_PER_SECOND.unsigned_abs() + self.micros;
        date.fits_calendar().then_some(DateTime { date, micros })
    }
}

fn str_to_date(ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let (Some(text), Some(format)) = (args[0].to_text(), args[1].to_text()) else {
        return Ok(Value::Null);
    };
    let mut reading = Reading::default();
    let rest = reading.take_all(&format, text.trim_start());
    let found = rest.and_then(|_| reading.finish());
    let allowed = |value: &DateTime| {
        matches!(ty, DataType::Time { .. }) || crate::types::date_allowed(value.date, ctx.sql_mode)
    };
    let Some(value) = found.filter(allowed) else {
        let message = format!("Incorrect datetime value: '{text}' for function str_to_date");
        ctx.problem(1411, "HY000", message)?;
        return Ok(Value::Null);
    };
    if rest.is_some_and(|rest| !rest.trim().is_empty()) {
        ctx.truncated("datetime", &args[0])?;
    }
    Ok(match ty {
        DataType::Date => Value::Date(value.date),
        DataType::Time { .. } => Value::Time(value.time()),
        _ => Value::DateTime(value),
    })
}

fn infer_from_unixtime(args: &[Expr]) -> (DataType, bool) {
    if args.len() == 2 {
        return infer::long_text(args.get(1..).unwrap_or_default());
    }
    let fsp = args.first().map_or(0, |arg| match arg.ty {
        DataType::Decimal { scale, .. } => scale.min(6),
        DataType::Int { .. } => 0,
        _ => 6,
    });
    (DataType::DateTime { fsp }, true)
}

fn from_unixtime(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(seconds) = args[0].to_decimal() else {
        return Ok(Value::Null);
    };
    let micros = (&seconds * Decimal::from(MICROS_PER_SECOND))
        .with_scale_round(0, bigdecimal::RoundingMode::HalfUp);
    let Some(micros) = micros.to_i64().filter(|_| !seconds.is_negative()) else {
        return Ok(Value::Null);
    };
    if micros >= 32_536_771_200_000_000 {
        return Ok(Value::Null);
    }
    let value = from_utc_micros(micros, &ctx.time_zone);
    match args.get(1) {
        None => Ok(Value::DateTime(value)),
        Some(format) => date_format(
            ctx,
            &[Value::DateTime(value), format.clone()],
            &DataType::Null,
        ),
    }
}

fn get_format(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(kind), Some(region)) = (args[0].to_text(), args[1].to_text()) else {
        return Ok(Value::Null);
    };
    let format = match (kind.to_uppercase().as_str(), region.to_uppercase().as_str()) {
        ("DATE", "USA") => "%m.%d.%Y",
        ("DATE", "JIS" | "ISO") => "%Y-%m-%d",
        ("DATE", "EUR") => "%d.%m.%Y",
        ("DATE", "INTERNAL") => "%Y%m%d",
        ("DATETIME", "USA" | "EUR") => "%Y-%m-%d %H.%i.%s",
        ("DATETIME", "JIS" | "ISO") => "%Y-%m-%d %H:%i:%s",
        ("DATETIME", "INTERNAL") => "%Y%m%d%H%i%s",
        ("TIME", "USA") => "%h:%i:%s %p",
        ("TIME", "JIS" | "ISO") => "%H:%i:%s",
        ("TIME", "EUR") => "%H.%i.%s",
        ("TIME", "INTERNAL") => "%H%i%s",
        _ => return Ok(Value::Null),
    };
    Ok(Value::Text(format.to_string()))
}
