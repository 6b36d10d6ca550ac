//! A node's wall clock, which may be wrong.

use manxdb_core::{LocalTime, Nanos};

use crate::time::SimTime;

/// What a right clock shows when a run begins: 2001-09-09 01:46:40 UTC.
pub const EPOCH: LocalTime = LocalTime(1_000_000_000_000_000_000);

/// A wall clock with an offset, a drift and steps; it can stand still.
///
/// Timers are not bound to it: they run on the same crystal, and so drift with it, but neither
/// steps nor a frozen clock touch them.
#[derive(Debug, Clone)]
pub struct Clock {
    /// What it showed at `since`.
    shown: LocalTime,
    since: SimTime,
    /// Nanoseconds it gains in a million; negative when it is slow.
    drift_ppm: i64,
    /// Of these, what it has had from the beginning.
    own_drift_ppm: i64,
    frozen: bool,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl Clock {
    /// A clock that is `offset` nanoseconds fast when the run begins.
    pub fn new(offset: i64, drift_ppm: i64) -> Self {
        Self {
            shown: LocalTime(EPOCH.0.saturating_add_signed(offset)),
            since: SimTime::ZERO,
            drift_ppm,
            own_drift_ppm: drift_ppm,
            frozen: false,
        }
    }

    /// What it shows.
    pub fn read(&self, at: SimTime) -> LocalTime {
        if self.frozen {
            return self.shown;
        }
        self.shown + self.own_span(at.since(self.since))
    }

    /// What this clock counts while `span` really passes.
    fn own_span(&self, span: Nanos) -> Nanos {
        if self.drift_ppm == 0 {
            return span;
        }
        let rate = u128::from(1_000_000_u64.saturating_add_signed(self.drift_ppm));
        Nanos(u64::try_from(u128::from(span.0) * rate / 1_000_000).unwrap_or(u64::MAX))
    }

    /// How long it really takes until this node believes that `span` has passed.
    pub fn real_span(&self, span: Nanos) -> Nanos {
        if self.drift_ppm == 0 {
            return span;
        }
        let rate = u128::from(1_000_000_u64.saturating_add_signed(self.drift_ppm)).max(1);
        Nanos(u64::try_from(u128::from(span.0) * 1_000_000 / rate).unwrap_or(u64::MAX))
    }

    /// Sets it forward by so many nanoseconds, or back.
    pub fn step(&mut self, at: SimTime, by: i64) {
        self.rebase(at);
        self.shown = LocalTime(self.shown.0.saturating_add_signed(by));
    }

    /// Lets it drift this much more than it did from the beginning, from now on.
    pub fn set_extra_drift(&mut self, at: SimTime, ppm: i64) {
        self.rebase(at);
        self.drift_ppm = self.own_drift_ppm.saturating_add(ppm);
    }

    /// Stops it, or lets it run on from where it stopped.
    pub fn set_frozen(&mut self, at: SimTime, frozen: bool) {
        self.rebase(at);
        self.frozen = frozen;
    }

    fn rebase(&mut self, at: SimTime) {
        self.shown = self.read(at);
        self.since = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ahead(clock: &Clock, at: SimTime) -> i128 {
        i128::from(clock.read(at).0) - i128::from(EPOCH.0)
    }

    #[test]
    fn an_offset_and_a_drift_add_up() {
        let clock = Clock::new(-5_000_000, 200);
        assert_eq!(ahead(&clock, SimTime::ZERO), -5_000_000);
        assert_eq!(
            ahead(&clock, SimTime::from_secs(10)),
            10_000_000_000 + 2_000_000 - 5_000_000
        );
    }

    #[test]
    fn a_clock_can_go_back_stand_still_and_go_on() {
        let mut clock = Clock::default();
        clock.step(SimTime::from_secs(2), -3_000_000_000);
        assert_eq!(ahead(&clock, SimTime::from_secs(2)), -1_000_000_000);
        clock.set_frozen(SimTime::from_secs(3), true);
        assert_eq!(ahead(&clock, SimTime::from_secs(9)), 0);
        clock.set_frozen(SimTime::from_secs(9), false);
        assert_eq!(ahead(&clock, SimTime::from_secs(10)), 1_000_000_000);
    }

    #[test]
    fn a_frozen_clock_can_still_be_set() {
        let mut clock = Clock::default();
        clock.set_frozen(SimTime::from_secs(1), true);
        clock.step(SimTime::from_secs(2), 500);
        assert_eq!(ahead(&clock, SimTime::from_secs(3)), 1_000_000_500);
    }

    #[test]
    fn a_fast_crystal_ends_a_timer_early() {
        let mut clock = Clock::default();
        assert_eq!(clock.real_span(Nanos(1_000)), Nanos(1_000));
        clock.set_extra_drift(SimTime::ZERO, 250_000);
        assert_eq!(clock.real_span(Nanos(1_000)), Nanos(800));
        clock.set_extra_drift(SimTime::ZERO, -500_000);
        assert_eq!(clock.real_span(Nanos(1_000)), Nanos(2_000));
    }
}
