//! Latencies counted in buckets that are narrow enough for a quantile to be read off, and whose bounds
//! are also those of the histogram that Prometheus gets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Upper bound of the first bucket, in microseconds; the bounds of a decade are 1.0, 1.1, … 9.9 times a
/// power of ten.
const FIRST_MICROS: u64 = 100;
/// Buckets of a decade.
const DECADE: u64 = 90;
/// The bucket of what took longer than 99 s.
const LAST: u16 = 540;

/// Bounds of the histogram for Prometheus, in microseconds, each of them the bound of a bucket here.
pub const BOUNDS_MICROS: [u64; 27] = [
    1_000, 2_500, 5_000, 7_500, 10_000, 12_000, 15_000, 20_000, 25_000, 35_000, 50_000, 75_000,
    100_000, 110_000, 120_000, 150_000, 200_000, 220_000, 250_000, 300_000, 400_000, 500_000,
    750_000, 1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// How long things took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// By number of bucket, without empty ones.
    buckets: BTreeMap<u16, u64>,
    sum_micros: u64,
    longest_micros: u64,
}

/// The bucket of a latency: the first one whose bound is not less.
fn bucket_of(micros: u64) -> u16 {
    let mut unit = FIRST_MICROS / 10;
    let mut decade = 0;
    while micros > unit * 99 {
        unit *= 10;
        decade += DECADE;
        if decade >= u64::from(LAST) {
            return LAST;
        }
    }
    let place = micros.div_ceil(unit).max(10) - 10;
    let bucket = u16::try_from(decade + place).unwrap_or(LAST);
    assert!(
        bound_of(bucket).is_some_and(|bound| micros <= bound),
        "a latency is not above the bound of its bucket"
    );
    bucket
}

/// The bound of a bucket, in microseconds; none of the last one.
fn bound_of(bucket: u16) -> Option<u64> {
    let (decade, place) = (u64::from(bucket) / DECADE, u64::from(bucket) % DECADE);
    let unit =
        (FIRST_MICROS / 10).saturating_mul(10_u64.saturating_pow(u32::try_from(decade).ok()?));
    (bucket < LAST).then(|| (place + 10) * unit)
}

fn sum<'c>(counts: impl Iterator<Item = &'c u64>) -> u64 {
    counts.fold(0_u64, |all, count| all.saturating_add(*count))
}

impl Latencies {
    /// Counts one.
    pub fn add(&mut self, micros: u64) {
        *self.buckets.entry(bucket_of(micros)).or_default() += 1;
        self.sum_micros = self.sum_micros.saturating_add(micros);
        self.longest_micros = self.longest_micros.max(micros);
    }

    /// Counts those of another one too; at most as many as can be counted, whatever another node says.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            let all = self.buckets.entry(*bucket).or_default();
            *all = all.saturating_add(*count);
        }
        self.sum_micros = self.sum_micros.saturating_add(other.sum_micros);
        self.longest_micros = self.longest_micros.max(other.longest_micros);
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        sum(self.buckets.values())
    }

    /// All together, in microseconds.
    #[must_use]
    pub fn sum_micros(&self) -> u64 {
        self.sum_micros
    }

    /// The longest, in microseconds; none without any.
    #[must_use]
    pub fn longest_micros(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.longest_micros)
    }

    /// How many took at most `micros`, one of [`BOUNDS_MICROS`].
    #[must_use]
    pub fn up_to(&self, micros: u64) -> u64 {
        let up_to = self.buckets.range(..=bucket_of(micros));
        sum(up_to.map(|(_, count)| count))
    }

    /// The latency that `percent` of all did not exceed, in microseconds: the bound of its bucket, which is
    /// at most a tenth above it. None without any.
    #[must_use]
    pub fn percentile_micros(&self, percent: u64) -> Option<u64> {
        let wanted = self.count().saturating_mul(percent).div_ceil(100).max(1);
        let mut counted = 0_u64;
        let bucket = self.buckets.iter().find(|(_, count)| {
            counted = counted.saturating_add(**count);
            counted >= wanted
        });
        let (bucket, _) = bucket?;
        let bound = bound_of(*bucket).unwrap_or(u64::MAX);
        Some(bound.min(self.longest_micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: impl IntoIterator<Item = u64>) -> Latencies {
        let mut all = Latencies::default();
        for micros in latencies {
            all.add(micros);
        }
        all
    }

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        for bucket in 1..LAST {
            let (below, bound) = (bound_of(bucket - 1).unwrap(), bound_of(bucket).unwrap());
            assert!(bound > below && bound * 10 <= below * 11, "{below} {bound}");
            assert_eq!((bucket_of(below + 1), bucket_of(bound)), (bucket, bucket));
        }
        assert_eq!((bucket_of(0), bucket_of(100), bucket_of(101)), (0, 0, 1));
        assert_eq!(
            (bound_of(LAST - 1), bucket_of(99_000_000)),
            (Some(99_000_000), LAST - 1)
        );
        assert_eq!((bucket_of(99_000_001), bucket_of(u64::MAX)), (LAST, LAST));
        assert!(
            BOUNDS_MICROS
                .into_iter()
                .all(|bound| bound_of(bucket_of(bound)) == Some(bound))
        );
    }

    #[test]
    fn a_percentile_is_at_most_a_tenth_above_the_latency() {
        let all = of((1..=1_000).map(|number| number * 1_003));
        for percent in [1, 50, 95, 99] {
            let (exact, told) = (
                percent * 10 * 1_003,
                all.percentile_micros(percent).unwrap(),
            );
            assert!(
                told >= exact && told * 10 <= exact * 11,
                "{percent}: {told} for {exact}"
            );
        }
        assert_eq!(
            all.percentile_micros(100),
            Some(1_003_000),
            "no more than the longest"
        );
        assert_eq!(Latencies::default().percentile_micros(99), None);
        assert_eq!(of([u64::MAX]).percentile_micros(50), Some(u64::MAX));
    }

    #[test]
    fn counts_of_other_nodes_end_at_the_largest_number() {
        let other = Latencies {
            buckets: BTreeMap::from([(7, u64::MAX), (8, u64::MAX)]),
            sum_micros: 1,
            longest_micros: 9,
        };
        let mut all = other.clone();
        all.merge(&other);
        assert_eq!((all.count(), all.up_to(10_000_000)), (u64::MAX, u64::MAX));
        assert_eq!(all.percentile_micros(100), Some(9));
    }

    #[test]
    fn what_is_merged_is_what_both_counted() {
        let mut one = of([900, 5_000, 5_001]);
        let other = of([5_000, 2_000_000]);
        one.merge(&other);
        assert_eq!(one, of([900, 5_000, 5_001, 5_000, 2_000_000]));
        assert_eq!(
            (one.count(), one.sum_micros(), one.longest_micros()),
            (5, 2_015_901, Some(2_000_000))
        );
        assert_eq!(
            (one.up_to(1_000), one.up_to(5_000), one.up_to(10_000_000)),
            (1, 3, 5)
        );
    }
}
