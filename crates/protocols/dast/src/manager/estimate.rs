//! How long a region waits for the decision about a transaction (DAST §4.3, anticipation).
//!
//! Too short, and clocks stretch: local transactions do not notice, other cross-region ones wait
//! a little. Too long, and the transaction itself waits. So a high percentile of what was seen.

use std::collections::VecDeque;

use manxdb_core::Nanos;
use manxdb_core::check::ensure;

/// Spans remembered.
const SEEN_MAX: usize = 32;

/// Recent spans between giving a timestamp and hearing the decision.
#[derive(Debug, Clone)]
pub(super) struct Estimate {
    seen: VecDeque<Nanos>,
    first: Nanos,
}

impl Estimate {
    pub(super) fn new(first: Nanos) -> Self {
        Self {
            seen: VecDeque::new(),
            first,
        }
    }

    pub(super) fn saw(&mut self, span: Nanos) {
        self.seen.push_back(span);
        if self.seen.len() > SEEN_MAX {
            self.seen.pop_front();
        }
    }

    /// That the spans have a limit.
    pub(super) fn check(&self) -> Result<(), String> {
        ensure(self.seen.len() <= SEEN_MAX, || {
            format!("{} spans are remembered, of {SEEN_MAX}", self.seen.len())
        })
    }

    /// The ninth of ten spans, or half more than the median if that is less: the few long ones of a
    /// fail-over must not slow down what comes after it.
    pub(super) fn span(&self) -> Nanos {
        let mut sorted: Vec<Nanos> = self.seen.iter().copied().collect();
        sorted.sort_unstable();
        let at = |tenths: usize| {
            let place = sorted.len() * tenths / 10;
            sorted
                .get(place.min(sorted.len().saturating_sub(1)))
                .copied()
        };
        let (Some(median), Some(high)) = (at(5), at(9)) else {
            return self.first;
        };
        high.min(Nanos(median.0 / 2 * 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ninth_of_ten_spans_is_expected() {
        let mut estimate = Estimate::new(Nanos(7));
        assert_eq!(estimate.span(), Nanos(7));
        for span in 101..=110 {
            estimate.saw(Nanos(span));
        }
        assert_eq!(estimate.span(), Nanos(110));
        for _ in 0..200 {
            estimate.saw(Nanos(30));
        }
        assert_eq!(estimate.span(), Nanos(30));
    }

    #[test]
    fn a_few_very_long_spans_are_not_believed() {
        let mut estimate = Estimate::new(Nanos(7));
        for span in [100, 100, 100, 100, 900, 900] {
            estimate.saw(Nanos(span));
        }
        assert_eq!(estimate.span(), Nanos(150));
    }
}
