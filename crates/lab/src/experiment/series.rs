//! Trials of equal parameters put together: medians over seeds, and how far they spread.

use crate::data::Record;
use crate::figure::Point;
use crate::trial::Outcome;

/// All repetitions of a trial.
pub(super) struct At<'a> {
    /// Where it stands on the swept parameter.
    pub x: f64,
    outcomes: Vec<&'a Outcome>,
}

impl At<'_> {
    /// A number of the outcome: the median of the repetitions, and its extremes.
    pub fn point(&self, number: impl Fn(&Outcome) -> f64) -> Point {
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
    pub fn median(&self, number: impl Fn(&Outcome) -> f64) -> f64 {
        self.point(number).y
    }

    /// What its busiest server is, in most repetitions.
    pub fn busiest_role(&self) -> &str {
        let roles = || {
            self.outcomes
                .iter()
                .map(|outcome| outcome.busiest_role.as_str())
        };
        let count = |role: &str| roles().filter(|other| *other == role).count();
        roles().max_by_key(|role| count(role)).unwrap_or_default()
    }

    /// How many repetitions there are.
    pub fn repetitions(&self) -> usize {
        self.outcomes.len()
    }
}

/// The records that `belongs` takes, by where they stand.
pub(super) fn series<'a>(
    records: &'a [Record],
    belongs: impl Fn(&Record) -> bool,
    at: impl Fn(&Record) -> f64,
) -> Vec<At<'a>> {
    let mut found: Vec<At<'a>> = Vec::new();
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
