//! The experiments: which trials each runs, how it is drawn, and which claims it checks.
//!
//! | experiment | swept | in |
//! |---|---|---|
//! | `n-clients` | clients per region, TPC-C | [`n_clients`] |
//! | `crt-ratio` | share of cross-region transactions, Payment | [`crt_ratio`] |
//! | `tpca` | skew of the keys, TPC-A | [`skew`] |
//! | `scalability` | regions, TPC-C | [`regions`] |
//! | `robust` | jitter of the wide network, TPC-C | [`jitter`] |
//! | `targets` | ManxDB's own targets, Payment, with and without the CPU model | [`targets`] |
//!
//! The first five are those of "Achieving low tail-latency and high scalability for serializable
//! transactions in edge computing" (Chen et al., EuroSys 2021).

mod claim;
mod crt_ratio;
mod index;
mod jitter;
mod n_clients;
mod panels;
mod regions;
mod report;
mod scale;
mod series;
mod skew;
mod targets;

use crate::data::Data;
use crate::figure::{Figure, FigureError, png};
use crate::trial::Trial;

pub use self::claim::{Claim, Source, Verdict};
pub use self::index::index;
pub use self::scale::Scale;

/// An experiment.
pub struct Experiment {
    /// On the command line, and of its directory.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The paper's figure it repeats, or what it is instead.
    pub origin: &'static str,
    /// The parameter it sweeps, with its unit.
    pub swept: &'static str,
    plan: fn(Scale, u64) -> Vec<Trial>,
    at: fn(&Trial) -> f64,
    label: fn(&Experiment, &Trial) -> String,
    figure: fn(&Experiment, &Data) -> Figure,
    claims: fn(&Experiment, &Data) -> Vec<Claim>,
}

/// All experiments, in the order of the list.
pub static ALL: [Experiment; 6] = [
    n_clients::EXPERIMENT,
    crt_ratio::EXPERIMENT,
    skew::EXPERIMENT,
    regions::EXPERIMENT,
    jitter::EXPERIMENT,
    targets::EXPERIMENT,
];

/// A file of an experiment's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artefact {
    /// Its name.
    pub name: &'static str,
    /// What is in it.
    pub bytes: Vec<u8>,
}

impl Experiment {
    /// The experiment of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Experiment> {
        ALL.iter().find(|experiment| experiment.name == name)
    }

    /// The trials of an experiment, those of equal parameters with seeds from `seed` on.
    #[must_use]
    pub fn plan(&self, scale: Scale, seed: u64) -> Vec<Trial> {
        (self.plan)(scale, seed)
    }

    /// Where a trial stands on the swept parameter.
    #[must_use]
    pub fn at(&self, trial: &Trial) -> f64 {
        (self.at)(trial)
    }

    /// The same, for people.
    #[must_use]
    pub fn label(&self, trial: &Trial) -> String {
        (self.label)(self, trial)
    }

    /// What the paper and we say, and whether it holds.
    #[must_use]
    pub fn claims(&self, data: &Data) -> Vec<Claim> {
        (self.claims)(self, data)
    }

    /// The figure of some data.
    #[must_use]
    pub fn figure(&self, data: &Data) -> Figure {
        (self.figure)(self, data)
    }

    /// Figure and report of some data.
    ///
    /// # Errors
    /// The figure cannot be drawn.
    pub fn pictures(&self, data: &Data) -> Result<[Artefact; 3], FigureError> {
        let svg = self.figure(data).svg()?;
        let picture = png(&svg)?;
        let report = report::report(self, data);
        let file = |name, bytes| Artefact { name, bytes };
        Ok([
            file("figure.svg", svg.into_bytes()),
            file("figure.png", picture),
            file("report.md", report.into_bytes()),
        ])
    }
}

/// A label that is the number alone.
fn number(experiment: &Experiment, trial: &Trial) -> String {
    experiment.at(trial).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::data::Record;
    use crate::trial::{Outcome, Spread};

    #[test]
    fn every_experiment_has_a_plan_of_its_own_at_every_scale() {
        let names: BTreeSet<&str> = ALL.iter().map(|experiment| experiment.name).collect();
        assert_eq!(names.len(), ALL.len());
        for experiment in &ALL {
            let found = Experiment::named(experiment.name).unwrap();
            assert_eq!(found.name, experiment.name);
            for scale in Scale::ALL {
                let plan = experiment.plan(scale, 1);
                assert!(!plan.is_empty());
                for (place, trial) in plan.iter().enumerate() {
                    assert!(!plan[..place].contains(trial), "{trial:?} twice");
                    assert!(trial.expected_events() > 0.0);
                }
            }
        }
        assert!(Experiment::named("nonsense").is_none());
    }

    /// A measurement as good as nobody's, or with `worse` tails and rates.
    fn data(experiment: &Experiment, worse: f64) -> Data {
        let spread = |p99: f64| Spread {
            count: 100,
            p50: p99,
            p95: p99,
            p99,
            max: p99,
            ..Spread::default()
        };
        let mut factor = 1.0;
        let record = |trial: Trial| {
            let clients = f64::from(trial.clients_per_region()) * f64::from(trial.regions);
            let outcome = Outcome {
                throughput: clients / factor,
                local: spread(14.0 * factor),
                cross_region: spread(220.0 * factor),
                dependent: spread(220.0 * factor),
                refused: 0,
                refusal: None,
                oldest_open_ms: 1.0,
                busiest_server: 0.1,
                busiest_role: "replica".into(),
                mean_server: 0.1,
                lan_messages: 1.0,
                wan_messages: 1.0,
                events: 1,
            };
            factor *= worse;
            Record { trial, outcome }
        };
        Data {
            experiment: experiment.name.into(),
            scale: Scale::Smoke,
            seed: 1,
            version: "test".into(),
            records: experiment
                .plan(Scale::Smoke, 1)
                .into_iter()
                .map(record)
                .collect(),
        }
    }

    #[test]
    fn every_claim_about_what_stays_the_same_can_fail() {
        for (experiment, failing) in ALL.iter().zip([2, 1, 3, 3, 2, 5]) {
            let claims = experiment.claims(&data(experiment, 1.9));
            let fails = claims
                .iter()
                .filter(|claim| claim.verdict == Verdict::Fails);
            assert_eq!(fails.count(), failing, "{} {claims:#?}", experiment.name);
        }
    }

    #[test]
    fn one_point_of_a_sweep_judges_nothing_about_it() {
        for experiment in &ALL[1..5] {
            let mut data = data(experiment, 1.0);
            data.records.truncate(1);
            let claims = experiment.claims(&data);
            assert!(claims.iter().all(|claim| claim.verdict == Verdict::Open));
        }
    }
}
