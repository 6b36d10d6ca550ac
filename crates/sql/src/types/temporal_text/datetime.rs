//! Reading a date, with or without a time of day.

use super::scanner::Scanner;
use super::{Parsed, clock_micros, date_of, expand_year};
use crate::types::temporal::{Date, DateTime, MICROS_PER_DAY};

/// Reads a date with an optional time: delimited (`2024-1-5 3:04:05.5`, any punctuation, `T`),
/// or plain digits (`20240105030405`, `240105`). An offset `+05:30` at the end is applied as a
/// shift to UTC and returned in `offset_minutes`.
#[must_use]
pub fn parse_datetime(text: &str) -> Option<(Parsed<DateTime>, Option<i32>)> {
    let mut scanner = Scanner::new(text);
    let run = scanner.digit_run();
    if run == 0 {
        return None;
    }
    let after = scanner.bytes.get(scanner.at + run).copied();
    let compact =
        run >= 5 && !matches!(after, Some(byte) if byte.is_ascii_punctuation() && byte != b'.');
    let (mut date, mut micros, has_time, fsp) = if compact {
        parse_compact(&mut scanner, run)?
    } else {
        parse_delimited(&mut scanner)?
    };
    let offset = parse_offset(&mut scanner, has_time);
    if micros >= MICROS_PER_DAY.unsigned_abs() {
        micros -= MICROS_PER_DAY.unsigned_abs();
        date = Date::from_day_number(date.day_number() + 1)?;
    }
    if !date.fits_calendar() {
        return None;
    }
    let parsed = Parsed {
        value: DateTime { date, micros },
        truncated: !scanner.done(),
        fsp,
        has_time,
    };
    Some((parsed, offset))
}

/// The day, microseconds since midnight, whether a time was written, digits of its fraction.
type DateParts = (Date, u64, bool, u8);

/// Plain digits, `run` of them: `YYYYMMDDHHMMSS` and what is shorter.
fn parse_compact(scanner: &mut Scanner<'_>, run: usize) -> Option<DateParts> {
    let year_digits = if run == 8 || run >= 14 { 4 } else { 2 };
    let (year, _) = scanner.digits(year_digits);
    let year = if year_digits == 2 {
        expand_year(year)
    } else {
        year
    };
    let month = scanner.digits(2).0;
    let day = scanner.digits(2).0;
    let (hour, hour_len) = scanner.digits(2);
    let minute = scanner.digits(2).0;
    let second = scanner.digits(2).0;
    let (micros, fsp) = if hour_len > 0 {
        scanner.optional_fraction()
    } else {
        (0, 0)
    };
    if hour_len == 0 && matches!(scanner.peek(), Some(b' ' | b'T' | b't')) {
        let at = scanner.at;
        scanner.at += 1;
        if scanner.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            let (time, fsp) = parse_clock(scanner)?;
            return Some((date_of(year, month, day)?, time, true, fsp));
        }
        scanner.at = at;
    }
    let time = clock_micros(hour, minute, second)? + micros;
    Some((date_of(year, month, day)?, time, hour_len > 0, fsp))
}

/// Fields with something between them.
fn parse_delimited(scanner: &mut Scanner<'_>) -> Option<DateParts> {
    let (year, year_len) = scanner.digits(4);
    scanner.skip_punctuation().then_some(())?;
    let (month, month_len) = scanner.digits(2);
    scanner.skip_punctuation().then_some(())?;
    let (day, day_len) = scanner.digits(2);
    if month_len == 0 || day_len == 0 {
        return None;
    }
    // `00-00-00` is the zero date, `00-01-01` is in the year 2000.
    let is_zero = year == 0 && month == 0 && day == 0;
    let year = if year_len <= 2 && !is_zero {
        expand_year(year)
    } else {
        year
    };
    let date = date_of(year, month, day)?;
    let at = scanner.at;
    match scanner.peek() {
        Some(b' ' | b'T' | b't' | b'\t') => {
            while scanner
                .peek()
                .is_some_and(|byte| byte.is_ascii_whitespace() || byte == b'T' || byte == b't')
            {
                scanner.at += 1;
            }
        }
        Some(byte) if byte.is_ascii_punctuation() => {
            scanner.skip_punctuation();
        }
        _ => return Some((date, 0, false, 0)),
    }
    if !scanner.peek().is_some_and(|byte| byte.is_ascii_digit()) {
        scanner.at = at;
        return Some((date, 0, false, 0));
    }
    let (micros, fsp) = parse_clock(scanner)?;
    Some((date, micros, true, fsp))
}

/// `H[:M[:S[.f]]]` of a datetime, where the hour stays below 24.
fn parse_clock(scanner: &mut Scanner<'_>) -> Option<(u64, u8)> {
    let hour = scanner.digits(2).0;
    let mut fields = [0u64; 2];
    for field in &mut fields {
        let at = scanner.at;
        if !matches!(scanner.peek(), Some(byte) if byte.is_ascii_punctuation() && byte != b'.' && byte != b'+' && byte != b'-')
        {
            break;
        }
        scanner.at += 1;
        let (value, length) = scanner.digits(2);
        if length == 0 {
            scanner.at = at;
            break;
        }
        *field = value;
    }
    let (micros, fsp) = scanner.optional_fraction();
    let [minute, second] = fields;
    Some((clock_micros(hour, minute, second)? + micros, fsp))
}

/// `+HH:MM` at the end, in minutes.
fn parse_offset(scanner: &mut Scanner<'_>, has_time: bool) -> Option<i32> {
    let sign = match scanner.peek() {
        Some(b'+') if has_time => 1,
        Some(b'-') if has_time => -1,
        _ => return None,
    };
    let rest = &scanner.bytes[scanner.at + 1..];
    let offset = parse_offset_digits(rest)?;
    scanner.at = scanner.bytes.len();
    Some(sign * offset)
}

fn parse_offset_digits(rest: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(rest).ok()?;
    let (hours, minutes) = text.split_once(':')?;
    if hours.is_empty() || hours.len() > 2 || minutes.len() != 2 {
        return None;
    }
    let hours: u8 = hours.parse().ok()?;
    let minutes: u8 = minutes.parse().ok()?;
    (hours <= 14 && minutes < 60).then(|| i32::from(hours) * 60 + i32::from(minutes))
}
