//! Many databases that share few workers, at the smallest scale: it runs, nothing is lost, equal
//! seeds make equal files, and what is said of fairness fails for a policy without it.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::common::golden;

use manxdb_jobs::mutants::Mutant;
use manxdb_lab::caas_many::{CaasOutcome, Sharing, Trial, Who, run_with};
use manxdb_lab::experiment::compaction::ALL;
use manxdb_lab::experiment::data::{self, Record};
use manxdb_lab::experiment::{ClaimVerdict, Design, Scale};
use manxdb_lab::trial_error::TrialError;

type Data = data::Data<Sharing>;

const MANY: &Design<Sharing> = &ALL[0];

fn measured(seed: u64, run: impl Fn(&Trial) -> CaasOutcome) -> Data {
    of_trials(seed, MANY.plan(Scale::Smoke, seed), run)
}

fn of_trials(seed: u64, trials: Vec<Trial>, run: impl Fn(&Trial) -> CaasOutcome) -> Data {
    let trials = trials.into_iter();
    let records = trials.map(|trial| Record {
        outcome: run(&trial),
        trial,
    });
    Data {
        experiment: MANY.name.into(),
        scale: Scale::Smoke,
        seed,
        version: "test".into(),
        records: records.collect(),
    }
}

fn run(trial: &Trial) -> CaasOutcome {
    let mut shares = Vec::new();
    let outcome = trial.run(&mut |share| shares.push(share)).unwrap();
    assert!(shares.is_sorted() && shares.last() == Some(&1.0));
    assert!(outcome.others.jobs > 10, "{trial:?}: {outcome:?}");
    outcome
}

/// What the claim says whose words these are the beginning of.
fn verdict(data: &Data, says: &str) -> ClaimVerdict {
    let claims = MANY.claims(data);
    let found = claims.iter().find(|claim| claim.says.starts_with(says));
    found.unwrap_or_else(|| panic!("{claims:#?}")).verdict()
}

const BOUNDED: &str = "The 99th percentile of the others' time in the queue is bounded";

#[test]
fn equal_seeds_make_equal_files_and_what_is_promised_holds() {
    let data = measured(1, run);
    let json = data.to_json();
    assert_eq!(Data::from_json(&json, MANY.name).unwrap(), data);
    golden::check(MANY.name, &data.to_csv());
    // A trial makes the same outcome again, and equal outcomes the same files.
    let busiest = data.records.iter().max_by_key(|it| it.outcome.events);
    let busiest = busiest.unwrap();
    assert_eq!(run(&busiest.trial), busiest.outcome);
    let again = Data::from_json(&json, MANY.name).unwrap();
    assert_eq!(again.to_csv(), data.to_csv());
    assert_eq!(
        MANY.pictures(&again).unwrap(),
        MANY.pictures(&data).unwrap()
    );
    let trial = MANY.plan(Scale::Smoke, 2).remove(0);
    assert_ne!(run(&trial), data.records[0].outcome);
    assert_eq!(
        verdict(&data, BOUNDED),
        ClaimVerdict::Holds,
        "{:#?}",
        MANY.claims(&data)
    );
    let first = "Jobs that relieve level 0 are never the first";
    assert_eq!(verdict(&data, first), ClaimVerdict::Holds);
}

#[test]
fn without_fair_shares_the_promise_about_the_queue_is_broken() {
    let mut ours = MANY.plan(Scale::Smoke, 1);
    ours.retain(|trial| trial.who == Who::Manxdb);
    let data = of_trials(1, ours, |trial| {
        let unfair = |options: &mut manxdb_jobs::Options| {
            options.mutant = Some(Mutant::NoFairShares);
        };
        run_with(trial, unfair, &mut |_| ()).unwrap()
    });
    assert_eq!(
        verdict(&data, BOUNDED),
        ClaimVerdict::Fails,
        "{:#?}",
        MANY.claims(&data)
    );
}

#[test]
fn a_trial_outside_of_reason_is_refused() {
    let trial = MANY.plan(Scale::Smoke, 1).remove(0);
    for unfit in [
        Trial {
            workers: 0,
            ..trial.clone()
        },
        Trial {
            greedy: trial.databases,
            ..trial.clone()
        },
        Trial {
            minutes: 0,
            ..trial.clone()
        },
        Trial {
            slot_speed: 0,
            who: Who::Local,
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
