//! A node's wall clock, followed forward only.

use manxdb_core::{LocalTime, Nanos};

/// What is held back is let go of at this share of the time that passes: one part in so many.
const SLEW: u64 = 10;

/// A wall clock that may be set back while everything that counts on it goes on: it is followed
/// by running slower until it is where it says to be.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wall {
    shown: LocalTime,
    held: Nanos,
}

impl Wall {
    /// What to take for the time when the clock shows `now`. To be asked first in every step.
    pub fn see(&mut self, now: LocalTime) -> LocalTime {
        self.held += self.shown.since(now);
        self.shown = now;
        now + self.held
    }

    /// So much time has passed by a timer, which nobody can set.
    pub fn pass_time(&mut self, span: Nanos) {
        self.held = self.held.saturating_sub(Nanos(span.0 / SLEW));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_back_is_followed_by_running_slower() {
        let mut wall = Wall::default();
        let mut see = |shown: u64, passed: u64| {
            wall.pass_time(Nanos(passed));
            wall.see(LocalTime(shown)).0
        };
        assert_eq!(see(10_000, 0), 10_000);
        assert_eq!(see(9_000, 0), 10_000);
        assert_eq!(see(10_000, 1_000), 10_900);
        assert_eq!(see(30_000, 20_000), 30_000);
    }
}
