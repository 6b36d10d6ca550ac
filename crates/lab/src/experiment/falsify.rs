//! Data made wrong on purpose: what shows that verdicts depend on data.
//!
//! A claim is worth something if data could have refuted it. For each claim that was judged there are
//! data, made of those measured by one change, that change its verdict: nonsense must leave none, and
//! what is bad news for it must make it fail.

use std::collections::BTreeSet;

use super::{Claim, ClaimVerdict, Design, ExperimentKind};
use crate::experiment::data::Data;

/// A change of one outcome.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Falsification {
    /// All numbers are zero.
    Zeros,
    /// Everything takes a ten-thousandth of the time: less than light and memory need.
    TooFast,
    /// Calls, rows or deaths are missing.
    Lost,
    /// Everything that is good takes, or costs, so many times as much.
    Worse(f64),
}

impl Falsification {
    /// Those that nobody could have measured.
    pub const NONSENSE: [Self; 3] = [Self::Zeros, Self::TooFast, Self::Lost];

    /// What times and costs are multiplied by; `None` where calls are lost and times stay.
    #[must_use]
    pub const fn factor(self) -> Option<f64> {
        match self {
            Self::Zeros => Some(0.0),
            Self::TooFast => Some(1e-4),
            Self::Worse(by) => Some(by),
            Self::Lost => None,
        }
    }
}

/// How much worse bad news are: more than any claim tolerates.
const WORSE: f64 = 300.0;
/// And bad news that leave points comparable.
const SLIGHTLY: f64 = 3.0;

/// Claims that no change of the data moves, and what should have moved them.
pub(super) fn unmoved<K: ExperimentKind>(design: &Design<K>, data: &Data<K>) -> Vec<String> {
    let before = design.claims(data);
    let mut found = Vec::new();
    for nonsense in Falsification::NONSENSE {
        let after = design.claims(&changed(data, |_, _| Some(nonsense)));
        let judged = before
            .iter()
            .filter(|claim| claim.verdict() != ClaimVerdict::Open);
        for claim in judged {
            let is_moved = matches!(
                verdict(&after, claim),
                Some(ClaimVerdict::Implausible | ClaimVerdict::Open)
            );
            if !is_moved {
                found.push(format!(
                    "{}: {nonsense:?} leaves '{}' {:?}",
                    design.name,
                    claim.says,
                    verdict(&after, claim)
                ));
            }
        }
    }
    found.extend(borrowed_marks(design, data));
    let bad_news: Vec<Vec<Claim>> = variants(design, data)
        .iter()
        .map(|data| design.judged(data))
        .collect();
    for claim in before
        .iter()
        .filter(|one| one.verdict() == ClaimVerdict::Holds)
    {
        let fails = |after: &Vec<Claim>| {
            matches!(
                verdict(after, claim),
                Some(ClaimVerdict::Fails | ClaimVerdict::Implausible)
            )
        };
        if !bad_news.iter().any(fails) {
            found.push(format!("{}: nothing refutes '{}'", design.name, claim.says));
        }
    }
    found
}

fn verdict(claims: &[Claim], of: &Claim) -> Option<ClaimVerdict> {
    let found = claims.iter().find(|claim| claim.says == of.says);
    found.map(Claim::verdict)
}

/// The data with a change of some records.
fn changed<K: ExperimentKind>(
    data: &Data<K>,
    how: impl Fn(usize, &K::Trial) -> Option<Falsification>,
) -> Data<K> {
    let mut data = data.clone();
    for (place, record) in data.records.iter_mut().enumerate() {
        if let Some(how) = how(place, &record.trial) {
            K::falsify(&record.trial, &mut record.outcome, how);
        }
    }
    data
}

/// Bad news of all kinds: all of it, one point, one system of several, one end of the sweep, systems and
/// ends in each other's place.
fn variants<K: ExperimentKind>(design: &Design<K>, data: &Data<K>) -> Vec<Data<K>> {
    let mut found = vec![swapped(data)];
    let mut systems: Vec<String> = Vec::new();
    for record in &data.records {
        let system = K::system(&record.trial);
        if !systems.contains(&system) {
            systems.push(system);
        }
    }
    let labels: BTreeSet<String> = data
        .records
        .iter()
        .map(|record| design.label(&record.trial))
        .collect();
    let half = data.records.len() / 2;
    for by in [WORSE, SLIGHTLY] {
        let worse = Some(Falsification::Worse(by));
        found.push(changed(data, |_, _| worse));
        found.push(changed(data, |place, _| worse.filter(|_| place >= half)));
        found.push(changed(data, |place, _| worse.filter(|_| place < half)));
        for label in &labels {
            found.push(changed(data, |_, trial| {
                worse.filter(|_| design.label(trial) == *label)
            }));
        }
        for system in &systems {
            let places = places(data, system);
            let (early, late) = places.split_at(places.len() / 2);
            for part in [&places[..], early, late] {
                found.push(changed(data, |place, _| {
                    worse.filter(|_| part.contains(&place))
                }));
            }
        }
    }
    found
}

/// Marks that are called published and move with what was measured: what was published does not.
fn borrowed_marks<K: ExperimentKind>(design: &Design<K>, data: &Data<K>) -> Vec<String> {
    let figures = [
        data.clone(),
        changed(data, |_, _| Some(Falsification::Worse(SLIGHTLY))),
    ];
    let [before, after] = figures.map(|data| {
        let panels = design.figure(&data).panels.into_iter();
        panels.flat_map(|panel| panel.marks).collect::<Vec<_>>()
    });
    let published = before
        .into_iter()
        .filter(|mark| mark.text.contains("published"));
    let moved = published.filter(|mark| !after.contains(mark));
    moved
        .map(|mark| {
            format!(
                "{}: '{}' is drawn at our own points",
                design.name, mark.text
            )
        })
        .collect()
}

/// Where the records of a system are.
fn places<K: ExperimentKind>(data: &Data<K>, system: &str) -> Vec<usize> {
    let records = data.records.iter().enumerate();
    let own = records.filter(|(_, record)| K::system(&record.trial) == system);
    own.map(|(place, _)| place).collect()
}

fn swapped<K: ExperimentKind>(data: &Data<K>) -> Data<K> {
    let mut data = data.clone();
    let outcomes: Vec<K::Outcome> = data.records.iter().map(|one| one.outcome.clone()).collect();
    for (record, outcome) in data.records.iter_mut().zip(outcomes.into_iter().rev()) {
        record.outcome = outcome;
    }
    data
}
