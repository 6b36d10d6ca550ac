//! Reading the digits of a number as a date or a time.

use super::{clock_micros, date_of, expand_year};
use crate::types::temporal::{DateTime, MICROS_PER_SECOND, Time};

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
    let magnitude = number.unsigned_abs();
    if magnitude > 9_999_999 {
        return Some(match datetime_from_number(number) {
            Some(value) => value.time(),
            None => Time {
                micros: number.signum() * (Time::MAX.micros + 1),
            },
        });
    }
    let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
    let (hours, minutes, seconds) = (magnitude / 10_000, magnitude / 100 % 100, magnitude % 100);
    (minutes < 60 && seconds < 60).then(|| Time {
        micros: number.signum() * (hours * 3600 + minutes * 60 + seconds) * MICROS_PER_SECOND,
    })
}
