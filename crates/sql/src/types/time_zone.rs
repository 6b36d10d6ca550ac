//! Session time zones, and TIMESTAMPs between UTC and a session.

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use super::temporal::{Date, DateTime, MICROS_PER_DAY};
use crate::error::{SqlError, SqlResult};

/// Day number of 1970-01-01.
const EPOCH_DAY: i64 = 719_528;

/// A time zone by MySQL's spellings: `SYSTEM`, `+05:30`, `Europe/Berlin`, `UTC`.
///
/// # Errors
/// 1298 when there is no such zone.
pub fn parse_time_zone(name: &str, system: &str) -> SqlResult<TimeZone> {
    if name.eq_ignore_ascii_case("SYSTEM") {
        return Ok(TimeZone::get(system).unwrap_or(TimeZone::UTC));
    }
    if name.eq_ignore_ascii_case("UTC") {
        return Ok(TimeZone::UTC);
    }
    if let Some(minutes) = parse_offset(name) {
        return Offset::from_seconds(minutes * 60)
            .map(TimeZone::fixed)
            .map_err(|_| unknown(name));
    }
    TimeZone::get(name).map_err(|_| unknown(name))
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(
        1298,
        "HY000",
        format!("Unknown or incorrect time zone: '{name}'"),
    )
}

/// Minutes of `+HH:MM`, from −13:59 to +14:00.
fn parse_offset(name: &str) -> Option<i32> {
    let (sign, rest) = match name.as_bytes().first()? {
        b'+' => (1, &name[1..]),
        b'-' => (-1, &name[1..]),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    if hours.is_empty() || hours.len() > 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let total = sign * (i32::from(hours) * 60 + i32::from(minutes));
    (minutes < 60 && (-839..=840).contains(&total)).then_some(total)
}

/// Microseconds since 1970 UTC of a local time; of two the earlier, in a gap the end of it.
/// `None` for zero dates and beyond the calendar.
#[must_use]
pub fn to_utc_micros(value: DateTime, zone: &TimeZone) -> Option<i64> {
    if value.date.is_partial() {
        return None;
    }
    let local = (value.date.day_number() - EPOCH_DAY) * MICROS_PER_DAY + value.time().micros;
    if *zone == TimeZone::UTC {
        return Some(local);
    }
    if let Ok(offset) = zone.to_fixed_offset() {
        return Some(local - i64::from(offset.seconds()) * 1_000_000);
    }
    let time = value.time();
    let (hour, minute, second, micros) = time.parts();
    let civil = jiff::civil::DateTime::new(
        i16::try_from(value.date.year).ok()?,
        i8::try_from(value.date.month).ok()?,
        i8::try_from(value.date.day).ok()?,
        i8::try_from(hour).ok()?,
        i8::try_from(minute).ok()?,
        i8::try_from(second).ok()?,
        i32::try_from(micros * 1000).ok()?,
    )
    .ok()?;
    let ambiguous = zone.to_ambiguous_timestamp(civil);
    let instant = if matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. }) {
        let before = ambiguous.earlier().ok()?;
        zone.following(before).next()?.timestamp()
    } else {
        ambiguous.compatible().ok()?
    };
    Some(instant.as_microsecond())
}

/// The local time of an instant in microseconds since 1970 UTC; zero past the calendar.
#[must_use]
pub fn from_utc_micros(micros: i64, zone: &TimeZone) -> DateTime {
    let offset = if *zone == TimeZone::UTC {
        0
    } else {
        match Timestamp::from_microsecond(micros) {
            Ok(instant) => i64::from(zone.to_offset(instant).seconds()) * 1_000_000,
            Err(_) => 0,
        }
    };
    micros
        .checked_add(EPOCH_DAY * MICROS_PER_DAY + offset)
        .and_then(DateTime::from_linear_micros)
        .unwrap_or(DateTime::ZERO)
}

/// The date of an instant in a zone.
#[must_use]
pub fn today(micros: i64, zone: &TimeZone) -> Date {
    from_utc_micros(micros, zone).date
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_past_the_calendar_is_zero() {
        for micros in [i64::MIN, i64::MAX, i64::MAX - EPOCH_DAY * MICROS_PER_DAY] {
            for zone in [TimeZone::UTC, TimeZone::get("Asia/Tokyo").unwrap()] {
                assert_eq!(from_utc_micros(micros, &zone), DateTime::ZERO);
            }
        }
    }

    #[test]
    fn zones_are_known_by_name_and_offset() {
        for name in [
            "SYSTEM",
            "+00:00",
            "-13:59",
            "+14:00",
            "Europe/Berlin",
            "utc",
        ] {
            assert!(parse_time_zone(name, "UTC").is_ok(), "{name}");
        }
        for name in ["", "+15:00", "Europe/Atlantis", "+1", "00:00"] {
            let error = parse_time_zone(name, "UTC").unwrap_err();
            assert_eq!(error.code, 1298, "{name}");
        }
    }

    #[test]
    fn local_times_go_to_utc_and_back() {
        let berlin = parse_time_zone("Europe/Berlin", "UTC").unwrap();
        let summer = DateTime {
            date: Date {
                year: 2024,
                month: 7,
                day: 1,
            },
            micros: 12 * 3_600_000_000,
        };
        let micros = to_utc_micros(summer, &berlin).unwrap();
        assert_eq!(
            from_utc_micros(micros, &TimeZone::UTC).micros,
            10 * 3_600_000_000
        );
        assert_eq!(from_utc_micros(micros, &berlin), summer);
        assert_eq!(to_utc_micros(DateTime::ZERO, &berlin), None);
        // Half past two did not exist that night; three o'clock came after two.
        let gap = DateTime {
            date: Date {
                month: 3,
                day: 31,
                ..summer.date
            },
            micros: 9_000_000_000,
        };
        let after = from_utc_micros(to_utc_micros(gap, &berlin).unwrap(), &berlin);
        assert_eq!((after.date, after.micros), (gap.date, 3 * 3_600_000_000));
    }
}
