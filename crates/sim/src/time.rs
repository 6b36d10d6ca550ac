//! Virtual time: what the simulator alone knows. Nodes see their own clocks.

use std::fmt;

use manxdb_core::{Nanos, point_in_time};

/// Nanoseconds since the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimTime(pub u64);

impl SimTime {
    /// When the run began.
    pub const ZERO: SimTime = SimTime(0);
    /// After everything.
    pub const MAX: SimTime = SimTime(u64::MAX);

    /// So many microseconds after the run began.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(Nanos::from_micros(micros).0)
    }

    /// So many milliseconds after the run began.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(Nanos::from_millis(millis).0)
    }

    /// So many seconds after the run began.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(Nanos::from_secs(secs).0)
    }
}

point_in_time!(SimTime);

impl fmt::Display for SimTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (secs, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        write!(formatter, "{secs}.{nanos:09}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_and_print() {
        let time = SimTime::from_millis(1_500) + Nanos(7);
        assert_eq!(time.to_string(), "1.500000007s");
        assert_eq!(time.since(SimTime::from_secs(1)), Nanos(500_000_007));
        assert_eq!(SimTime::ZERO.since(time), Nanos::ZERO);
    }
}
