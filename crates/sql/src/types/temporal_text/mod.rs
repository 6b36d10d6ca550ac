//! Dates and times to and from text, as leniently as MySQL reads and as exactly as it writes.

mod datetime;
mod number;
mod scanner;
#[cfg(test)]
mod tests;
mod time;
mod write;

pub use datetime::parse_datetime;
pub use number::{datetime_from_number, time_from_number};
pub use time::parse_time;
pub use write::{write_date, write_datetime, write_time};

use super::temporal::{Date, MICROS_PER_SECOND};

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

/// Two-digit years: 70–99 are 1970–1999, 00–69 are 2000–2069.
#[must_use]
pub fn expand_year(year: u64) -> u64 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
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
