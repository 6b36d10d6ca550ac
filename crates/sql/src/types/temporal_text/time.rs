//! Reading a time of day or a duration.

use super::Parsed;
use super::datetime::parse_datetime;
use super::scanner::Scanner;
use crate::types::temporal::{MICROS_PER_SECOND, Time};

/// Reads a time: `[-][D ]HH[:MM[:SS[.f]]]`, `HHMMSS`, or the time of a full datetime.
/// Values beyond the range are not cut here: the caller clamps and warns.
#[must_use]
pub fn parse_time(text: &str) -> Option<Parsed<Time>> {
    let trimmed = text.trim();
    let (negative, body) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, trimmed),
    };
    if !negative && looks_like_datetime(body) {
        let (parsed, _) = parse_datetime(body)?;
        return Some(Parsed {
            value: parsed.value.time(),
            truncated: parsed.truncated,
            fsp: parsed.fsp,
            has_time: true,
        });
    }
    let mut scanner = Scanner::new(body);
    let (first, first_len) = scanner.digits(18);
    if first_len == 0 && scanner.peek() != Some(b'.') {
        return None;
    }
    let seconds = parse_time_seconds(&mut scanner, first)?;
    let (fraction, fsp) = scanner.optional_fraction();
    let micros = i64::try_from(seconds)
        .ok()?
        .checked_mul(MICROS_PER_SECOND)?;
    let micros = micros.checked_add(i64::try_from(fraction).ok()?)?;
    Some(Parsed {
        value: Time {
            micros: if negative { -micros } else { micros },
        },
        truncated: !scanner.done(),
        fsp,
        has_time: true,
    })
}

/// Whole seconds of the forms `D HH:MM:SS`, `HH:MM:SS`, `HH:MM`, `HHMMSS`.
fn parse_time_seconds(scanner: &mut Scanner<'_>, first: u64) -> Option<u64> {
    let mut hours = first;
    let mut days = 0;
    if scanner.peek() == Some(b' ')
        && scanner
            .bytes
            .get(scanner.at + 1)
            .is_some_and(u8::is_ascii_digit)
    {
        scanner.at += 1;
        days = first;
        hours = scanner.digits(9).0;
    } else if !scanner.at_clock_separator() {
        let (hours, minutes, seconds) = (first / 10_000, first / 100 % 100, first % 100);
        return (minutes < 60 && seconds < 60).then(|| hours * 3600 + minutes * 60 + seconds);
    }
    let mut fields = [0u64; 2];
    for field in &mut fields {
        if !scanner.at_clock_separator() {
            break;
        }
        scanner.at += 1;
        *field = scanner.digits(2).0;
    }
    if fields[0] > 59 || fields[1] > 59 {
        return None;
    }
    days.checked_mul(24)?
        .checked_add(hours)?
        .checked_mul(3600)?
        .checked_add(fields[0] * 60 + fields[1])
}

/// MySQL takes text for a whole date and time only from twelve characters on.
fn looks_like_datetime(text: &str) -> bool {
    if text.len() < 12 {
        return false;
    }
    let run = text.bytes().take_while(u8::is_ascii_digit).count();
    let next = text.as_bytes().get(run).copied();
    (run >= 12 && next.is_none_or(|byte| !byte.is_ascii_digit()))
        || (run > 0 && run <= 4 && matches!(next, Some(b'-' | b'/')))
}
