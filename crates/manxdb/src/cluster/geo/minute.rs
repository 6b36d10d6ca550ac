//! What was counted in the last minute, in slices that are forgotten one by one.

use std::collections::VecDeque;

use manxdb_core::Nanos;

/// How long a slice is.
const SLICE: Nanos = Nanos::from_secs(10);
/// Slices kept, the one that is being filled included: 50 to 60 s.
const SLICES: usize = 6;

/// Counts of the last minute.
#[derive(Debug)]
pub struct Minute<T> {
    /// The newest last.
    slices: VecDeque<T>,
    /// Which one the newest is, since the process began.
    number: u64,
}

impl<T: Default> Default for Minute<T> {
    fn default() -> Self {
        Self {
            slices: VecDeque::from([T::default()]),
            number: 0,
        }
    }
}

impl<T: Default> Minute<T> {
    /// Begins new slices and forgets old ones, as it has become `now`.
    pub fn pass(&mut self, now: Nanos) {
        let number = now.0 / SLICE.0;
        let new = number.saturating_sub(self.number).min(SLICES as u64);
        for _ in 0..new {
            if self.slices.len() == SLICES {
                self.slices.pop_front();
            }
            self.slices.push_back(T::default());
        }
        assert!(self.slices.len() <= SLICES, "no more than a minute is kept");
        self.number = self.number.max(number);
    }

    /// The slice of now.
    pub fn newest(&mut self) -> &mut T {
        let place = self.slices.len() - 1;
        &mut self.slices[place] // there is always one
    }

    /// All slices, the newest last.
    pub fn slices(&self) -> impl Iterator<Item = &T> {
        self.slices.iter()
    }

    /// For how long they have counted, at `now`.
    #[must_use]
    pub fn span(&self, now: Nanos) -> Nanos {
        let first = self.number.saturating_sub(self.slices.len() as u64 - 1);
        now.saturating_sub(Nanos(SLICE.0.saturating_mul(first)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_a_minute_is_forgotten_slice_by_slice() {
        let mut minute: Minute<u32> = Minute::default();
        for second in 0..65 {
            minute.pass(Nanos::from_secs(second));
            *minute.newest() += 1;
        }
        assert_eq!(
            minute.slices().copied().collect::<Vec<_>>(),
            [10, 10, 10, 10, 10, 5]
        );
        assert_eq!(minute.span(Nanos::from_secs(65)), Nanos::from_secs(55));
        minute.pass(Nanos::from_secs(1_000));
        assert_eq!(
            minute.slices().sum::<u32>(),
            0,
            "a process that stood still has nothing new"
        );
        assert_eq!(minute.slices().count(), SLICES);
    }

    #[test]
    fn at_the_start_there_is_less_than_a_minute() {
        let mut minute: Minute<u32> = Minute::default();
        minute.pass(Nanos::from_secs(3));
        *minute.newest() += 1;
        assert_eq!(
            (
                minute.slices().sum::<u32>(),
                minute.span(Nanos::from_secs(4))
            ),
            (1, Nanos::from_secs(4))
        );
    }
}
