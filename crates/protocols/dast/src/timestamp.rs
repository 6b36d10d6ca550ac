//! Timestamps: the places of transactions in the one order of all regions.

use serde::{Deserialize, Serialize};

/// A place in the order (DAST §4.2): compared by time, then by stretch, then by site.
///
/// `stretch` is zero while a clock runs freely. Below a floor it holds the microseconds that went
/// on passing, so that all clocks that are held back by one floor keep advancing together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp {
    /// Microseconds since the epoch.
    pub micros: u64,
    /// Microseconds, or a count, inside that microsecond.
    pub stretch: u64,
    /// Who gave it: makes timestamps of different sites different.
    pub site: u32,
}

impl Timestamp {
    /// Before every transaction.
    pub const ZERO: Timestamp = Timestamp {
        micros: 0,
        stretch: 0,
        site: 0,
    };

    /// Behind every transaction.
    pub const MAX: Timestamp = Timestamp {
        micros: u64::MAX,
        stretch: u64::MAX,
        site: u32::MAX,
    };

    /// A place of a site at a time.
    #[must_use]
    pub fn at(micros: u64, site: u32) -> Self {
        Self {
            micros,
            stretch: 0,
            site,
        }
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, formatter)
    }
}

impl std::fmt::Debug for Timestamp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.micros)?;
        if self.stretch > 0 {
            write!(formatter, "+{}", self.stretch)?;
        }
        write!(formatter, "@{}", self.site)
    }
}
