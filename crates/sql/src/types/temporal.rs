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
