//! Values seen as another kind: as a number, as text, as a point in time.

use bigdecimal::{FromPrimitive, ToPrimitive, Zero};

use super::data_type::DataType;
use super::json_text::json_to_text;
use super::members::{EMPTY_ALONE, set_bits};
use super::number::{
    decimal_of_double, decimal_to_integer, parse_decimal, parse_double, parse_integer,
    parse_integer_cut,
};
use super::temporal::{Date, DateTime, MICROS_PER_SECOND, Time};
use super::temporal_text::{datetime_from_number, parse_datetime, parse_time, time_from_number};
use super::text::write_value;
use super::value::{Decimal, Value};

impl Value {
    /// As a double; text gives the number it starts with. `None` for NULL.
    #[must_use]
    pub fn to_double(&self) -> Option<f64> {
        self.to_double_checked().map(|(value, _)| value)
    }

    /// As [`Value::to_double`], and whether all of a text was a number.
    #[must_use]
    pub fn to_double_checked(&self) -> Option<(f64, bool)> {
        Some(match self {
            Value::Null => return None,
            Value::Int(value) => (*value as f64, true),
            Value::UInt(value) => (*value as f64, true),
            Value::Double(value) => (*value, true),
            Value::Decimal(value) => (value.to_f64().unwrap_or(0.0), true),
            Value::Text(text) => parse_double(text),
            Value::Bytes(bytes) => parse_double(&String::from_utf8_lossy(bytes)),
            Value::Date(date) => (date.number() as f64, true),
            Value::Time(time) => (temporal_number(time.number(), time.micros), true),
            Value::DateTime(value) => (temporal_number(value.number(), value.time().micros), true),
            Value::Json(json) => match json.as_ref() {
                serde_json::Value::Number(number) => (number.as_f64().unwrap_or(0.0), true),
                serde_json::Value::Bool(value) => (f64::from(u8::from(*value)), true),
                serde_json::Value::String(text) => parse_double(text),
                _ => (0.0, false),
            },
        })
    }

    /// As an exact number. `None` for NULL; the bool tells whether all of a text was a number.
    #[must_use]
    pub fn to_decimal_checked(&self) -> Option<(Decimal, bool)> {
        Some(match self {
            Value::Null => return None,
            Value::Int(value) => (Decimal::from(*value), true),
            Value::UInt(value) => (Decimal::from(*value), true),
            Value::Double(value) => (decimal_of_double(*value), true),
            Value::Decimal(value) => ((**value).clone(), true),
            Value::Text(text) => parse_decimal(text),
            Value::Bytes(bytes) => parse_decimal(&String::from_utf8_lossy(bytes)),
            Value::Date(date) => (Decimal::from(date.number()), true),
            Value::Time(time) => (decimal_of_temporal(time.number(), time.micros), true),
            Value::DateTime(value) => (
                decimal_of_temporal(value.number(), value.time().micros),
                true,
            ),
            Value::Json(json) => match json.as_ref() {
                serde_json::Value::Number(number) => parse_decimal(&number.to_string()),
                serde_json::Value::Bool(value) => (Decimal::from(u8::from(*value)), true),
                serde_json::Value::String(text) => parse_decimal(text),
                _ => (Decimal::zero(), false),
            },
        })
    }

    /// As an exact number; `None` for NULL.
    #[must_use]
    pub fn to_decimal(&self) -> Option<Decimal> {
        self.to_decimal_checked().map(|(value, _)| value)
    }

    /// What a value of type `from` is where `to` is stored: an ENUM's place in its list and a SET's
    /// bits for a number, of a SET's empty member alone the text, and itself otherwise.
    #[must_use]
    pub fn stored_from(self, from: &DataType, to: &DataType) -> Self {
        match (&self, from) {
            (Value::Text(text), DataType::Set { members, .. }) if to.is_number() => {
                Value::UInt(set_bits(members, text))
            }
            (Value::Text(text), DataType::Set { .. }) if text == EMPTY_ALONE && from != to => {
                Value::Text(String::new())
            }
            (Value::Text(text), DataType::Enum { members, .. }) if to.is_number() => {
                let place = members.iter().position(|member| member == text);
                Value::UInt(place.map_or(0, |place| place as u64 + 1))
            }
            _ => self,
        }
    }

    /// Rounded to an integer wide enough for BIGINT and BIGINT UNSIGNED. `None` for NULL.
    #[must_use]
    pub fn to_integer_checked(&self) -> Option<(i128, bool)> {
        Some(match self {
            Value::Null => return None,
            Value::Int(value) => (i128::from(*value), true),
            Value::UInt(value) => (i128::from(*value), true),
            // Halves go to the even number, as C's `rint` has it; those of decimals go away from zero.
            Value::Double(value) => (value.round_ties_even() as i128, true),
            Value::Decimal(value) => (decimal_to_integer(value), true),
            Value::Text(text) => parse_integer(text),
            Value::Bytes(bytes) => parse_integer(&String::from_utf8_lossy(bytes)),
            Value::Date(date) => (i128::from(date.number()), true),
            Value::Time(_) | Value::DateTime(_) | Value::Json(_) => {
                let (value, complete) = self.to_decimal_checked()?;
                (decimal_to_integer(&value), complete)
            }
        })
    }

    /// As [`Value::to_integer_checked`], but text ends at its first character that is no digit:
    /// the rule of arguments and bit operators, where storing rounds.
    fn to_integer_cut(&self) -> Option<i128> {
        match self {
            Value::Text(text) => Some(parse_integer_cut(text).0),
            Value::Bytes(bytes) => Some(parse_integer_cut(&String::from_utf8_lossy(bytes)).0),
            other => other.to_integer_checked().map(|(value, _)| value),
        }
    }

    /// As a signed integer, saturating; `None` for NULL. For arguments of functions.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        if let Value::Int(value) = self {
            return Some(*value);
        }
        let value = self.to_integer_cut()?;
        Some(i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX }))
    }

    /// Bits of an integer for `&`, `|`, `HEX` and their kin: negative numbers wrap.
    #[must_use]
    pub fn to_bits(&self) -> Option<u64> {
        let value = self.to_integer_cut()?;
        Some(if value < 0 {
            i64::try_from(value).unwrap_or(i64::MIN).cast_unsigned()
        } else {
            u64::try_from(value).unwrap_or(u64::MAX)
        })
    }

    /// Truth: non-zero. `None` for NULL.
    #[must_use]
    pub fn to_bool(&self) -> Option<bool> {
        match self {
            Value::Null => None,
            Value::Int(value) => Some(*value != 0),
            Value::UInt(value) => Some(*value != 0),
            Value::Decimal(value) => Some(!value.is_zero()),
            other => other.to_double().map(|value| value != 0.0),
        }
    }

    /// As text, fractions of times shown only when there are any; `None` for NULL.
    /// Bytes that are no UTF-8 become U+FFFD.
    #[must_use]
    pub fn to_text(&self) -> Option<String> {
        match self {
            Value::Null => None,
            Value::Text(text) => Some(text.clone()),
            Value::Json(json) => Some(json_to_text(json)),
            other => {
                let mut out = Vec::new();
                write_value(other, &mut out);
                Some(match String::from_utf8(out) {
                    Ok(text) => text,
                    Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
                })
            }
        }
    }

    /// The bytes as text of one character each, U+0000 to U+00FF, so that a byte string passes
    /// through code for text without loss; `None` for NULL.
    #[must_use]
    pub fn to_byte_characters(&self) -> Option<String> {
        self.to_bytes()
            .map(|bytes| bytes.into_iter().map(char::from).collect())
    }

    /// As bytes; `None` for NULL.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match self {
            Value::Null => None,
            Value::Bytes(bytes) => Some(bytes.clone()),
            other => other.to_text().map(String::into_bytes),
        }
    }

    /// As a date and time; `None` for NULL and for what is none. A TIME counts from `today`.
    #[must_use]
    pub fn to_datetime(&self, today: Date) -> Option<DateTime> {
        match self {
            Value::Null => None,
            Value::Date(date) => Some(DateTime::midnight(*date)),
            Value::DateTime(value) => Some(*value),
            Value::Time(time) => DateTime::from_linear_micros(
                DateTime::midnight(today).linear_micros() + time.micros,
            ),
            Value::Int(number) => datetime_from_number(*number),
            Value::UInt(number) => datetime_from_number(i64::try_from(*number).ok()?),
            Value::Double(_) | Value::Decimal(_) => {
                let (decimal, _) = self.to_decimal_checked()?;
                let whole = decimal.with_scale_round(0, bigdecimal::RoundingMode::Down);
                let fraction = (&decimal - &whole) * Decimal::from(MICROS_PER_SECOND);
                let mut value = datetime_from_number(whole.to_i64()?)?;
                value.micros += fraction.to_u64()?;
                Some(value)
            }
            Value::Text(text) => parse_datetime(text).map(|(parsed, _)| parsed.value),
            Value::Bytes(bytes) => {
                let text = std::str::from_utf8(bytes).ok()?;
                parse_datetime(text).map(|(parsed, _)| parsed.value)
            }
            Value::Json(json) => {
                let text = json.as_str()?;
                parse_datetime(text).map(|(parsed, _)| parsed.value)
            }
        }
    }

    /// As a time or duration; `None` for NULL and for what is none. Not clamped.
    #[must_use]
    pub fn to_time(&self) -> Option<Time> {
        match self {
            Value::Null => None,
            Value::Date(_) => Some(Time { micros: 0 }),
            Value::DateTime(value) => Some(value.time()),
            Value::Time(time) => Some(*time),
            Value::Int(number) => time_from_number(*number),
            Value::UInt(number) => time_from_number(i64::try_from(*number).ok()?),
            Value::Double(_) | Value::Decimal(_) => {
                let (decimal, _) = self.to_decimal_checked()?;
                let whole = decimal.with_scale_round(0, bigdecimal::RoundingMode::Down);
                let fraction = (&decimal - &whole) * Decimal::from(MICROS_PER_SECOND);
                let time = time_from_number(whole.to_i64()?)?;
                Some(Time {
                    micros: time.micros + fraction.round(0).to_i64()?,
                })
            }
            Value::Text(text) => parse_time(text).map(|parsed| parsed.value),
            Value::Bytes(bytes) => {
                parse_time(std::str::from_utf8(bytes).ok()?).map(|parsed| parsed.value)
            }
            Value::Json(json) => parse_time(json.as_str()?).map(|parsed| parsed.value),
        }
    }

    /// An integer of the narrowest kind: `Int` when it fits, else `UInt`; `None` past both.
    #[must_use]
    pub fn from_i128(value: i128) -> Option<Self> {
        match i64::try_from(value) {
            Ok(value) => Some(Value::Int(value)),
            Err(_) => u64::try_from(value).ok().map(Value::UInt),
        }
    }

    /// An exact number.
    #[must_use]
    pub fn decimal(value: Decimal) -> Self {
        Value::Decimal(Box::new(value))
    }

    /// A truth value, NULL for `None`.
    #[must_use]
    pub fn from_bool(value: Option<bool>) -> Self {
        match value {
            None => Value::Null,
            Some(value) => Value::Int(i64::from(value)),
        }
    }

    /// Integers, doubles and decimals.
    #[must_use]
    pub fn is_number(&self) -> bool {
        matches!(
            self,
            Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_)
        )
    }

    /// Dates and times.
    #[must_use]
    pub fn is_temporal(&self) -> bool {
        matches!(self, Value::Date(_) | Value::Time(_) | Value::DateTime(_))
    }
}

fn temporal_number(whole: i64, micros: i64) -> f64 {
    whole as f64 + (micros % MICROS_PER_SECOND) as f64 / MICROS_PER_SECOND as f64
}

fn decimal_of_temporal(whole: i64, micros: i64) -> Decimal {
    let fraction = micros % MICROS_PER_SECOND;
    if fraction == 0 {
        return Decimal::from(whole);
    }
    let scaled = Decimal::from_i64(fraction).unwrap_or_default() / Decimal::from(MICROS_PER_SECOND);
    Decimal::from(whole) + scaled.with_scale(6)
}

/// A decimal as a JSON number: whole ones exactly, others as a double.
pub(super) fn json_fraction(value: &Value) -> serde_json::Value {
    if let Value::Decimal(decimal) = value
        && decimal.fractional_digit_count() <= 0
    {
        if let Some(whole) = decimal.to_i64() {
            return whole.into();
        }
        if let Some(whole) = decimal.to_u64() {
            return whole.into();
        }
    }
    let double = value.to_double().unwrap_or(0.0);
    serde_json::Number::from_f64(double).map_or(serde_json::Value::Null, serde_json::Value::Number)
}
