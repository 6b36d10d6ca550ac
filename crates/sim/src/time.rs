//! Virtual time: what the simulator alone knows. Nodes see their own clocks.

use std::fmt;
use std::ops::Add;

use manxdb_core::Nanos;

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
        Self(micros * 1_000)
    }

    /// So many milliseconds after the run began.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// So many seconds after the run began.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// The time since `earlier`; zero when that was not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for SimTime {
    type Output = SimTime;
    fn add(self, span: Nanos) -> SimTime {
        SimTime(self.0.saturating_add(span.0))
    }
}

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
