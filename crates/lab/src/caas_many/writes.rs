//! What a database is asked to write, and when.

use manxdb_core::{Nanos, Random};
use manxdb_sim::SimTime;

/// How a database is written to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Habit {
    /// Bursts that arrive at random, whether those before are written or not.
    Bursts {
        /// Mean time between two arrivals, in seconds.
        gap: f64,
        /// Mean size in bytes.
        bytes: f64,
    },
    /// As much as there is time for.
    Steady,
}

/// Writes of one database: bytes that have arrived and are not written yet.
#[derive(Debug)]
pub(super) struct Writes {
    habit: Habit,
    /// Bytes a second while it writes.
    speed: u64,
    /// Nothing arrives from then on.
    until: SimTime,
    random: Random,
    /// Arrived and not written.
    left: u64,
}

impl Writes {
    pub fn new(habit: Habit, speed: u64, until: SimTime, random: Random) -> Self {
        Self {
            habit,
            speed: speed.max(1),
            until,
            random,
            left: 0,
        }
    }

    /// When the next burst arrives after `now`, if any does.
    pub fn next_arrival(&mut self, now: SimTime) -> Option<SimTime> {
        let Habit::Bursts { gap, .. } = self.habit else {
            return None;
        };
        let at = now + seconds(self.random.exponential(gap));
        (at < self.until).then_some(at)
    }

    /// A burst arrives.
    pub fn arrive(&mut self) {
        if let Habit::Bursts { bytes, .. } = self.habit {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // far below 2^53
            let bytes = self.random.exponential(bytes) as u64;
            self.left += bytes.max(1);
        }
    }

    /// What can be written now into so much room, and when that is done.
    pub fn begin(&self, now: SimTime, room: u64) -> Option<(u64, SimTime)> {
        let left = match self.habit {
            Habit::Bursts { .. } => self.left,
            Habit::Steady if now < self.until => u64::MAX,
            Habit::Steady => 0,
        };
        let bytes = left.min(room);
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.speed);
        let nanos = Nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2));
        (bytes > 0).then_some((bytes, now + nanos))
    }

    /// So much is written.
    pub fn wrote(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Whether nothing arrives any more.
    pub fn are_over(&self, now: SimTime) -> bool {
        now >= self.until
    }

    /// Whether something waits to be written.
    pub fn want(&self, now: SimTime) -> bool {
        self.begin(now, 1).is_some()
    }
}

fn seconds(seconds: f64) -> Nanos {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float saturates
    Nanos((seconds * 1e9) as u64)
}
