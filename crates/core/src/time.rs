//! Time as an input: a node's own wall clock, which may be wrong, and spans of time.

use std::ops::{Add, AddAssign, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A span of time in nanoseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Nanos(pub u64);

impl Nanos {
    /// No time.
    pub const ZERO: Nanos = Nanos(0);
    /// Longer than anything.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// A span of whole microseconds.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// Whole microseconds, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Milliseconds, for people.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // for display: spans of a run are far below 2^53 ns
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The difference, or nothing when `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        self.saturating_sub(other)
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, times: u64) -> Nanos {
        Nanos(self.0.saturating_mul(times))
    }
}

/// What points in time have in common, on whatever clock: a span lies between two of them, and
/// leads from one to another. `$point` is a struct of nanoseconds since that clock's beginning.
#[macro_export]
macro_rules! point_in_time {
    ($point:ident) => {
        impl $point {
            /// The time since `earlier`; zero when that was not earlier.
            #[must_use]
            pub const fn since(self, earlier: Self) -> $crate::Nanos {
                $crate::Nanos(self.0).saturating_sub($crate::Nanos(earlier.0))
            }
        }

        impl ::std::ops::Add<$crate::Nanos> for $point {
            type Output = $point;
            fn add(self, span: $crate::Nanos) -> $point {
                $point(($crate::Nanos(self.0) + span).0)
            }
        }
    };
}

/// What a node's wall clock shows, in nanoseconds since an epoch that all nodes share.
///
/// Clocks of different nodes differ, drift and step, backwards too: no correctness may rest on
/// them. The difference of two readings of one clock is a span only while it was not set.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct LocalTime(pub u64);

impl LocalTime {
    /// Whole microseconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        Nanos(self.0).as_micros()
    }
}

point_in_time!(LocalTime);
