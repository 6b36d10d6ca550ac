//! Calendar values as MySQL has them: zero dates allowed, microseconds.

use serde::{Deserialize, Serialize};

/// A date; `0000-00-00` and zero months or days exist when `sql_mode` lets them in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Date {
    /// 0–9999.
    pub year: u16,
    /// 0–12.
    pub month: u8,
    /// 0–31.
    pub day: u8,
}

/// A signed time of day or duration, −838:59:59 to 838:59:59.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Time {
    /// Microseconds, negative for negative times.
    pub micros: i64,
}

/// A date with a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DateTime {
    /// The day.
    pub date: Date,
    /// Microseconds since midnight, 0 to 86 399 999 999.
    pub micros: u64,
}

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
/// `TO_DAYS('1970-01-01')`.
const EPOCH_DAY_NUMBER: i64 = 719_528;
/// `TO_DAYS('9999-12-31')`.
pub const MAX_DAY_NUMBER: i64 = 3_652_424;

/// Days of `month` (1–12) in `year`; 31 for the month 0 of a partial date.
#[must_use]
pub fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

impl Date {
    /// `0000-00-00`.
    pub const ZERO: Date = Date {
        year: 0,
        month: 0,
        day: 0,
    };

    /// Whether this is `0000-00-00`.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Whether month or day is zero: a date no calendar has.
    #[must_use]
    pub fn is_partial(self) -> bool {
        self.month == 0 || self.day == 0
    }

    /// Whether the day exists in its month; zero months and days pass.
    #[must_use]
    pub fn fits_calendar(self) -> bool {
        self.year <= 9999
            && self.month <= 12
            && (self.day == 0 || self.day <= days_in_month(self.year, self.month))
    }

    /// Days since year 0 as `TO_DAYS` counts them; 0 for zero dates.
    #[must_use]
    pub fn day_number(self) -> i64 {
        if self.is_zero() {
            return 0;
        }
        let month = i64::from(self.month.max(1));
        let day = i64::from(self.day.max(1));
        let year = i64::from(self.year) - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468 + EPOCH_DAY_NUMBER
    }

    /// The date of a day number; `None` outside years 0–9999.
    #[must_use]
    pub fn from_day_number(number: i64) -> Option<Self> {
        if !(0..=MAX_DAY_NUMBER).contains(&number) {
            return None;
        }
        let shifted = number - EPOCH_DAY_NUMBER + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Some(Self {
            year: u16::try_from(year).ok()?,
            month: u8::try_from(month).ok()?,
            day: u8::try_from(day).ok()?,
        })
    }

    /// `YYYYMMDD`.
    #[must_use]
    pub fn number(self) -> i64 {
        i64::from(self.year) * 10_000 + i64::from(self.month) * 100 + i64::from(self.day)
    }

    /// 0 for Monday to 6 for Sunday.
    #[must_use]
    pub fn weekday(self) -> i64 {
        (self.day_number() + 5).rem_euclid(7)
    }

    /// Day within its year, from 1.
    #[must_use]
    pub fn day_of_year(self) -> i64 {
        let first = Self {
            year: self.year,
            month: 1,
            day: 1,
        };
        self.day_number() - first.day_number() + 1
    }

    /// Order-preserving 23-bit form.
    #[must_use]
    pub fn packed(self) -> u32 {
        u32::from(self.year) << 9 | u32::from(self.month) << 5 | u32::from(self.day)
    }

    /// Back from [`Date::packed`]; `None` when out of range.
    #[must_use]
    pub fn from_packed(packed: u32) -> Option<Self> {
        let date = Self {
            year: u16::try_from(packed >> 9).ok()?,
            month: (packed >> 5 & 15) as u8,
            day: (packed & 31) as u8,
        };
        (date.year <= 9999 && date.month <= 12).then_some(date)
    }
}

impl Time {
    /// 838:59:59.
    pub const MAX: Time = Time {
        micros: (838 * 3600 + 59 * 60 + 59) * MICROS_PER_SECOND,
    };

    /// Within ±838:59:59, and whether it had to be cut.
    #[must_use]
    pub fn clamped(micros: i64) -> (Self, bool) {
        let cut = micros.clamp(-Self::MAX.micros, Self::MAX.micros);
        (Self { micros: cut }, cut != micros)
    }

    /// Hours, minutes, seconds, microseconds of the magnitude.
    #[must_use]
    pub fn parts(self) -> (i64, i64, i64, i64) {
        let micros = self.micros.abs();
        let seconds = micros / MICROS_PER_SECOND;
        (
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            micros % MICROS_PER_SECOND,
        )
    }

    /// `HHMMSS`, negative for negative times.
    #[must_use]
    pub fn number(self) -> i64 {
        let (hours, minutes, seconds, _) = self.parts();
        (hours * 10_000 + minutes * 100 + seconds) * self.micros.signum()
    }
}

impl DateTime {
    /// `0000-00-00 00:00:00`.
    pub const ZERO: DateTime = DateTime {
        date: Date::ZERO,
        micros: 0,
    };

    /// Midnight of a day.
    #[must_use]
    pub fn midnight(date: Date) -> Self {
        Self { date, micros: 0 }
    }

    /// The time of day.
    #[must_use]
    pub fn time(self) -> Time {
        Time {
            micros: i64::try_from(self.micros).unwrap_or(0),
        }
    }

    /// `YYYYMMDDHHMMSS`.
    #[must_use]
    pub fn number(self) -> i64 {
        self.date.number() * 1_000_000 + self.time().number()
    }

    /// Microseconds since day 0, for differences.
    #[must_use]
    pub fn linear_micros(self) -> i64 {
        self.date.day_number() * MICROS_PER_DAY + self.time().micros
    }

    /// Back from [`DateTime::linear_micros`]; `None` outside years 0–9999.
    #[must_use]
    pub fn from_linear_micros(micros: i64) -> Option<Self> {
        let date = Date::from_day_number(micros.div_euclid(MICROS_PER_DAY))?;
        let micros = u64::try_from(micros.rem_euclid(MICROS_PER_DAY)).ok()?;
        Some(Self { date, micros })
    }

    /// Order-preserving 60-bit form.
    #[must_use]
    pub fn packed(self) -> u64 {
        u64::from(self.date.packed()) << 37 | self.micros
    }

    /// Back from [`DateTime::packed`]; `None` when out of range.
    #[must_use]
    pub fn from_packed(packed: u64) -> Option<Self> {
        let date = Date::from_packed(u32::try_from(packed >> 37).ok()?)?;
        let micros = packed & ((1 << 37) - 1);
        (micros < MICROS_PER_DAY.unsigned_abs()).then_some(Self { date, micros })
    }
}

/// Rounds microseconds half away from zero to `fsp` digits of a second.
#[must_use]
pub fn round_micros(micros: i64, fsp: u8) -> i64 {
    let unit = 10i64.pow(6 - u32::from(fsp.min(6)));
    let half = unit / 2;
    if micros < 0 {
        -((-micros).saturating_add(half) / unit * unit)
    } else {
        micros.saturating_add(half) / unit * unit
    }
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

    #[test]
    fn day_numbers_go_there_and_back() {
        for number in (1..=MAX_DAY_NUMBER).step_by(97) {
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
