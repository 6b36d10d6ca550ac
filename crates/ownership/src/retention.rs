//! `RETAIN FOR n DAY | MONTH | YEAR AFTER column`: rows that the law says are to be kept so long.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Periods longer than this are refused: years of four digits end somewhere.
pub const RETAINED_MAX: u32 = 36_500;

/// How long rows of a table are kept, also from FORGET.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// How many of the unit, 1 to [`RETAINED_MAX`].
    pub count: u32,
    /// Of what.
    pub unit: RetentionUnit,
    /// The column with the day on which the period begins.
    pub after: String,
}

/// The unit of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetentionUnit {
    /// Days of 24 hours.
    Day,
    /// Calendar months; the last day where a month is shorter.
    Month,
    /// Calendar years.
    Year,
}

impl RetentionUnit {
    /// All, with their words.
    pub const ALL: [(&'static str, Self); 3] = [
        ("DAY", Self::Day),
        ("MONTH", Self::Month),
        ("YEAR", Self::Year),
    ];

    /// The word in statements.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Day => "DAY",
            Self::Month => "MONTH",
            Self::Year => "YEAR",
        }
    }
}

/// As in a statement, the name unquoted.
impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = (self.count, self.unit.word());
        write!(f, "RETAIN FOR {count} {unit} AFTER {}", self.after)
    }
}
