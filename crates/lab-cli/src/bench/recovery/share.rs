//! How many orders a client may place: there is room for so many, however fast a machine is.

use std::time::Duration;

use crate::cli::{Loss, RecoveryShape, Victim};

/// Who has this part of its orders left slows down,
const SLOW_PART: u64 = 8;
/// and would place all that is left in this time, if it did not go on slowing down.
const SLOW: Duration = Duration::from_secs(8);

/// The orders of one client.
#[derive(Debug)]
pub struct Share {
    all: u64,
    left: u64,
    /// Recovery takes as long as it takes, and those who live on are to be seen committing meanwhile:
    /// whoever has an eighth of its orders left slows down, so that some are always left.
    lasts: bool,
}

impl Share {
    /// A client's, when nothing is placed yet.
    pub fn of(shape: &RecoveryShape) -> Self {
        let all = (shape.orders / u64::from(shape.clients)).max(1);
        Self {
            all,
            left: all,
            lasts: shape.kill_client != Victim::None || shape.kill_server != Loss::None,
        }
    }

    /// How many orders it is.
    pub fn all(&self) -> u64 {
        self.all
    }

    /// Takes one order away, and says how long its client rests behind it; none: it was the last one.
    pub fn take(&mut self) -> Option<Duration> {
        self.left = self.left.saturating_sub(1);
        if !self.lasts {
            return (self.left > 0).then_some(Duration::ZERO);
        }
        let is_slow = self.left < self.all / SLOW_PART;
        let left = u32::try_from(self.left).unwrap_or(u32::MAX);
        Some(SLOW / left.max(1) * u32::from(is_slow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(all: u64, lasts: bool) -> Share {
        let left = all;
        Share { all, left, lasts }
    }

    #[test]
    fn without_kills_all_orders_are_placed_without_a_rest() {
        let mut share = share(5, false);
        let rests: Vec<_> = (0..5).map(|_| share.take()).collect();
        let at_once = Some(Duration::ZERO);
        assert_eq!(rests, [at_once, at_once, at_once, at_once, None]);
        assert_eq!(share.take(), None);
    }

    #[test]
    fn with_kills_orders_last_longer_than_any_recovery() {
        let mut share = share(6_000, true);
        let rests: Vec<_> = (0..6_000).filter_map(|_| share.take()).collect();
        assert_eq!(rests.len(), 6_000);
        let (at_once, slow) = rests.split_at(5_250);
        assert!(at_once.iter().all(Duration::is_zero));
        assert!(slow.iter().sum::<Duration>() > Duration::from_secs(50));
        assert!(slow.is_sorted());
    }
}
