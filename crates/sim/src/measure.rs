//! Latencies and rates, exact: virtual time has no noise that sampling could hide.

use std::fmt;

use manxdb_core::Nanos;

use crate::time::SimTime;

/// All latencies of one kind.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    samples: Vec<Nanos>,
    sorted: bool,
}

/// What people ask about latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// How many there are.
    pub count: usize,
    /// Their sum through their count, rounded down.
    pub mean: Nanos,
    /// Half are not longer.
    pub p50: Nanos,
    /// 90 of 100 are not longer.
    pub p90: Nanos,
    /// 95 of 100 are not longer.
    pub p95: Nanos,
    /// 99 of 100 are not longer.
    pub p99: Nanos,
    /// None is longer.
    pub max: Nanos,
}

impl Latencies {
    /// Takes one in.
    pub fn add(&mut self, latency: Nanos) {
        self.samples.push(latency);
        self.sorted = false;
    }

    /// Takes in all of another collection.
    pub fn extend(&mut self, other: &Latencies) {
        self.samples.extend_from_slice(&other.samples);
        self.sorted = false;
    }

    /// All of them, in no order that matters.
    pub fn all(&self) -> &[Nanos] {
        &self.samples
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The shortest latency that `percent` of 100 are not longer than (the nearest rank); zero
    /// when there are none.
    pub fn percentile(&mut self, percent: u32) -> Nanos {
        if !self.sorted {
            self.samples.sort_unstable();
            self.sorted = true;
        }
        let percent = percent.min(100) as usize;
        let rank = (self.samples.len() * percent).div_ceil(100).max(1);
        self.samples.get(rank - 1).copied().unwrap_or_default()
    }

    /// The numbers of a table's row.
    pub fn summary(&mut self) -> Summary {
        let sum: u128 = self.samples.iter().map(|sample| u128::from(sample.0)).sum();
        let mean = sum / (self.samples.len() as u128).max(1);
        Summary {
            count: self.samples.len(),
            mean: Nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            p50: self.percentile(50),
            p90: self.percentile(90),
            p95: self.percentile(95),
            p99: self.percentile(99),
            max: self.percentile(100),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:>8}", self.count)?;
        let spans = [self.mean, self.p50, self.p90, self.p95, self.p99, self.max];
        for (name, span) in ["mean", "p50", "p90", "p95", "p99", "max"]
            .iter()
            .zip(spans)
        {
            write!(formatter, "  {name} {:>8.3}", span.as_millis_f64())?;
        }
        write!(formatter, " ms")
    }
}

/// How many things happened in each window of time.
#[derive(Debug, Clone)]
pub struct Windows {
    width: Nanos,
    counts: Vec<u64>,
}

impl Windows {
    /// Windows of this width, from the beginning of the run.
    pub fn new(width: Nanos) -> Self {
        let width = width.max(Nanos(1));
        let counts = Vec::new();
        Self { width, counts }
    }

    /// Something happened.
    pub fn add(&mut self, at: SimTime) {
        let index = usize::try_from(at.0 / self.width.0).unwrap_or(usize::MAX);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Counts, window by window, up to the last in which anything happened.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Things a second in the windows that lie wholly in `from..until`.
    #[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
    pub fn rate(&self, from: SimTime, until: SimTime) -> f64 {
        let first = from.0.div_ceil(self.width.0);
        let last = until.0 / self.width.0;
        if last <= first {
            return 0.0;
        }
        let index = |window| {
            usize::try_from(window)
                .unwrap_or(usize::MAX)
                .min(self.counts.len())
        };
        let count: u64 = self.counts[index(first)..index(last)].iter().sum();
        count as f64 * 1e9 / ((last - first) * self.width.0) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples_by_nearest_rank() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.summary(), Summary::default());
        for number in (1..=200).rev() {
            latencies.add(Nanos::from_millis(number));
        }
        let summary = latencies.summary();
        assert_eq!(summary.mean, Nanos::from_micros(100_500));
        let shown = [
            summary.p50,
            summary.p90,
            summary.p95,
            summary.p99,
            summary.max,
        ];
        assert_eq!(shown, [100, 180, 190, 198, 200].map(Nanos::from_millis));
        assert_eq!(latencies.percentile(0), Nanos::from_millis(1));
        let mut one = Latencies::default();
        one.add(Nanos(7));
        assert_eq!(one.percentile(99), Nanos(7));
        latencies.extend(&one);
        assert_eq!(latencies.percentile(0), Nanos(7));
        assert_eq!(
            one.summary().to_string(),
            "       1  mean    0.000  p50    0.000  p90    0.000  p95    0.000  \
             p99    0.000  max    0.000 ms"
        );
    }

    #[test]
    fn rates_count_whole_windows() {
        let mut windows = Windows::new(Nanos::from_millis(100));
        for millis in [0, 50, 100, 150, 199, 420] {
            windows.add(SimTime::from_millis(millis));
        }
        assert_eq!(windows.counts(), [2, 3, 0, 0, 1]);
        let rate = |from, until| {
            windows
                .rate(SimTime::from_millis(from), SimTime::from_millis(until))
                .to_string()
        };
        assert_eq!(rate(0, 200), "25");
        assert_eq!(rate(50, 250), "30");
        assert_eq!(rate(300, 1_300), "1");
        assert_eq!(rate(120, 180), "0");
    }
}
