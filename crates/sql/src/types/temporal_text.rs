//! Dates and times to and from text, as leniently as MySQL reads and as exactly as it writes.

use super::temporal::{
    Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, Time, days_in_month, round_micros,
};

/// What reading found besides the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsed<T> {
    /// The value, at full microsecond precision.
    pub value: T,
    /// Text was left over: a warning in MySQL, or an error when stored strictly.
    pub truncated: bool,
    /// Digits of fraction that were written, at most 6.
    pub fsp: u8,
    /// A time of day was written.
    pub has_time: bool,
}

/// Writes `YYYY-MM-DD`.
pub fn write_date(date: Date, out: &mut Vec<u8>) {
    push_padded(i64::from(date.year), 4, out);
    out.push(b'-');
    push_padded(i64::from(date.month), 2, out);
    out.push(b'-');
    push_padded(i64::from(date.day), 2, out);
}

/// Writes `[-]HH:MM:SS[.ffffff]`.
pub fn write_time(time: Time, fsp: u8, out: &mut Vec<u8>) {
    if time.micros < 0 {
        out.push(b'-');
    }
    let (hours, minutes, seconds, micros) = time.parts();
    push_padded(hours, 2, out);
    out.push(b':');
    push_padded(minutes, 2, out);
    out.push(b':');
    push_padded(seconds, 2, out);
    if fsp > 0 {
        let fsp = fsp.min(6);
        out.push(b'.');
        push_padded(
            micros / 10i64.pow(6 - u32::from(fsp)),
            usize::from(fsp),
            out,
        );
    }
}

/// Writes `YYYY-MM-DD HH:MM:SS[.ffffff]`.
pub fn write_datetime(value: DateTime, fsp: u8, out: &mut Vec<u8>) {
    write_date(value.date, out);
    out.push(b' ');
    write_time(value.time(), fsp, out);
}

/// Appends `value` with at least `width` digits.
fn push_padded(value: i64, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    while rest > 0 || digits.len() - start < width {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}

/// Reads digits from a text.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            bytes: text.trim().as_bytes(),
            at: 0,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// A run of at most `most` digits: value and length.
    fn digits(&mut self, most: usize) -> (u64, usize) {
        let start = self.at;
        let mut value = 0u64;
        while let Some(byte) = self.peek().filter(u8::is_ascii_digit) {
            if self.at - start >= most {
                break;
            }
            value = value
                .saturating_mul(10)
                .saturating_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        (value, self.at - start)
    }

    fn digit_run(&self) -> usize {
        self.bytes[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count()
    }

    /// A fraction after its point: microseconds (rounded at the seventh digit) and digits read.
    fn fraction(&mut self) -> (u64, u8) {
        let mut micros = 0u64;
        let mut count = 0u32;
        let mut round_up = false;
        while let Some(byte) = self.peek().filter(u8::is_ascii_digit) {
            if count < 6 {
                micros = micros * 10 + u64::from(byte - b'0');
            } else if count == 6 {
                round_up = byte >= b'5';
            }
            count += 1;
            self.at += 1;
        }
        micros *= 10u64.pow(6 - count.min(6));
        (micros + u64::from(round_up), count.min(6) as u8)
    }

    /// At a colon with a digit behind it.
    fn at_clock_separator(&self) -> bool {
        self.peek() == Some(b':') && self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit)
    }

    fn skip_punctuation(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_punctuation()) {
            self.at += 1;
        }
        self.at > start
    }
}

/// Two-digit years: 70–99 are 1970–1999, 00–69 are 2000–2069.
#[must_use]
pub fn expand_year(year: u64) -> u64 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

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
    let (date, mut micros, has_time, fsp) = if compact {
        parse_compact(&mut scanner, run)?
    } else {
        parse_delimited(&mut scanner)?
    };
    let offset = parse_offset(&mut scanner, has_time);
    let mut date = date;
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

type DateParts = (Date, u64, bool, u8);

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
    let (micros, fsp) = if scanner.peek() == Some(b'.') && hour_len > 0 {
        scanner.at += 1;
        scanner.fraction()
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
    let mut fraction = (0, 0);
    if scanner.peek() == Some(b'.') {
        scanner.at += 1;
        fraction = scanner.fraction();
    }
    Some((
        clock_micros(hour, fields[0], fields[1])? + fraction.0,
        fraction.1,
    ))
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

fn date_of(year: u64, month: u64, day: u64) -> Option<Date> {
    let date = Date {
        year: u16::try_from(year).ok()?,
        month: u8::try_from(month).ok()?,
        day: u8::try_from(day).ok()?,
    };
    date.fits_calendar().then_some(date)
}

fn clock_micros(hour: u64, minute: u64, second: u64) -> Option<u64> {
    (hour < 24 && minute < 60 && second < 60)
        .then(|| (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND.unsigned_abs())
}

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
    let mut fraction = (0, 0);
    if scanner.peek() == Some(b'.') {
        scanner.at += 1;
        fraction = scanner.fraction();
    }
    let micros = i64::try_from(seconds)
        .ok()?
        .checked_mul(MICROS_PER_SECOND)?;
    let micros = micros.checked_add(i64::try_from(fraction.0).ok()?)?;
    Some(Parsed {
        value: Time {
            micros: if negative { -micros } else { micros },
        },
        truncated: !scanner.done(),
        fsp: fraction.1,
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

/// A number read as a date and time: `YYYYMMDD`, `YYMMDD`, `YYYYMMDDHHMMSS`, `YYMMDDHHMMSS`.
#[must_use]
pub fn datetime_from_number(number: i64) -> Option<DateTime> {
    let number = u64::try_from(number).ok()?;
    if number == 0 {
        return Some(DateTime::ZERO);
    }
    let (day_part, clock) = if number >= 100_000_000 {
        (number / 1_000_000, number % 1_000_000)
    } else {
        (number, 0)
    };
    let mut year = day_part / 10_000;
    if day_part < 1_000_000 {
        if day_part < 101 {
            return None;
        }
        year = expand_year(year);
    } else if year < 1000 && number < 100_000_000 {
        return None;
    }
    let date = date_of(year, day_part / 100 % 100, day_part % 100)?;
    let micros = clock_micros(clock / 10_000, clock / 100 % 100, clock % 100)?;
    Some(DateTime { date, micros })
}

/// A number read as a time: `HHMMSS`, or the time of a datetime number.
#[must_use]
pub fn time_from_number(number: i64) -> Option<Time> {
    if number.abs() > 9_999_999 {
        return Some(match datetime_from_number(number) {
            Some(value) => value.time(),
            None => Time {
                micros: number.signum() * (Time::MAX.micros + 1),
            },
        });
    }
    let magnitude = number.abs();
    let (hours, minutes, seconds) = (magnitude / 10_000, magnitude / 100 % 100, magnitude % 100);
    (minutes < 60 && seconds < 60).then(|| Time {
        micros: number.signum() * (hours * 3600 + minutes * 60 + seconds) * MICROS_PER_SECOND,
    })
}

/// Rounds to `fsp` digits, carrying into the date; `None` past 9999.
#[must_use]
pub fn round_datetime(value: DateTime, fsp: u8) -> Option<DateTime> {
    let micros = round_micros(value.time().micros, fsp);
    if micros < MICROS_PER_DAY {
        return Some(DateTime {
            date: value.date,
            micros: micros.unsigned_abs(),
        });
    }
    let date = Date::from_day_number(value.date.day_number() + 1)?;
    Some(DateTime::midnight(date))
}

/// The last day of a date's month.
#[must_use]
pub fn last_day(date: Date) -> Date {
    Date {
        day: days_in_month(date.year, date.month),
        ..date
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<String> {
        let (parsed, offset) = parse_datetime(text)?;
        let mut out = Vec::new();
        write_datetime(parsed.value, parsed.fsp, &mut out);
        let mut shown = String::from_utf8(out).unwrap();
        if let Some(minutes) = offset {
            shown.push_str(&format!(" offset {minutes}"));
        }
        if parsed.truncated {
            shown.push_str(" truncated");
        }
        Some(shown)
    }

    #[test]
    fn datetimes_are_read_in_every_spelling() {
        let table = [
            ("2024-01-05", Some("2024-01-05 00:00:00")),
            ("2024-1-5 3:4:5", Some("2024-01-05 03:04:05")),
            ("2024-01-05T03:04:05.25", Some("2024-01-05 03:04:05.25")),
            (
                "2024/01/05 03.04.05",
                Some("2024-01-05 03:00:00.04 truncated"),
            ),
            ("20240105030405", Some("2024-01-05 03:04:05")),
            ("20240105", Some("2024-01-05 00:00:00")),
            ("240105", Some("2024-01-05 00:00:00")),
            ("70-01-05", Some("1970-01-05 00:00:00")),
            ("0000-00-00 00:00:00", Some("0000-00-00 00:00:00")),
            (
                "2024-01-05 10:00:00+05:30",
                Some("2024-01-05 10:00:00 offset 330"),
            ),
            (
                "2024-01-05 10:00:00 x",
                Some("2024-01-05 10:00:00 truncated"),
            ),
            ("00-00-00", Some("0000-00-00 00:00:00")),
            ("00-01-01", Some("2000-01-01 00:00:00")),
            ("2024-02-30", None),
            ("2024-13-01", None),
            ("abc", None),
            ("", None),
            (
                "2023-12-31 23:59:59.9999999",
                Some("2024-01-01 00:00:00.000000"),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(read(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn times_are_read_in_every_spelling() {
        let table = [
            ("10:11:12", Some("10:11:12.000000")),
            ("10:11", Some("10:11:00.000000")),
            ("101112", Some("10:11:12.000000")),
            ("12", Some("00:00:12.000000")),
            ("1 10:00:00", Some("34:00:00.000000")),
            ("-838:59:59", Some("-838:59:59.000000")),
            ("10:11:12.5", Some("10:11:12.500000")),
            ("2024-01-05 10:11:12", Some("10:11:12.000000")),
            ("10:", Some("00:00:10.000000")),
            ("2024-01-05", Some("00:20:24.000000")),
            ("10:61:00", None),
            ("x", None),
        ];
        for (text, expected) in table {
            let shown = parse_time(text).map(|parsed| {
                let mut out = Vec::new();
                write_time(parsed.value, 6, &mut out);
                String::from_utf8(out).unwrap()
            });
            assert_eq!(shown.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn day_numbers_go_there_and_back() {
        for number in (1..=super::super::temporal::MAX_DAY_NUMBER).step_by(97) {
            let date = Date::from_day_number(number).unwrap();
            assert_eq!(date.day_number(), number, "{date:?}");
        }
        let date = Date {
            year: 2007,
            month: 10,
            day: 7,
        };
        assert_eq!(date.day_number(), 733_321);
        assert_eq!(date.weekday(), 6);
    }
}
