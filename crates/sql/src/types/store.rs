//! Fitting a value into a declared type, as storing does. Pure: what went wrong is returned and
//! the caller decides whether it is an error or a warning.

use std::sync::Arc;

use bigdecimal::Signed;

use super::collate::text_equal;
use super::convert_json::to_json;
use super::data_type::{Collation, DataType, IntWidth, Sign};
use super::digits::rounded_to;
use super::json_text::{JsonIssue, parse_json};
use super::members::{all_members, read_set, set_text};
use super::number::{decimal_limit, parse_double, round_decimal};
use super::temporal::round_datetime;
use super::temporal::{Date, DateTime, Time, round_micros};
use super::temporal_text::{parse_datetime, parse_time};
use super::time_zone::{from_utc_micros, to_utc_micros};
use super::value::{Decimal, Value};
use crate::types::SqlMode;

/// What did not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Issue {
    /// 1264: the nearest value of the type was taken.
    OutOfRange,
    /// 1406: text was cut.
    TooLong,
    /// 1406, or 1264 as a warning: more bits than a BIT has.
    TooManyBits,
    /// 1265: something after a readable start was ignored.
    Truncated,
    /// 1265 as a note: only digits or a time of day beyond the type's precision were lost.
    Note,
    /// 1366 or 1292: not readable as this kind (`integer`, `datetime`, …) at all.
    Incorrect(&'static str),
    /// 1299: clocks leave this time out; the next that exists was taken.
    NoSuchTime,
    /// 3140 or 3157: not JSON.
    InvalidJson(JsonIssue),
    /// 3144: a byte string is no JSON text.
    BytesAsJson,
}

/// What fitting depends on.
pub struct StoreRules<'a> {
    /// Zero dates allowed or not.
    pub mode: SqlMode,
    /// The session's zone, for offsets in datetime texts.
    pub zone: &'a jiff::tz::TimeZone,
    /// What a TIME counts from when stored as a date.
    pub today: Date,
}

type Fitted = (Value, Option<Issue>);

/// `value` as a value of `ty`, with what was lost. NULL stays NULL.
#[must_use]
pub fn fit(value: Value, ty: &DataType, rules: &StoreRules<'_>) -> Fitted {
    match (value, ty) {
        (Value::Null, _) => (Value::Null, None),
        (value, DataType::Null) => (value, None),
        (
            value,
            DataType::Int {
                width, unsigned, ..
            },
        ) => fit_integer(&value, *width, *unsigned),
        (
            value,
            DataType::Decimal {
                precision,
                scale,
                sign,
            },
        ) => fit_decimal(&value, *precision, *scale, sign.is_unsigned()),
        (value, DataType::Float { sign }) => fit_double(&value, *sign, true),
        (value, DataType::Double { sign }) => fit_double(&value, *sign, false),
        (value, DataType::Char { length, .. }) => {
            let (text, issue) = fit_text(value, *length, usize::MAX);
            // Spaces at the end are no part of a CHAR: nothing is lost with them.
            (trim_char(text), issue.filter(|issue| *issue != Issue::Note))
        }
        (value, DataType::Varchar { length, .. }) => fit_text(value, *length, usize::MAX),
        (value, DataType::Text { size, .. }) => fit_text(value, u32::MAX, size.bytes() as usize),
        (value, DataType::Binary { length }) => {
            let (value, issue) = fit_bytes(value, *length as usize);
            (pad_binary(value, *length as usize), issue)
        }
        (value, DataType::Varbinary { length }) => fit_bytes(value, *length as usize),
        (value, DataType::Blob { size }) => fit_bytes(value, size.bytes() as usize),
        (value, DataType::Date) => fit_date(&value, rules),
        (value, DataType::Time { fsp }) => fit_time(&value, *fsp),
        (value, DataType::DateTime { fsp }) => fit_datetime(&value, *fsp, rules),
        (value, DataType::Timestamp { fsp }) => fit_timestamp(&value, *fsp, rules),
        (value, DataType::Year) => fit_year(&value),
        (value, DataType::Json) => fit_json(value),
        (value, DataType::Enum { members, collation }) => fit_enum(&value, members, *collation),
        (value, DataType::Set { members, collation }) => fit_set(&value, members, *collation),
        (value, DataType::Bit { width }) => fit_bit(&value, *width),
    }
}

fn text_issue(value: &Value, complete: bool, kind: &'static str) -> Option<Issue> {
    if complete {
        return None;
    }
    let text = value.to_text().unwrap_or_default();
    let starts = text.trim_start().trim_start_matches(['-', '+', '.']);
    if starts.starts_with(|c: char| c.is_ascii_digit()) {
        Some(Issue::Truncated)
    } else {
        Some(Issue::Incorrect(kind))
    }
}

fn fit_integer(value: &Value, width: IntWidth, unsigned: bool) -> Fitted {
    let (least, greatest) = width.range(unsigned);
    if let Value::Int(number) = value
        && !(unsigned && width == IntWidth::Big)
        && (least..=greatest).contains(&i128::from(*number))
    {
        return (Value::Int(*number), None);
    }
    let (number, complete) = value.to_integer_checked().unwrap_or((0, true));
    let cut = number.clamp(least, greatest);
    let issue = if cut == number {
        text_issue(value, complete, "integer")
    } else {
        Some(Issue::OutOfRange)
    };
    (integer_value(cut, width, unsigned), issue)
}

/// BIGINT UNSIGNED is always `UInt`, every other integer type always `Int`.
#[must_use]
pub fn integer_value(number: i128, width: IntWidth, unsigned: bool) -> Value {
    if unsigned && width == IntWidth::Big {
        Value::UInt(u64::try_from(number).unwrap_or(if number < 0 { 0 } else { u64::MAX }))
    } else {
        Value::Int(i64::try_from(number).unwrap_or(if number < 0 { i64::MIN } else { i64::MAX }))
    }
}

fn fit_decimal(value: &Value, precision: u8, scale: u8, unsigned: bool) -> Fitted {
    let Some((number, complete)) = value.to_decimal_checked() else {
        return (Value::Null, None);
    };
    let rounded = round_decimal(&number, i64::from(scale));
    let limit = decimal_limit(precision, scale);
    let zero = Decimal::new(0.into(), i64::from(scale));
    let (fitted, issue) = if unsigned && rounded.is_negative() {
        (zero, Some(Issue::OutOfRange))
    } else if rounded > limit {
        (limit, Some(Issue::OutOfRange))
    } else if rounded < -&limit {
        (-limit, Some(Issue::OutOfRange))
    } else if let Some(issue) = text_issue(value, complete, "decimal") {
        (rounded, Some(issue))
    } else {
        let exact = value.is_temporal() || matches!(value, Value::Double(_)) || rounded == number;
        (rounded, (!exact).then_some(Issue::Note))
    };
    (Value::decimal(fitted), issue)
}

fn fit_double(value: &Value, sign: Sign, single: bool) -> Fitted {
    let (number, complete) = value.to_double_checked().unwrap_or((0.0, true));
    if sign.is_unsigned() && number < 0.0 {
        return (Value::Double(0.0), Some(Issue::OutOfRange));
    }
    let (number, is_cut) = rounded_to(number, sign);
    if is_cut {
        let cut = if single {
            f64::from(number as f32)
        } else {
            number
        };
        return (Value::Double(cut), Some(Issue::OutOfRange));
    }
    let issue = text_issue(value, complete, if single { "float" } else { "double" });
    if !single {
        return (Value::Double(number), issue);
    }
    let narrow = number as f32;
    if narrow.is_infinite() {
        let cut = if number < 0.0 { f32::MIN } else { f32::MAX };
        return (Value::Double(f64::from(cut)), Some(Issue::OutOfRange));
    }
    (Value::Double(f64::from(narrow)), issue)
}

fn fit_text(value: Value, characters: u32, bytes: usize) -> Fitted {
    let text = match value {
        Value::Text(text) => text,
        Value::Bytes(bytes) => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(valid);
                let text = String::from_utf8(bytes).unwrap_or_default();
                return (Value::Text(text), Some(Issue::Incorrect("string")));
            }
        },
        other => other.to_text().unwrap_or_default(),
    };
    let characters = characters as usize;
    if text.len() <= characters && text.len() <= bytes {
        return (Value::Text(text), None);
    }
    let end = text
        .char_indices()
        .enumerate()
        .find(|(place, (at, character))| *place >= characters || at + character.len_utf8() > bytes)
        .map(|(_, (at, _))| at);
    let Some(end) = end else {
        return (Value::Text(text), None);
    };
    let only_spaces = text[end..].bytes().all(|byte| byte == b' ');
    let issue = if only_spaces {
        Issue::Note
    } else {
        Issue::TooLong
    };
    let mut text = text;
    text.truncate(end);
    (Value::Text(text), Some(issue))
}

fn trim_char(value: Value) -> Value {
    match value {
        Value::Text(mut text) => {
            text.truncate(text.trim_end_matches(' ').len());
            Value::Text(text)
        }
        other => other,
    }
}

fn fit_bytes(value: Value, length: usize) -> Fitted {
    let mut bytes = match value {
        Value::Bytes(bytes) => bytes,
        other => other.to_bytes().unwrap_or_default(),
    };
    let issue = (bytes.len() > length).then_some(Issue::TooLong);
    bytes.truncate(length);
    (Value::Bytes(bytes), issue)
}

fn pad_binary(value: Value, length: usize) -> Value {
    match value {
        Value::Bytes(mut bytes) => {
            bytes.resize(length, 0);
            Value::Bytes(bytes)
        }
        other => other,
    }
}

/// Zero dates and partial dates as `sql_mode` has it.
#[must_use]
pub fn date_allowed(date: Date, mode: SqlMode) -> bool {
    if date.is_zero() {
        return !mode.no_zero_date;
    }
    !(mode.no_zero_in_date && date.is_partial())
}

/// A date and time at full precision, offset applied; the issue of reading it.
fn read_datetime(value: &Value, rules: &StoreRules<'_>) -> Option<(DateTime, Option<Issue>)> {
    let text = match value {
        Value::Text(text) => text.as_str(),
        Value::Bytes(bytes) => std::str::from_utf8(bytes).ok()?,
        other => return other.to_datetime(rules.today).map(|value| (value, None)),
    };
    let (parsed, offset) = parse_datetime(text)?;
    let mut found = parsed.value;
    if let Some(minutes) = offset {
        let utc = to_utc_micros(found, &jiff::tz::TimeZone::UTC)? - i64::from(minutes) * 60_000_000;
        found = from_utc_micros(utc, rules.zone);
    }
    Some((found, parsed.truncated.then_some(Issue::Truncated)))
}

fn fit_date(value: &Value, rules: &StoreRules<'_>) -> Fitted {
    if let Value::Date(date) = value
        && !date.is_partial()
    {
        return (Value::Date(*date), None);
    }
    let Some((found, issue)) = read_datetime(value, rules) else {
        return (Value::Date(Date::ZERO), Some(Issue::Incorrect("date")));
    };
    if !date_allowed(found.date, rules.mode) {
        return (Value::Date(Date::ZERO), Some(Issue::Incorrect("date")));
    }
    let lost_time = found.micros != 0 && !matches!(value, Value::Time(_));
    (
        Value::Date(found.date),
        issue.or(lost_time.then_some(Issue::Note)),
    )
}

fn fit_time(value: &Value, fsp: u8) -> Fitted {
    let parsed = match value {
        Value::Text(text) => parse_time(text).map(|parsed| (parsed.value, parsed.truncated)),
        other => other.to_time().map(|time| (time, false)),
    };
    let Some((time, truncated)) = parsed else {
        return (
            Value::Time(Time { micros: 0 }),
            Some(Issue::Incorrect("time")),
        );
    };
    let (time, cut) = Time::clamped(round_micros(time.micros, fsp));
    let issue = if cut {
        Some(Issue::OutOfRange)
    } else {
        truncated.then_some(Issue::Truncated)
    };
    (Value::Time(time), issue)
}

fn fit_datetime(value: &Value, fsp: u8, rules: &StoreRules<'_>) -> Fitted {
    let incorrect = || {
        (
            Value::DateTime(DateTime::ZERO),
            Some(Issue::Incorrect("datetime")),
        )
    };
    let Some((found, issue)) = read_datetime(value, rules) else {
        return incorrect();
    };
    if !date_allowed(found.date, rules.mode) {
        return incorrect();
    }
    match round_datetime(found, fsp) {
        Some(rounded) => (Value::DateTime(rounded), issue),
        None => incorrect(),
    }
}

/// TIMESTAMP: 1970-01-01 00:00:01 to 2038-01-19 03:14:07.999999 UTC.
fn fit_timestamp(value: &Value, fsp: u8, rules: &StoreRules<'_>) -> Fitted {
    let (fitted, issue) = fit_datetime(value, fsp, rules);
    let Value::DateTime(local) = fitted else {
        return (fitted, issue);
    };
    if local == DateTime::ZERO {
        return (fitted, issue);
    }
    let incorrect = (
        Value::DateTime(DateTime::ZERO),
        Some(Issue::Incorrect("datetime")),
    );
    let Some(micros) = to_utc_micros(local, rules.zone) else {
        return incorrect;
    };
    if !(1_000_000..2_147_483_648_000_000).contains(&micros) {
        return incorrect;
    }
    // A local time inside a gap of the zone becomes the first one that exists.
    let exists = from_utc_micros(micros, rules.zone);
    let gap = to_utc_micros(exists, rules.zone) == Some(micros) && exists != local;
    (
        Value::DateTime(exists),
        issue.or(gap.then_some(Issue::NoSuchTime)),
    )
}

fn fit_year(value: &Value) -> Fitted {
    let (number, complete) = match value {
        Value::Date(date) => (i128::from(date.year), true),
        Value::DateTime(value) => (i128::from(value.date.year), true),
        other => other.to_integer_checked().unwrap_or((0, true)),
    };
    if let Some(issue) = text_issue(value, complete, "integer") {
        return (Value::Int(0), Some(issue));
    }
    let from_text = matches!(value, Value::Text(text) if text.trim().len() <= 2);
    let year = match number {
        0 if from_text => 2000,
        0 => 0,
        1..=69 => number + 2000,
        70..=99 => number + 1900,
        1901..=2155 => number,
        _ => return (Value::Int(0), Some(Issue::OutOfRange)),
    };
    (Value::Int(i64::try_from(year).unwrap_or(0)), None)
}

fn fit_json(value: Value) -> Fitted {
    match value {
        Value::Json(json) => (Value::Json(json), None),
        Value::Text(text) => match parse_json(&text) {
            Ok(json) => (Value::Json(Arc::new(json)), None),
            Err(issue) => (Value::Null, Some(Issue::InvalidJson(issue))),
        },
        Value::Bytes(_) => (Value::Null, Some(Issue::BytesAsJson)),
        other => (Value::Json(Arc::new(to_json(&other))), None),
    }
}

fn fit_enum(value: &Value, members: &[String], collation: Collation) -> Fitted {
    let by_number = |number: i128| {
        let place = usize::try_from(number).ok()?.checked_sub(1)?;
        members.get(place)
    };
    let found = match value {
        Value::Text(text) => {
            let trimmed = text.trim_end_matches(' ');
            members
                .iter()
                .find(|member| text_equal(collation, member, trimmed))
                .or_else(|| {
                    let (number, complete) = parse_double(trimmed);
                    (complete && number.fract() == 0.0).then(|| by_number(number as i128))?
                })
        }
        Value::Bytes(bytes) => members
            .iter()
            .find(|member| member.as_bytes() == bytes.as_slice()),
        other => by_number(other.to_integer_checked().map_or(0, |(number, _)| number)),
    };
    match found {
        Some(member) => (Value::Text(member.clone()), None),
        None => (Value::Text(String::new()), Some(Issue::Truncated)),
    }
}

/// A list of members, or the number whose bits they are.
fn fit_set(value: &Value, members: &[String], collation: Collation) -> Fitted {
    let all = all_members(members.len());
    let (bits, complete) = match value {
        Value::Text(text) => set_of_text(members, text, collation),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => set_of_text(members, text, collation),
            Err(_) => (0, false),
        },
        other => {
            let (number, _) = other.to_integer_checked().unwrap_or((0, true));
            // Negative numbers are the bits of their two's complement.
            let bits = u64::try_from(number)
                .unwrap_or_else(|_| i64::try_from(number).unwrap_or(i64::MIN).cast_unsigned());
            (bits & all, bits & !all == 0)
        }
    };
    let issue = (!complete).then_some(Issue::Truncated);
    (Value::Text(set_text(members, bits)), issue)
}

/// Text that names no member may be a number.
fn set_of_text(members: &[String], text: &str, collation: Collation) -> (u64, bool) {
    let (bits, complete) = read_set(members, text, collation);
    if bits != 0 || complete {
        return (bits, complete);
    }
    match text.parse::<u64>() {
        Ok(number) if number & !all_members(members.len()) == 0 => (number, true),
        _ => (0, false),
    }
}

/// A number, or the bits of a text's bytes. What has more bits than the column becomes all ones.
fn fit_bit(value: &Value, width: u8) -> Fitted {
    let all = u64::MAX >> (64 - u32::from(width.clamp(1, 64)));
    let bits = match value {
        Value::UInt(bits) => Some(*bits),
        Value::Int(number) => Some(number.cast_unsigned()),
        Value::Double(number) => Some((*number as i64).cast_unsigned()),
        Value::Decimal(_) => match value.to_integer_checked() {
            Some((number, _)) if number < 0 => return (Value::UInt(0), Some(Issue::OutOfRange)),
            Some((number, _)) => u64::try_from(number).ok(),
            None => None,
        },
        other => bits_of_bytes(&other.to_bytes().unwrap_or_default()),
    };
    match bits.filter(|bits| *bits <= all) {
        Some(bits) => (Value::UInt(bits), None),
        None => (Value::UInt(all), Some(Issue::TooManyBits)),
    }
}

/// `None` when they are more than 64.
fn bits_of_bytes(bytes: &[u8]) -> Option<u64> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let significant = &bytes[zeros..];
    (significant.len() <= 8).then(|| {
        significant
            .iter()
            .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    })
}
