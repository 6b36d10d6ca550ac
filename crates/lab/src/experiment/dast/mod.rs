//! Experiments about clusters that order transactions.
//!
//! | experiment | swept | in |
//! |---|---|---|
//! | `n-clients` | clients per region, TPC-C | [`n_clients`] |
//! | `crt-ratio` | share of cross-region transactions, Payment | [`crt_ratio`] |
//! | `tpca` | skew of the keys, TPC-A | [`skew`] |
//! | `scalability` | regions, TPC-C | [`regions`] |
//! | `robust` | jitter of the wide network, TPC-C | [`jitter`] |
//! | `systems` | clients, Payment, without the CPU model | [`systems`] |
//! | `targets` | ManxDB's own targets, Payment, with and without the CPU model | [`targets`] |
//!
//! The first five are those of "Achieving low tail-latency and high scalability for serializable
//! transactions in edge computing" (Chen et al., EuroSys 2021).

mod columns;
mod crt_ratio;
mod jitter;
mod n_clients;
mod panels;
mod plausible;
mod regions;
mod report;
mod scale;
mod skew;
mod systems;
mod targets;

use super::report::each;
use super::{Claim, Design, ExperimentKind, Falsification, Measured, Scale, Source, series};
use crate::experiment::data;
use crate::trial::{Transactions, Trial, TrialOutcome};
use crate::trial_error::TrialError;

type Experiment = Design<Transactions>;
type Data = data::Data<Transactions>;
type Record = data::Record<Transactions>;
type At<'a> = super::At<'a, Transactions>;

/// All of them, in the order of the list.
pub static ALL: [Experiment; 7] = [
    n_clients::EXPERIMENT,
    crt_ratio::EXPERIMENT,
    skew::EXPERIMENT,
    regions::EXPERIMENT,
    jitter::EXPERIMENT,
    targets::EXPERIMENT,
    systems::EXPERIMENT,
];

impl ExperimentKind for Transactions {
    type Trial = Trial;
    type Outcome = TrialOutcome;

    const PART: &'static str = "dast";

    fn seed(trial: &Trial) -> u64 {
        trial.seed
    }

    fn reseeded(trial: &Trial, seed: u64) -> Trial {
        Trial {
            seed,
            ..trial.clone()
        }
    }

    fn reshaped(
        trial: &Trial,
        regions: Option<u32>,
        shards: Option<u32>,
    ) -> Result<Trial, TrialError> {
        Ok(Trial {
            regions: regions.unwrap_or(trial.regions),
            shards_per_region: shards.unwrap_or(trial.shards_per_region),
            ..trial.clone()
        })
    }

    fn work(trial: &Trial) -> f64 {
        trial.expected_events()
    }

    fn events(outcome: &TrialOutcome) -> u64 {
        outcome.events
    }

    fn run(trial: &Trial, progress: &mut dyn FnMut(f64)) -> Result<TrialOutcome, TrialError> {
        trial.run(progress)
    }

    fn columns() -> String {
        columns::names()
    }

    fn row(record: &Record) -> String {
        columns::row(record)
    }

    fn implausible(trial: &Trial, outcome: &TrialOutcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn samples(outcome: &TrialOutcome) -> (u64, u64) {
        plausible::samples(outcome)
    }

    fn system(trial: &Trial) -> String {
        trial.system.title().to_owned()
    }

    fn falsify(_: &Trial, outcome: &mut TrialOutcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(experiment: &Experiment, data: &Data) -> String {
        report::details(experiment, data)
    }
}

/// What the busiest server is, in most repetitions.
fn busiest_role<'a>(at: &At<'a>) -> &'a str {
    let roles = || at.outcomes().map(|outcome| outcome.busiest_role.as_str());
    let count = |role: &str| roles().filter(|other| *other == role).count();
    roles().max_by_key(|role| count(role)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::ClaimVerdict;
    use super::*;
    use crate::trial::Spread;

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
            let outcome = TrialOutcome {
                throughput: clients / factor,
                local: spread(14.0 * factor),
                cross_region: spread(220.0 * factor),
                dependent: spread(220.0 * factor),
                refused: 0,
                refusal: None,
                local_given_up: 0,
                cross_region_given_up: 0,
                aborts: 0,
                left_out_ms: 0.0,
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
        for (experiment, failing) in ALL.iter().zip([2, 1, 3, 3, 2, 12, 1]) {
            let claims = experiment.judged(&data(experiment, 1.9));
            let fails = claims
                .iter()
                .filter(|claim| !is_of_others(claim))
                .filter(|claim| claim.verdict() == ClaimVerdict::Fails);
            assert_eq!(fails.count(), failing, "{} {claims:#?}", experiment.name);
        }
    }

    fn is_of_others(claim: &Claim) -> bool {
        ["Janus", "TAPIR", "SLOG", "Detock"]
            .iter()
            .any(|name| claim.says.contains(name))
    }

    /// How many claims about other systems hold and how many fail.
    fn against_others(experiment: &Experiment, data: &Data) -> (usize, usize) {
        let claims = experiment.judged(data);
        let count = |verdict| {
            let others = claims.iter().filter(|claim| is_of_others(claim));
            others.filter(|claim| claim.verdict() == verdict).count()
        };
        (count(ClaimVerdict::Holds), count(ClaimVerdict::Fails))
    }

    #[test]
    fn what_is_said_of_other_systems_depends_on_their_numbers() {
        let alike = data(&ALL[0], 1.0);
        // Rates and medians are comparable, and no tail is lower.
        assert_eq!(against_others(&ALL[0], &alike), (3, 6));
        let mut slower = alike;
        for record in &mut slower.records {
            if record.trial.system != crate::systems::SystemName::Dast {
                record.outcome.local.p99 *= 10.0;
                record.outcome.cross_region.p99 *= 2.0;
            }
        }
        assert_eq!(against_others(&ALL[0], &slower), (9, 0));
    }

    #[test]
    fn one_point_of_a_sweep_judges_nothing_about_it() {
        for experiment in &ALL[1..5] {
            let mut data = data(experiment, 1.0);
            data.records.truncate(1);
            let claims = experiment.judged(&data);
            assert!(
                claims
                    .iter()
                    .all(|claim| claim.verdict() == ClaimVerdict::Open)
            );
        }
    }
}
