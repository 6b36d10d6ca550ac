//! Every experiment at its smallest: it runs, its decisive claims hold, and equal seeds make equal
//! files, byte for byte.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::common::golden;

use manxdb_lab::experiment::dast::ALL;
use manxdb_lab::experiment::data::{self, Record};
use manxdb_lab::experiment::{Artefact, ClaimVerdict, Design, Scale};
use manxdb_lab::systems::SystemName;
use manxdb_lab::trial::{Transactions, Trial, TrialOutcome, Workload};
use manxdb_lab::trial_error::TrialError;

type Experiment = Design<Transactions>;
type Data = data::Data<Transactions>;

fn named(name: &str) -> &'static Experiment {
    ALL.iter().find(|one| one.name == name).unwrap()
}

fn run(trial: &Trial) -> TrialOutcome {
    let mut shares = Vec::new();
    let outcome = trial.run(&mut |share| shares.push(share)).unwrap();
    assert!(shares.is_sorted() && shares.last() == Some(&1.0));
    assert_eq!((outcome.refused, &outcome.refusal), (0, &None), "{trial:?}");
    assert!(outcome.local.count > 4, "{trial:?}: {outcome:?}");
    assert!(outcome.cross_region.count > 4, "{trial:?}: {outcome:?}");
    // Every call ends: none is older than a cross-region transaction can be; under TAPIR, than so many
    // tries take.
    let tries = if trial.system == SystemName::Tapir {
        20.0
    } else {
        1.0
    };
    assert!(
        outcome.oldest_open_ms < 700.0 * tries,
        "{trial:?}: {outcome:?}"
    );
    outcome
}

fn measure(experiment: &Experiment, seed: u64) -> Data {
    let trials = experiment.plan(Scale::Smoke, seed);
    let record = |trial: Trial| Record {
        outcome: run(&trial),
        trial,
    };
    Data {
        experiment: experiment.name.into(),
        scale: Scale::Smoke,
        seed,
        version: "test".into(),
        records: trials.into_iter().map(record).collect(),
    }
}

/// The files of an experiment, after its data went through theirs. No claim fails.
fn files(name: &str) -> (Data, [Artefact; 4]) {
    let experiment = named(name);
    let data = measure(experiment, 1);
    assert_eq!(Data::from_json(&data.to_json(), name).unwrap(), data);
    golden::check(name, &data.to_csv());
    for claim in experiment.claims(&data) {
        assert_ne!(claim.verdict(), ClaimVerdict::Implausible, "{claim:?}");
    }
    // A load of this size may have too few samples for a verdict; what they say is looked at all the same.
    for claim in experiment.judged(&data) {
        // What DAST is compared with is not ours to promise anything about.
        if ["Janus", "TAPIR", "SLOG", "Detock"]
            .iter()
            .any(|other| claim.says.contains(other))
        {
            continue;
        }
        assert_ne!(claim.verdict(), ClaimVerdict::Fails, "{claim:?}");
    }
    assert_eq!(experiment.unmoved(&data), Vec::<String>::new());
    let pictures = experiment.pictures(&data).unwrap();
    if let Some(directory) = std::env::var_os("LAB_TEST_OUT") {
        for picture in &pictures {
            let file = format!("{name}-{}", picture.name);
            std::fs::write(std::path::Path::new(&directory).join(file), &picture.bytes).unwrap();
        }
    }
    (data, pictures)
}

#[test]
fn tpcc_runs_with_more_and_more_clients() {
    let (data, pictures) = files("n-clients");
    // A trial makes the same outcome again, and equal outcomes the same bytes. Another seed: others.
    let experiment = named("n-clients");
    let last = data.records.last().unwrap();
    assert_eq!(run(&last.trial), last.outcome);
    let again = Data::from_json(&data.to_json(), "n-clients").unwrap();
    assert_eq!(data.to_csv(), again.to_csv());
    assert_eq!(pictures, experiment.pictures(&again).unwrap());
    let other = experiment.plan(Scale::Smoke, 2).pop().unwrap();
    assert_ne!(run(&other), last.outcome);
    let report = String::from_utf8(pictures[3].bytes.clone()).unwrap();
    assert!(
        report.contains("| claim | by | measured | verdict |"),
        "{report}"
    );
    assert!(report.contains("Commit: not recorded."), "{report}");
}

#[test]
fn payments_run_with_few_and_many_cross_region_ones() {
    files("crt-ratio");
}

#[test]
fn tpca_runs_with_mild_and_hot_keys() {
    files("tpca");
}

#[test]
fn tpcc_runs_in_few_and_many_regions() {
    files("scalability");
}

#[test]
fn tpcc_runs_under_jitter() {
    files("robust");
}

#[test]
fn payments_run_under_every_system() {
    files("systems");
}

#[test]
fn the_targets_hold() {
    let (data, _) = files("targets");
    let experiment = named("targets");
    let claims = experiment.claims(&data);
    // Two tails, each with and without the CPU model, and three things that change nothing; ordered
    // ahead, six numbers and one comparison; and where local calls wait, under both.
    let holds = claims
        .iter()
        .filter(|claim| claim.verdict() == ClaimVerdict::Holds);
    assert_eq!(holds.count(), 16, "{claims:#?}");
}

#[test]
fn a_trial_outside_of_reason_is_refused() {
    let trial = ALL[0].plan(Scale::Smoke, 1).remove(0);
    for unfit in [
        Trial {
            regions: 0,
            ..trial.clone()
        },
        Trial {
            outstanding: 0,
            ..trial.clone()
        },
        Trial {
            workload: Workload::Payment { cross_region: 1.5 },
            ..trial.clone()
        },
        Trial {
            workload: Workload::Tpca { alpha: f64::NAN },
            ..trial
        },
    ] {
        let refused = unfit.run(&mut |_| ());
        assert!(
            matches!(refused, Err(TrialError::Unfit { .. })),
            "{refused:?}"
        );
    }
}
