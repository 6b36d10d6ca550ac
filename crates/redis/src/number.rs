//! Numbers as Redis reads and writes them.

use crate::error::CommandError;

/// A signed number in its only spelling: no sign but `-`, no leading zero.
pub fn integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 19 || (digits[0] == b'0' && text.len() > 1) {
        return None;
    }
    let mut value: i64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        let digit = i64::from(digit - b'0');
        value = value.checked_mul(10)?;
        value = if is_negative {
            value.checked_sub(digit)?
        } else {
            value.checked_add(digit)?
        };
    }
    Some(value)
}

/// [`integer`], or the error that says it is none.
pub fn parse(text: &[u8]) -> Result<i64, CommandError> {
    integer(text).ok_or(CommandError::NOT_INTEGER)
}

/// A floating-point number, infinite ones included; no NaN, no blanks.
pub fn float(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let plain = text.strip_prefix(['+', '-']).unwrap_or(text);
    if plain.eq_ignore_ascii_case("inf") || plain.eq_ignore_ascii_case("infinity") {
        let is_negative = text.starts_with('-');
        return Some(if is_negative {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        });
    }
    if !plain.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Like C's `%.17g`, which is how Redis writes scores, with the shortest digits that read back.
pub fn write_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let shortest = format!("{value:e}");
    let Some((digits, exponent)) = shortest.split_once('e') else {
        return shortest;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..17).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// What INCRBYFLOAT writes: never an exponent, up to 17 digits behind the point.
pub fn write_long(value: f64) -> String {
    let rounded = format!("{value:.17}");
    let rounded = rounded.trim_end_matches('0').trim_end_matches('.');
    let shortest = format!("{value}");
    let text = if shortest.len() <= rounded.len() {
        &shortest
    } else {
        rounded
    };
    match text {
        "-0" => "0".to_owned(),
        _ => text.to_owned(),
    }
}

/// A generator for random choices: the same seed makes the same ones (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        assert!(end > 0, "a choice among none");
        usize::try_from(self.next() % end as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_spelling_is_a_number() {
        for text in [
            "",
            "-",
            "01",
            "+1",
            " 1",
            "1 ",
            "9223372036854775808",
            "-0",
            "1.0",
        ] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(integer(b"0"), Some(0));
    }

    #[test]
    fn floats_are_written_as_redis_writes_them() {
        for (value, text) in [
            (3.0, "3"),
            (3.5, "3.5"),
            (1e17, "1e+17"),
            (1e16, "10000000000000000"),
            (1e-5, "1e-05"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(write_float(value), text);
        }
        assert_eq!(float(b"nan"), None);
        assert_eq!(float(b"1e3"), Some(1000.0));
        assert_eq!(float(b"-inf"), Some(f64::NEG_INFINITY));
    }

    #[test]
    fn what_rounds_to_nothing_is_written_as_nothing() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1e-19, "0"),
            (-1e-19, "0"),
            (3200.0, "3200"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e-17, "0.00000000000000001"),
        ] {
            assert_eq!(write_long(value), text);
        }
    }
}
