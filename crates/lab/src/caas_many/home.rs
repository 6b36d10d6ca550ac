//! A database's own machine: compactions at home share what it has to spare.

use manxdb_core::Nanos;
use manxdb_sim::SimTime;

/// Compactions at home, each getting an equal share of one speed.
#[derive(Debug)]
pub(super) struct Home {
    /// Bytes of inputs a second, all together.
    speed: u64,
    /// Jobs with the bytes they have left.
    jobs: Vec<(usize, u64)>,
    since: SimTime,
    /// Counts changes: what was foreseen before the last one will not happen.
    generation: u32,
}

impl Home {
    pub fn new(speed: u64) -> Self {
        Self {
            speed: speed.max(1),
            jobs: Vec::new(),
            since: SimTime::ZERO,
            generation: 0,
        }
    }

    /// Begins a job.
    pub fn add(&mut self, now: SimTime, job: usize, bytes: u64) {
        self.advance(now);
        self.jobs.push((job, bytes));
        self.generation = self.generation.wrapping_add(1);
    }

    /// When the next job ends if none is added, and the generation that this holds for.
    pub fn next(&self) -> Option<(SimTime, u32)> {
        let least = self.jobs.iter().map(|(_, left)| *left).min()?;
        let nanos = u128::from(least) * self.jobs.len() as u128 * 1_000_000_000;
        let nanos = nanos.div_ceil(u128::from(self.speed));
        let nanos = Nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 2));
        Some((self.since + nanos, self.generation))
    }

    /// The job that ends now, as foreseen in a generation.
    pub fn end(&mut self, now: SimTime, generation: u32) -> Option<usize> {
        if generation != self.generation {
            return None;
        }
        self.advance(now);
        let least = self.jobs.iter().enumerate().min_by_key(|(_, job)| job.1)?.0;
        self.generation = self.generation.wrapping_add(1);
        Some(self.jobs.remove(least).0)
    }

    fn advance(&mut self, now: SimTime) {
        let passed = u128::from(now.since(self.since).0) * u128::from(self.speed);
        let each = passed / 1_000_000_000 / (self.jobs.len() as u128).max(1);
        let each = u64::try_from(each).unwrap_or(u64::MAX);
        for (_, left) in &mut self.jobs {
            *left = left.saturating_sub(each);
        }
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_share_the_machine_and_end_in_the_order_of_what_they_have_left() {
        let mut home = Home::new(100);
        home.add(SimTime::ZERO, 1, 300);
        let alone = home.next().unwrap();
        assert_eq!(alone.0, SimTime::from_secs(3));
        home.add(SimTime::from_secs(1), 2, 50);
        assert_eq!(home.end(alone.0, alone.1), None, "foreseen too early");
        let (at, generation) = home.next().unwrap();
        assert_eq!(at, SimTime::from_secs(2));
        assert_eq!(home.end(at, generation), Some(2));
        let (at, generation) = home.next().unwrap();
        assert_eq!(at, SimTime::from_millis(3_500));
        assert_eq!(home.end(at, generation), Some(1));
        assert_eq!(home.next(), None);
    }
}
