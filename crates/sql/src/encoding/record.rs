//! Row records: one format byte, then for each column its id, a tag and a payload.
#![allow(
    clippy::cast_possible_truncation,
    reason = "each cast keeps the low bits it means to"
)]

use std::sync::Arc;

use bigdecimal::num_bigint::BigInt;
use jiff::tz::TimeZone;

use crate::catalog::{Column, ColumnDefault, Table};
use crate::error::{SqlError, SqlResult};
use crate::types::SqlMode;
use crate::types::{
    DataType, Date, DateTime, Decimal, Row, StoreRules, Time, Value, fit, from_utc_micros,
    implicit_default, json_to_text, normalise, to_utc_micros,
};

/// Version of the format of plain records.
const FORMAT: u8 = 1;

const NULL: u8 = 0;
const INT: u8 = 1;
const UINT: u8 = 2;
const DOUBLE: u8 = 3;
const DECIMAL: u8 = 4;
const TEXT: u8 = 5;
const BYTES: u8 = 6;
const DATE: u8 = 7;
const TIME: u8 = 8;
const DATETIME: u8 = 9;
const TIMESTAMP: u8 = 10;
const JSON: u8 = 11;
const ZERO_TIMESTAMP: u8 = 12;

/// The record of a row: one value a column in table order.
#[must_use]
pub fn encode_row(table: &Table, row: &[Value], tz: &TimeZone) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + row.len() * 8);
    out.push(FORMAT);
    for (column, value) in table.columns.iter().zip(row) {
        write_varint(u64::from(column.id.0), &mut out);
        encode_value(value, &column.ty, tz, &mut out);
    }
    out
}

fn encode_value(value: &Value, ty: &DataType, tz: &TimeZone, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(NULL),
        Value::Int(number) => {
            out.push(INT);
            write_varint(zigzag(*number), out);
        }
        Value::UInt(number) => {
            out.push(UINT);
            write_varint(*number, out);
        }
        Value::Double(double) => {
            out.push(DOUBLE);
            out.extend_from_slice(&double.to_bits().to_le_bytes());
        }
        Value::Decimal(decimal) => {
            let (digits, scale) = decimal.as_bigint_and_scale();
            out.push(DECIMAL);
            write_varint(zigzag(scale), out);
            write_bytes(&digits.to_signed_bytes_be(), out);
        }
        Value::Text(text) => {
            out.push(TEXT);
            write_bytes(text.as_bytes(), out);
        }
        Value::Bytes(bytes) => {
            out.push(BYTES);
            write_bytes(bytes, out);
        }
        Value::Date(date) => {
            out.push(DATE);
            write_varint(u64::from(date.packed()), out);
        }
        Value::Time(time) => {
            out.push(TIME);
            write_varint(zigzag(time.micros), out);
        }
        Value::DateTime(value) => encode_datetime(*value, ty, tz, out),
        Value::Json(json) => {
            out.push(JSON);
            write_bytes(json_to_text(json).as_bytes(), out);
        }
    }
}

fn encode_datetime(value: DateTime, ty: &DataType, tz: &TimeZone, out: &mut Vec<u8>) {
    if !matches!(ty, DataType::Timestamp { .. }) {
        out.push(DATETIME);
        out.extend_from_slice(&value.packed().to_le_bytes());
        return;
    }
    match to_utc_micros(value, tz) {
        Some(micros) => {
            out.push(TIMESTAMP);
            out.extend_from_slice(&micros.to_le_bytes());
        }
        None => out.push(ZERO_TIMESTAMP),
    }
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

pub(super) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Back from a record, with its row's key suffix, to one value a column in table order; absent columns get their `absent_value`,
/// dropped ones are skipped. TIMESTAMPs come in the zone `tz`.
///
/// # Errors
/// 1712 when the record is damaged; 51005 and 51006 when it is sealed and cannot be opened.
pub fn decode_row(
    table: &Table,
    (suffix, record): (&[u8], &[u8]),
    tz: &TimeZone,
) -> SqlResult<Row> {
    let mut row = vec![Value::Null; table.columns.len()];
    let record = super::sealed::open(table, suffix, record)?;
    decode(table, &record, None, tz, &mut row)?;
    Ok(row)
}

/// As [`decode_row`], for the `wanted` columns only, into their places in `row`, whose other
/// values stay.
///
/// # Errors
/// Those of [`decode_row`]; 1105 when `row` is not as wide as the table.
pub fn decode_columns(
    table: &Table,
    (suffix, record): (&[u8], &[u8]),
    wanted: &[bool],
    tz: &TimeZone,
    row: &mut [Value],
) -> SqlResult<()> {
    if row.len() != table.columns.len() {
        return Err(SqlError::internal(format!(
            "a row of table '{}' has no room for its columns",
            table.name
        )));
    }
    let record = super::sealed::open(table, suffix, record)?;
    decode(table, &record, Some(wanted), tz, row)
}

/// `row` is as wide as the table.
fn decode(
    table: &Table,
    record: &[u8],
    wanted: Option<&[bool]>,
    tz: &TimeZone,
    row: &mut [Value],
) -> SqlResult<()> {
    let columns = &table.columns;
    let is_wanted = |position: usize| {
        wanted.is_none_or(|wanted| wanted.get(position).copied().unwrap_or(false))
    };
    let damaged = || damaged(table);
    let mut reader = Reader { bytes: record };
    if reader.byte().ok_or_else(damaged)? != FORMAT {
        return Err(damaged());
    }
    let mut next = 0;
    let mut seen = 0;
    let mut present = (columns.len() > 64).then(|| vec![false; columns.len()]);
    let mut present_bits = 0u64;
    while !reader.bytes.is_empty() {
        let id = reader.varint().ok_or_else(damaged)?;
        let matches = |column: &Column| u64::from(column.id.0) == id;
        let position = if columns.get(next).is_some_and(matches) {
            Some(next)
        } else {
            columns.iter().position(matches)
        };
        match position {
            Some(position) => {
                next = position + 1;
                seen += 1;
                match &mut present {
                    Some(present) => present[position] = true,
                    None => present_bits |= 1 << position,
                }
                if is_wanted(position) {
                    row[position] = reader.value(tz).ok_or_else(damaged)?;
                } else {
                    reader.skip().ok_or_else(damaged)?;
                }
            }
            None => reader.skip().ok_or_else(damaged)?,
        }
    }
    if seen < columns.len() {
        for (position, column) in columns.iter().enumerate() {
            let has = match &present {
                Some(present) => present[position],
                None => present_bits >> position & 1 == 1,
            };
            if !has && is_wanted(position) {
                row[position] = absent_value(column, tz);
            }
        }
    }
    Ok(())
}

pub(super) fn damaged(table: &Table) -> SqlError {
    SqlError::new(
        1712,
        "HY000",
        format!(
            "Index for table '{}' is corrupt: a row record cannot be read; restore it from a backup",
            table.name
        ),
    )
}

/// The value of rows older than their column.
fn absent_value(column: &Column, tz: &TimeZone) -> Value {
    let text = match &column.absent_value {
        Some(ColumnDefault::Literal(text)) => text.trim(),
        _ if column.not_null => return implicit_default(&column.ty),
        _ => return Value::Null,
    };
    let Some(value) = read_literal(text) else {
        return Value::Null;
    };
    let rules = StoreRules {
        mode: SqlMode::default(),
        zone: tz,
        today: Date::ZERO,
    };
    fit(value, &column.ty, &rules).0
}

/// A literal of a DEFAULT: `NULL`, a quoted string, a number, TRUE or FALSE.
fn read_literal(text: &str) -> Option<Value> {
    if text.eq_ignore_ascii_case("null") {
        return None;
    }
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Some(Value::Int(i64::from(text.eq_ignore_ascii_case("true"))));
    }
    if let Some(bits) = text
        .strip_prefix("b'")
        .and_then(|rest| rest.strip_suffix('\''))
    {
        return u64::from_str_radix(bits, 2).ok().map(Value::UInt);
    }
    let quoted = text
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    let Some(quoted) = quoted else {
        return Some(Value::Text(text.to_string()));
    };
    let mut value = String::with_capacity(quoted.len());
    let mut characters = quoted.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' if characters.peek() == Some(&'\'') => {
                characters.next();
                value.push('\'');
            }
            '\\' => match characters.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some('0') => value.push('\0'),
                Some(other) => value.push(other),
                None => value.push('\\'),
            },
            other => value.push(other),
        }
    }
    Some(Value::Text(value))
}

/// Takes a record apart; `None` wherever bytes are missing or make no sense.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(head)
    }

    fn eight(&mut self) -> Option<[u8; 8]> {
        self.take(8)?.try_into().ok()
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn chunk(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }

    fn value(&mut self, tz: &TimeZone) -> Option<Value> {
        Some(match self.byte()? {
            NULL => Value::Null,
            INT => Value::Int(unzigzag(self.varint()?)),
            UINT => Value::UInt(self.varint()?),
            DOUBLE => {
                let double = f64::from_bits(u64::from_le_bytes(self.eight()?));
                Value::Double(double.is_finite().then_some(double)?)
            }
            DECIMAL => {
                let scale = unzigzag(self.varint()?);
                let digits = self.chunk()?;
                if !(0..=30).contains(&scale) || digits.len() > 32 {
                    return None;
                }
                Value::decimal(Decimal::new(BigInt::from_signed_bytes_be(digits), scale))
            }
            TEXT => Value::Text(std::str::from_utf8(self.chunk()?).ok()?.to_string()),
            BYTES => Value::Bytes(self.chunk()?.to_vec()),
            DATE => {
                let packed = u32::try_from(self.varint()?).ok()?;
                Value::Date(Date::from_packed(packed)?)
            }
            TIME => {
                let micros = unzigzag(self.varint()?);
                let (time, cut) = Time::clamped(micros);
                Value::Time((!cut).then_some(time)?)
            }
            DATETIME => Value::DateTime(DateTime::from_packed(u64::from_le_bytes(self.eight()?))?),
            TIMESTAMP => Value::DateTime(from_utc_micros(i64::from_le_bytes(self.eight()?), tz)),
            ZERO_TIMESTAMP => Value::DateTime(DateTime::ZERO),
            JSON => {
                let json = serde_json::from_slice(self.chunk()?).ok()?;
                Value::Json(Arc::new(normalise(json)))
            }
            _ => return None,
        })
    }

    fn skip(&mut self) -> Option<()> {
        match self.byte()? {
            NULL | ZERO_TIMESTAMP => {}
            INT | UINT | DATE | TIME => {
                self.varint()?;
            }
            DOUBLE | DATETIME | TIMESTAMP => {
                self.eight()?;
            }
            DECIMAL => {
                self.varint()?;
                self.chunk()?;
            }
            TEXT | BYTES | JSON => {
                self.chunk()?;
            }
            _ => return None,
        }
        Some(())
    }
}
