//! Times of many millions of calls in a few kilobytes.

/// Steps between a number and its double: values are kept to less than a percent.
const STEPS: u64 = 128;
/// Doublings from [`STEPS`] to the largest number.
const DOUBLINGS: u64 = 57;
/// Slots of a histogram.
#[allow(clippy::cast_possible_truncation)] // 7,424
const SLOTS: usize = ((DOUBLINGS + 1) * STEPS) as usize;

/// Counts of values, in steps that grow with them.
#[derive(Debug, Clone)]
pub struct Histogram {
    slots: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            slots: vec![0; SLOTS],
            count: 0,
            sum: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        if let Some(slot) = self.slots.get_mut(slot_of(value)) {
            *slot += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// Adds what another has.
    pub fn merge(&mut self, other: &Self) {
        for (slot, more) in self.slots.iter_mut().zip(&other.slots) {
            *slot += more;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// How many values it has.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest value, exactly.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 of none.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// The value that `share` of all, from 0 to 1, do not exceed; 0 of none.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )] // a rank is far below 2^53
    pub fn quantile(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (slot, count) in self.slots.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return last_of(slot).min(self.max);
            }
        }
        self.max
    }
}

/// The slot of a value.
fn slot_of(value: u64) -> usize {
    let doublings = u64::from(value.max(1).ilog2()).saturating_sub(u64::from(STEPS.ilog2()));
    // Below 2 × STEPS, and from STEPS on for all but the smallest values.
    let step = value >> doublings;
    usize::try_from(doublings * STEPS + step).unwrap_or(usize::MAX)
}

/// The largest value of a slot.
fn last_of(slot: usize) -> u64 {
    let slot = slot as u64;
    let doublings = (slot / STEPS).saturating_sub(1);
    let step = slot - doublings * STEPS;
    ((step + 1) << doublings).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_a_slot_that_ends_less_than_a_percent_above_it() {
        let mut last = None;
        let powers = (0..64).map(|bits| 1_u64 << bits);
        let values = powers.flat_map(|one| [one - 1, one, one + one / 3]);
        for value in (0..5_000)
            .chain(values.filter(|value| *value > 5_000))
            .chain([u64::MAX])
        {
            let slot = slot_of(value);
            assert!(slot < SLOTS, "{value}");
            assert!(last.is_none_or(|last| last <= slot), "{value}");
            last = Some(slot);
            let end = last_of(slot);
            assert!(end >= value && end - value <= value / 100, "{value}: {end}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut all = Histogram::default();
        assert_eq!((all.quantile(0.5), all.max()), (0, 0));
        for half in [1..=5_000_u64, 5_001..=10_000] {
            let mut one = Histogram::default();
            half.for_each(|value| one.add(value * 1_000));
            all.merge(&one);
        }
        for (share, value) in [(0.5, 5e6), (0.99, 9.9e6), (0.999, 9.99e6)] {
            #[allow(clippy::cast_precision_loss)]
            let found = all.quantile(share) as f64;
            assert!((found / value - 1.0).abs() < 0.01, "{share}: {found}");
        }
        assert_eq!(all.quantile(1.0), 10_000_000);
        assert!((all.mean() - 5_000_500.0).abs() < 1.0);
    }
}
