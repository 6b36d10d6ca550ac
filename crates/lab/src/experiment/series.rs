//! Trials of equal parameters put together: medians over seeds, and how far they spread.

use super::ExperimentKind;
use crate::experiment::data::Record;
use crate::figure::Point;

/// All repetitions of a trial.
pub struct At<'a, K: ExperimentKind> {
    /// Where it stands on the swept parameter.
    pub x: f64,
    outcomes: Vec<&'a K::Outcome>,
}

impl<'a, K: ExperimentKind> At<'a, K> {
    /// A number of the outcome: the median of the repetitions, and its extremes.
    pub fn point(&self, number: impl Fn(&K::Outcome) -> f64) -> Point {
        let mut values: Vec<f64> = self
            .outcomes
            .iter()
            .map(|outcome| number(outcome))
            .collect();
        values.sort_by(f64::total_cmp);
        let middle = |place: usize| values.get(place).copied().unwrap_or_default();
        let count = values.len();
        let median = f64::midpoint(middle(count.saturating_sub(1) / 2), middle(count / 2));
        Point {
            x: self.x,
            y: median,
            low: values.first().copied().unwrap_or_default(),
            high: values.last().copied().unwrap_or_default(),
        }
    }

    /// Its median alone.
    pub fn median(&self, number: impl Fn(&K::Outcome) -> f64) -> f64 {
        self.point(number).y
    }

    /// What came of each repetition.
    pub fn outcomes(&self) -> impl Iterator<Item = &'a K::Outcome> + '_ {
        self.outcomes.iter().copied()
    }

    /// How many repetitions there are.
    #[must_use]
    pub fn repetitions(&self) -> usize {
        self.outcomes.len()
    }
}

/// The records that `belongs` takes, by where they stand.
pub fn series<'a, K: ExperimentKind>(
    records: &'a [Record<K>],
    belongs: impl Fn(&Record<K>) -> bool,
    at: impl Fn(&Record<K>) -> f64,
) -> Vec<At<'a, K>> {
    let mut found: Vec<At<'a, K>> = Vec::new();
    for record in records.iter().filter(|record| belongs(record)) {
        let x = at(record);
        match found.iter_mut().find(|known| known.x.total_cmp(&x).is_eq()) {
            Some(known) => known.outcomes.push(&record.outcome),
            None => found.push(At {
                x,
                outcomes: vec![&record.outcome],
            }),
        }
    }
    found.sort_by(|one, other| one.x.total_cmp(&other.x));
    found
}
