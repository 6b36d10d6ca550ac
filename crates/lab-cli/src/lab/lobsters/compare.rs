//! What claims have in common: systems beside each other, at the records of one comparison.

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{Claim, Measured, Source};

use super::Reading;
use super::outcome::{Outcome, PAGES, Ran, Spread};
use super::system::System;
use super::trial::Comparison;
use crate::lab::fill::judge;

/// Pages of a kind that a 95th percentile takes, at the least.
const COUNT_MIN: u64 = 20;

/// The records of a comparison.
pub struct Compared<'a> {
    records: Vec<&'a Record<Reading>>,
}

impl<'a> Compared<'a> {
    /// Those of a comparison.
    pub fn of(data: &'a Data<Reading>, comparison: Comparison) -> Self {
        let records = data.records.iter();
        let of = records.filter(|record| record.trial.comparison == comparison);
        Self {
            records: of.collect(),
        }
    }

    /// Those of them with a size of the site.
    pub fn at(&self, site: f64) -> Self {
        let records = self.records.iter().copied();
        let at = records.filter(|record| record.trial.site.total_cmp(&site).is_eq());
        Self {
            records: at.collect(),
        }
    }

    /// Sizes of the site, ascending.
    pub fn sites(&self) -> Vec<f64> {
        let mut sites: Vec<f64> = self
            .records
            .iter()
            .map(|record| record.trial.site)
            .collect();
        sites.sort_by(f64::total_cmp);
        sites.dedup();
        sites
    }

    /// The median of a number of a system over repetitions; none where it did not run.
    pub fn median(&self, system: System, number: impl Fn(&Ran) -> Option<f64>) -> Option<f64> {
        let outcomes = self.records.iter().map(|record| &record.outcome);
        let ran = outcomes.filter_map(|outcome| outcome.site(system));
        middle(ran.filter_map(number).collect())
    }

    /// The median of a number of outcomes over repetitions.
    pub fn median_of(&self, number: impl Fn(&Outcome) -> f64) -> Option<f64> {
        let outcomes = self.records.iter().map(|record| number(&record.outcome));
        middle(outcomes.collect())
    }

    /// A time of a page of a system, if it was served often enough.
    pub fn time(&self, system: System, page: &str, time: fn(&Spread) -> f64) -> Option<f64> {
        self.median(system, |ran| {
            let spread = ran
                .pages
                .get(page)
                .filter(|spread| spread.count >= COUNT_MIN)?;
            Some(time(spread))
        })
    }

    /// The better of `MariaDB`'s engines in something that is better when it is less, or more.
    pub fn best_engine(
        &self,
        is_less_better: bool,
        number: impl Fn(&Ran) -> Option<f64>,
    ) -> Option<f64> {
        let engines = [System::Innodb, System::Myrocks].into_iter();
        let numbers = engines.filter_map(|engine| self.median(engine, &number));
        if is_less_better {
            numbers.min_by(f64::total_cmp)
        } else {
            numbers.max_by(f64::total_cmp)
        }
    }

    /// For each page that was served often enough: how often the better engine's 95th percentile goes
    /// into a system's.
    fn against_engines(&self, system: System) -> Vec<(&'static str, f64)> {
        let ratio = |page: &'static str| {
            let engines = [System::Innodb, System::Myrocks].into_iter();
            let p95 = |spread: &Spread| spread.p95;
            let theirs = engines.filter_map(|engine| self.time(engine, page, p95));
            let theirs = theirs.min_by(f64::total_cmp)?;
            let ours = self.time(system, page, p95)?;
            (theirs > 0.0).then(|| (page, ours / theirs))
        };
        PAGES.into_iter().filter_map(ratio).collect()
    }

    /// Whether the 95th percentile of each page is at most that of `MariaDB`'s better engine.
    pub fn pages_claim(&self, (source, says): (Source, &str), system: System) -> Claim {
        let ratios = self.against_engines(system);
        let worst = ratios
            .iter()
            .copied()
            .max_by(|one, other| one.1.total_cmp(&other.1));
        judge(source, says, worst, |(page, worst)| {
            let slower: Vec<String> = ratios
                .iter()
                .filter(|(_, ratio)| *ratio > 1.0)
                .map(|(page, ratio)| format!("{page} {ratio:.2} times"))
                .collect();
            let most = if slower.is_empty() {
                format!("the most is {page} with {worst:.2} times")
            } else {
                format!("more at {}", slower.join(", "))
            };
            let said = format!(
                "{most}; {} of {} pages were served {COUNT_MIN} times",
                ratios.len(),
                PAGES.len()
            );
            (Measured::ratio(worst, said), worst <= 1.0)
        })
    }
}

/// Places of categories on an axis: 0, 1, 2 and so on.
pub fn places() -> impl Iterator<Item = f64> {
    (0_u32..).map(f64::from)
}

/// Sizes of the site by their names on axes.
pub fn sites(names: &'static [&'static str]) -> impl Iterator<Item = f64> {
    names.iter().filter_map(|name| name.parse().ok())
}

/// The median of some numbers, if there are any.
pub fn middle(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let last = numbers.len().checked_sub(1)?;
    Some(f64::midpoint(numbers[last / 2], numbers[last.div_ceil(2)]))
}

/// A claim about how often one number goes into another; `holds` hears the ratio.
pub fn ratio_claim(
    (source, says): (Source, &str),
    (one, other): (Option<f64>, Option<f64>),
    unit: &str,
    holds: impl Fn(f64) -> bool,
) -> Claim {
    let both = one.zip(other).filter(|(_, other)| *other > 0.0);
    judge(source, says, both, |(one, other)| {
        let ratio = one / other;
        let said = format!("{one:.1} {unit} beside {other:.1}: {ratio:.2} times");
        (Measured::ratio(ratio, said), holds(ratio))
    })
}
