//! Values as a client reads them.

use super::data_type::DataType;
use super::json_text::write_json;
use super::members::EMPTY_ALONE;
use super::number::{write_decimal, write_double, write_float, write_integer, write_unsigned};
use super::temporal_text::{write_date, write_datetime, write_time};
use super::type_info::bit_bytes;
use super::value::Value;

impl DataType {
    /// Whether the text of a value shows how its type was declared.
    #[must_use]
    pub fn shows_declaration(&self) -> bool {
        matches!(self, DataType::Float { .. } | DataType::Year)
            || self.fsp() > 0
            || self.zerofill().is_some()
            || self.shown_digits().is_some()
    }
}

/// Appends the text-protocol form of `value` of type `ty`. NULL appends nothing: the protocol
/// has its own mark for it.
pub fn write_text(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    match (value, ty) {
        (Value::Time(time), DataType::Time { fsp }) => write_time(*time, *fsp, out),
        (Value::DateTime(value), DataType::DateTime { fsp } | DataType::Timestamp { fsp }) => {
            write_datetime(*value, *fsp, out);
        }
        (Value::DateTime(value), DataType::Date) => write_date(value.date, out),
        (_, ty) if ty.zerofill().is_some() => write_filled(value, ty, out),
        (Value::Text(text), DataType::Set { .. }) if text == EMPTY_ALONE => {}
        (Value::Double(value), DataType::Float { sign } | DataType::Double { sign })
            if sign.digits().is_some() =>
        {
            write_with_digits(*value, ty, out);
        }
        (Value::Double(value), DataType::Float { .. }) => write_float(*value, out),
        (Value::Int(year), DataType::Year) => {
            out.extend_from_slice(format!("{year:04}").as_bytes());
        }
        (Value::UInt(bits), DataType::Bit { width }) => write_bits(*bits, *width, out),
        _ => write_value(value, out),
    }
}

/// A number of a type that has so many digits behind the point.
fn write_with_digits(value: f64, ty: &DataType, out: &mut Vec<u8>) {
    let digits = ty
        .shown_digits()
        .map_or(0, |(_, digits)| usize::from(digits));
    out.extend_from_slice(format!("{value:.digits$}").as_bytes());
}

/// A number of a type declared ZEROFILL.
fn write_filled(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    let start = out.len();
    match (value, ty) {
        (Value::Null, _) => return,
        (Value::Double(value), _) if ty.shown_digits().is_some() => {
            write_with_digits(*value, ty, out);
        }
        (Value::Double(value), DataType::Float { .. }) => write_float(*value, out),
        _ => write_value(value, out),
    }
    let width = usize::from(ty.zerofill().unwrap_or(0));
    let missing = width.saturating_sub(out.len() - start);
    out.splice(start..start, std::iter::repeat_n(b'0', missing));
}

/// Appends the bytes that hold the `width` bits of a BIT, the greatest first.
pub fn write_bits(bits: u64, width: u8, out: &mut Vec<u8>) {
    let bytes = bits.to_be_bytes();
    let used = (bit_bytes(width) as usize).min(bytes.len());
    out.extend_from_slice(&bytes[bytes.len() - used..]);
}

/// Appends `value` without knowing its type: fractions of times only when there are any.
pub fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Int(value) => write_integer(*value, out),
        Value::UInt(value) => write_unsigned(*value, out),
        Value::Double(value) => write_double(*value, out),
        Value::Decimal(value) => write_decimal(value, out),
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::Date(date) => write_date(*date, out),
        Value::Time(time) => write_time(*time, fraction_digits(time.micros), out),
        Value::DateTime(value) => {
            write_datetime(*value, fraction_digits(value.time().micros), out);
        }
        Value::Json(json) => write_json(json, out),
    }
}

fn fraction_digits(micros: i64) -> u8 {
    if micros % 1_000_000 == 0 { 0 } else { 6 }
}

/// The text-protocol form as a string; NULL is `NULL`. Bytes that are no UTF-8 become U+FFFD.
#[must_use]
pub fn to_text(value: &Value, ty: &DataType) -> String {
    if value.is_null() {
        return "NULL".to_string();
    }
    let mut out = Vec::new();
    write_text(value, ty, &mut out);
    match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}
