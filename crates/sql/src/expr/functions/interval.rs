//! INTERVAL units and amounts.

use bigdecimal::ToPrimitive;

use crate::types::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, Value, days_in_month};

/// A unit of INTERVAL and EXTRACT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    pub name: &'static str,
    /// Microseconds of each field, smallest last; months count as `Months`.
    fields: &'static [Field],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Months(i64),
    Micros(i64),
}

use Field::{Micros, Months};

const MICRO: Field = Micros(1);
const SECOND: Field = Micros(MICROS_PER_SECOND);
const MINUTE: Field = Micros(60 * MICROS_PER_SECOND);
const HOUR: Field = Micros(3600 * MICROS_PER_SECOND);
const DAY: Field = Micros(MICROS_PER_DAY);
const WEEK: Field = Micros(7 * MICROS_PER_DAY);

const UNITS: [Unit; 20] = [
    Unit {
        name: "MICROSECOND",
        fields: &[MICRO],
    },
    Unit {
        name: "SECOND",
        fields: &[SECOND],
    },
    Unit {
        name: "MINUTE",
        fields: &[MINUTE],
    },
    Unit {
        name: "HOUR",
        fields: &[HOUR],
    },
    Unit {
        name: "DAY",
        fields: &[DAY],
    },
    Unit {
        name: "WEEK",
        fields: &[WEEK],
    },
    Unit {
        name: "MONTH",
        fields: &[Months(1)],
    },
    Unit {
        name: "QUARTER",
        fields: &[Months(3)],
    },
    Unit {
        name: "YEAR",
        fields: &[Months(12)],
    },
    Unit {
        name: "SECOND_MICROSECOND",
        fields: &[SECOND, MICRO],
    },
    Unit {
        name: "MINUTE_MICROSECOND",
        fields: &[MINUTE, SECOND, MICRO],
    },
    Unit {
        name: "MINUTE_SECOND",
        fields: &[MINUTE, SECOND],
    },
    Unit {
        name: "HOUR_MICROSECOND",
        fields: &[HOUR, MINUTE, SECOND, MICRO],
    },
    Unit {
        name: "HOUR_SECOND",
        fields: &[HOUR, MINUTE, SECOND],
    },
    Unit {
        name: "HOUR_MINUTE",
        fields: &[HOUR, MINUTE],
    },
    Unit {
        name: "DAY_MICROSECOND",
        fields: &[DAY, HOUR, MINUTE, SECOND, MICRO],
    },
    Unit {
        name: "DAY_SECOND",
        fields: &[DAY, HOUR, MINUTE, SECOND],
    },
    Unit {
        name: "DAY_MINUTE",
        fields: &[DAY, HOUR, MINUTE],
    },
    Unit {
        name: "DAY_HOUR",
        fields: &[DAY, HOUR],
    },
    Unit {
        name: "YEAR_MONTH",
        fields: &[Months(12), Months(1)],
    },
];

/// Whether `name` is a unit of INTERVAL, in any case.
#[must_use]
pub fn is_interval_unit(name: &str) -> bool {
    unit(name).is_some()
}

pub(super) fn unit(name: &str) -> Option<&'static Unit> {
    let name = name.trim().to_ascii_uppercase();
    let name = name.strip_prefix("SQL_TSI_").unwrap_or(&name);
    UNITS.iter().find(|unit| unit.name == name)
}

impl Unit {
    /// Adding this unit to a DATE leaves a DATE.
    pub fn keeps_date(self) -> bool {
        matches!(
            self.name,
            "DAY" | "WEEK" | "MONTH" | "QUARTER" | "YEAR" | "YEAR_MONTH"
        )
    }

    /// Results have microseconds.
    pub fn has_micros(self) -> bool {
        self.name.ends_with("MICROSECOND")
    }
}

/// An amount of time: months and microseconds, which do not convert into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amount {
    pub months: i64,
    pub micros: i64,
}

impl Amount {
    pub fn negated(self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }
}

/// Reads `value` as an amount of `unit`; `None` for NULL and overflow.
pub(super) fn amount(value: &Value, unit: &Unit) -> Option<Amount> {
    if value.is_null() {
        return None;
    }
    if let [field] = unit.fields {
        return match field {
            Months(months) => Some(Amount {
                months: value.to_i64()?.checked_mul(*months)?,
                micros: 0,
            }),
            Micros(micros) if unit.name == "SECOND" => {
                let seconds = value.to_decimal()?;
                let exact = seconds * crate::types::Decimal::from(*micros);
                Some(Amount {
                    months: 0,
                    micros: exact
                        .with_scale_round(0, bigdecimal::RoundingMode::HalfUp)
                        .to_i64()?,
                })
            }
            Micros(micros) => Some(Amount {
                months: 0,
                micros: value.to_i64()?.checked_mul(*micros)?,
            }),
        };
    }
    compound(&value.to_text()?, unit)
}

/// `'1 2:3:4.5'` for `DAY_MICROSECOND`: numbers between anything else, the last ones given.
fn compound(text: &str, unit: &Unit) -> Option<Amount> {
    let trimmed = text.trim();
    let negative = trimmed.starts_with('-');
    let mut groups: Vec<&str> = trimmed
        .split(|c: char| !c.is_ascii_digit())
        .filter(|group| !group.is_empty())
        .collect();
    let fields = unit.fields;
    groups.truncate(fields.len());
    let given = &fields[fields.len() - groups.len()..];
    let mut total = Amount {
        months: 0,
        micros: 0,
    };
    for (group, field) in groups.iter().zip(given) {
        match field {
            Months(months) => {
                let count: i64 = group.parse().ok()?;
                total.months = total.months.checked_add(count.checked_mul(*months)?)?;
            }
            Micros(1) => {
                // Digits after a second are a fraction: `.5` is 500000 microseconds.
                let padded: String = group.chars().chain("000000".chars()).take(6).collect();
                total.micros = total.micros.checked_add(padded.parse().ok()?)?;
            }
            Micros(micros) => {
                let count: i64 = group.parse().ok()?;
                total.micros = total.micros.checked_add(count.checked_mul(*micros)?)?;
            }
        }
    }
    if negative {
        total.negated()
    } else {
        Some(total)
    }
}

/// `value + amount`; the day is cut to the month's length. `None` outside years 0–9999.
pub(super) fn add(value: DateTime, amount: Amount) -> Option<DateTime> {
    let mut date = value.date;
    if amount.months != 0 {
        let months = i64::from(date.year) * 12 + i64::from(date.month.max(1)) - 1;
        let total = months.checked_add(amount.months)?;
        let year = u16::try_from(total.div_euclid(12))
            .ok()
            .filter(|year| *year <= 9999)?;
        let month = u8::try_from(total.rem_euclid(12) + 1).ok()?;
        date = Date {
            year,
            month,
            day: date.day.min(days_in_month(year, month)),
        };
    }
    let moved = DateTime {
        date,
        micros: value.micros,
    };
    if amount.micros == 0 {
        return Some(moved);
    }
    let linear = moved.linear_micros().checked_add(amount.micros)?;
    DateTime::from_linear_micros(linear)
}
