//! Numbers from and to text.

use std::borrow::Cow;
use std::str::FromStr;

use bigdecimal::num_bigint::BigInt;
use bigdecimal::{RoundingMode, ToPrimitive, Zero};

use super::value::Decimal;

/// Most digits a DECIMAL has.
pub const MAX_DECIMAL_PRECISION: u8 = 65;
/// Most digits after the point of a DECIMAL.
pub const MAX_DECIMAL_SCALE: u8 = 30;

/// Length of the longest number at the start of `text` (after white space): `[+-]d[.d][e[+-]d]`.
fn number_prefix(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let digits = |at: &mut usize| {
        let from = *at;
        while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
            *at += 1;
        }
        *at - from
    };
    let mut count = digits(&mut at);
    if bytes.get(at) == Some(&b'.') {
        let point = at;
        at += 1;
        count += digits(&mut at);
        if count == 0 {
            at = point;
        }
    }
    if count == 0 {
        return "";
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let mut exponent = at + 1;
        if matches!(bytes.get(exponent), Some(b'+' | b'-')) {
            exponent += 1;
        }
        if digits(&mut exponent) > 0 {
            at = exponent;
        }
    }
    &text[..at]
}

/// The number `text` starts with, and whether that was all of it (spaces around do not count).
#[must_use]
pub fn parse_double(text: &str) -> (f64, bool) {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let prefix = number_prefix(trimmed);
    let complete = !prefix.is_empty() && prefix.len() == trimmed.len();
    let value = prefix.parse::<f64>().unwrap_or(0.0);
    let value = value.clamp(-f64::MAX, f64::MAX);
    (value, complete)
}

/// `mantissa` without digits that no DECIMAL can show: reading digits takes the square of their
/// number. What is out of range stays so.
fn shortened(mantissa: &str) -> Cow<'_, str> {
    const DIGITS_MAX: usize = 200;
    if mantissa.len() <= DIGITS_MAX {
        return Cow::Borrowed(mantissa);
    }
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    // All of these are ASCII.
    let whole = whole.get(..DIGITS_MAX).unwrap_or(whole);
    let fraction = fraction.get(..DIGITS_MAX).unwrap_or(fraction);
    Cow::Owned(format!("{sign}0{whole}.{fraction}0"))
}

/// As [`parse_double`], exactly. Exponents beyond what a DECIMAL can hold saturate.
#[must_use]
pub fn parse_decimal(text: &str) -> (Decimal, bool) {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let prefix = number_prefix(trimmed);
    let complete = !prefix.is_empty() && prefix.len() == trimmed.len();
    if prefix.is_empty() {
        return (Decimal::zero(), false);
    }
    let (mantissa, exponent) = match prefix.find(['e', 'E']) {
        Some(place) => (
            &prefix[..place],
            prefix[place + 1..].parse::<i64>().unwrap_or(i64::MAX),
        ),
        None => (prefix, 0),
    };
    let mantissa = shortened(mantissa.trim_start_matches('+'));
    let Ok(value) = Decimal::from_str(&mantissa) else {
        return (Decimal::zero(), false);
    };
    if exponent == 0 {
        return (value, complete);
    }
    let (digits, scale) = value.into_bigint_and_scale();
    let exponent = exponent.clamp(-200, 200);
    let shifted = Decimal::new(digits, scale - exponent);
    let (_, scale) = shifted.as_bigint_and_scale();
    if scale < 0 {
        return (shifted.with_scale(0), complete);
    }
    (shifted, complete)
}

/// An integer as MySQL reads text for one: digits, a fraction is rounded.
/// The value may exceed 64 bits; it saturates at ±10^30.
#[must_use]
pub fn parse_integer(text: &str) -> (i128, bool) {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    if let Ok(value) = trimmed.parse::<i64>() {
        return (i128::from(value), true);
    }
    let (value, complete) = parse_decimal(trimmed);
    (decimal_to_integer(&value), complete)
}

/// The integer at the start of `text`, cutting at anything that is not a digit (CAST to an integer).
#[must_use]
pub fn parse_integer_cut(text: &str) -> (i128, bool) {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let sign = usize::from(trimmed.starts_with(['-', '+']));
    let length = trimmed[sign..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    let end = sign + length;
    let complete = length > 0 && end == trimmed.len();
    if length == 0 {
        return (0, false);
    }
    let digits = trimmed[..end].trim_start_matches('+');
    let saturated = if digits.starts_with('-') {
        i128::MIN
    } else {
        i128::MAX
    };
    (digits.parse().unwrap_or(saturated), complete)
}

/// Rounds half away from zero to an integer.
#[must_use]
pub fn decimal_to_integer(value: &Decimal) -> i128 {
    let rounded = round_decimal(value, 0);
    rounded
        .to_i128()
        .unwrap_or(if rounded.sign() == bigdecimal::num_bigint::Sign::Minus {
            i128::MIN
        } else {
            i128::MAX
        })
}

/// Rounds half away from zero to `scale` digits after the point; the scale becomes exactly that.
#[must_use]
pub fn round_decimal(value: &Decimal, scale: i64) -> Decimal {
    value.with_scale_round(scale, RoundingMode::HalfUp)
}

/// Digits after the point as shown, 0–30.
#[must_use]
pub fn decimal_scale(value: &Decimal) -> u8 {
    u8::try_from(value.fractional_digit_count().clamp(0, 30)).unwrap_or(30)
}

/// The largest magnitude of DECIMAL(precision, scale).
#[must_use]
pub fn decimal_limit(precision: u8, scale: u8) -> Decimal {
    let digits = BigInt::from(10u8).pow(u32::from(precision)) - 1u8;
    Decimal::new(digits, i64::from(scale))
}

/// A double as an exact decimal with the digits MySQL would show.
#[must_use]
pub fn decimal_of_double(value: f64) -> Decimal {
    let mut text = Vec::new();
    write_double(value, &mut text);
    let text = String::from_utf8(text).unwrap_or_default();
    parse_decimal(&text).0
}

/// Appends a DECIMAL with all digits of its scale.
pub fn write_decimal(value: &Decimal, out: &mut Vec<u8>) {
    use std::io::Write;
    let (digits, scale) = value.as_bigint_and_scale();
    let Ok(scale) = usize::try_from(scale) else {
        let _ = write!(out, "{}", value.with_scale(0).into_bigint_and_scale().0);
        return;
    };
    if scale == 0 {
        let _ = write!(out, "{digits}");
        return;
    }
    if digits.sign() == bigdecimal::num_bigint::Sign::Minus {
        out.push(b'-');
    }
    let text = digits.magnitude().to_string();
    if text.len() <= scale {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - text.len(), b'0');
        out.extend_from_slice(text.as_bytes());
    } else {
        let (whole, fraction) = text.as_bytes().split_at(text.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    }
}

/// Appends a DOUBLE: the shortest digits that read back as the same number; plain notation for
/// decimal exponents −15 to 14, otherwise `1.5e20`.
pub fn write_double(value: f64, out: &mut Vec<u8>) {
    write_float_digits(value, &format!("{value:e}"), out);
}

/// Appends a FLOAT: six significant digits.
pub fn write_float(value: f64, out: &mut Vec<u8>) {
    write_float_digits(value, &format!("{value:.5e}"), out);
}

/// `scientific` is Rust's `d.ddde±x` of `value`.
fn write_float_digits(value: f64, scientific: &str, out: &mut Vec<u8>) {
    if value == 0.0 || !value.is_finite() {
        out.extend_from_slice(if value.is_sign_negative() && value == 0.0 {
            b"-0"
        } else {
            b"0"
        });
        return;
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (negative, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa),
    };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    if negative {
        out.push(b'-');
    }
    if !(-15..15).contains(&exponent) {
        out.extend_from_slice(&digits.as_bytes()[..1]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits.as_bytes()[1..]);
        }
        out.extend_from_slice(format!("e{exponent}").as_bytes());
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(
            out.len() + usize::try_from(-exponent - 1).unwrap_or(0),
            b'0',
        );
        out.extend_from_slice(digits.as_bytes());
    } else {
        let whole = usize::try_from(exponent).unwrap_or(0) + 1;
        let split = whole.min(digits.len());
        out.extend_from_slice(&digits.as_bytes()[..split]);
        out.resize(out.len() + whole - split, b'0');
        if digits.len() > whole {
            out.push(b'.');
            out.extend_from_slice(&digits.as_bytes()[whole..]);
        }
    }
}

/// Appends an integer.
pub fn write_integer(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    write_unsigned(value.unsigned_abs(), out);
}

/// Appends an unsigned integer.
pub fn write_unsigned(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    let mut rest = value;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        write_double(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_print_as_mysql_prints_them() {
        let table = [
            (0.0, "0"),
            (1.0, "1"),
            (1.5, "1.5"),
            (-0.001, "-0.001"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (123_456_789_012_345_680.0, "1.2345678901234568e17"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e308"),
        ];
        for (value, expected) in table {
            assert_eq!(double(value), expected);
        }
    }

    #[test]
    fn numbers_are_read_up_to_the_first_thing_that_is_none() {
        let table = [
            ("12", 12.0, true),
            (" 12 ", 12.0, true),
            ("12abc", 12.0, false),
            ("1e3x", 1000.0, false),
            ("1e", 1.0, false),
            (".5", 0.5, true),
            ("-", 0.0, false),
            ("", 0.0, false),
            ("abc", 0.0, false),
        ];
        for (text, value, complete) in table {
            assert_eq!(parse_double(text), (value, complete), "{text}");
            assert_eq!(parse_decimal(text).0.to_f64(), Some(value), "{text}");
        }
    }

    #[test]
    fn decimals_keep_their_scale() {
        for text in ["0.00", "-1.50", "123", "0.000000000000000000000000000001"] {
            let mut out = Vec::new();
            write_decimal(&parse_decimal(text).0, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
        let mut out = Vec::new();
        write_decimal(&parse_decimal("1.5e3").0, &mut out);
        assert_eq!(out, b"1500");
    }

    #[test]
    fn very_long_numbers_are_read_in_no_time() {
        let ones = "1".repeat(4_000_000);
        assert!(decimal_limit(65, 0) < parse_decimal(&ones).0);
        let small = round_decimal(
            &parse_decimal(&format!("-{}.5{ones}", "0".repeat(300))).0,
            0,
        );
        assert_eq!(small, Decimal::from(-1));
        assert_eq!(
            parse_decimal(&format!("0.{ones}"))
                .0
                .fractional_digit_count(),
            201
        );
    }

    #[test]
    fn rounding_goes_away_from_zero() {
        for (text, expected) in [("2.5", 3), ("-2.5", -3), ("1.49", 1)] {
            assert_eq!(decimal_to_integer(&parse_decimal(text).0), expected);
        }
    }
}
