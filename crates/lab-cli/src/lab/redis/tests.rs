//! What figure, table and claims make of runs.

use manxdb_lab::experiment::{Claim, ClaimVerdict};

use super::trial::Books;
use super::*;

/// Data in which a command takes so many microseconds of everything.
fn data(micros: impl Fn(&Trial) -> f64) -> Data<Serving> {
    let record = |trial: Trial| {
        let micros = micros(&trial);
        let measure = |work: Work| {
            let commands = trial.load(work).all_commands(work);
            let seconds = f64::from(trial.commands(work)) * micros / 1e6;
            let waited_ms = micros * f64::from(trial.clients * trial.pipeline) / 1e3;
            Measure {
                work,
                commands,
                seconds,
                cpu: seconds,
                mean_ms: waited_ms,
                p50_ms: waited_ms,
                p99_ms: waited_ms * 2.0,
            }
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count
        let drawn = |work: Work| trial.load(work).drawn() as u64;
        let outcome = Outcome {
            version: format!("{}1", trial.system.version()),
            measures: Work::ALL.map(measure).into(),
            books: Books {
                keys: u64::from(trial.keys) + 2,
                queued: 0,
                fields: drawn(Work::Hset),
                members: drawn(Work::Zadd),
            },
        };
        Record { trial, outcome }
    };
    Data {
        experiment: EXPERIMENT.name.into(),
        scale: Scale::Laptop,
        seed: 1,
        version: "test".into(),
        records: plan(Scale::Laptop, 1).into_iter().map(record).collect(),
    }
}

fn all_are(claims: &[Claim], verdict: ClaimVerdict) {
    assert_eq!(claims.len(), 12);
    for claim in claims {
        assert_eq!(claim.verdict(), verdict, "{claim:?}");
    }
}

fn ahead(trial: &Trial) -> f64 {
    match trial.system {
        System::Manxdb => 5.0,
        _ => 7.0,
    }
}

#[test]
fn every_claim_can_hold_and_fail() {
    all_are(&EXPERIMENT.claims(&data(ahead)), ClaimVerdict::Holds);
    let behind = data(|trial| match trial.system {
        System::Manxdb => 5.1,
        _ => 5.0,
    });
    all_are(&EXPERIMENT.claims(&behind), ClaimVerdict::Fails);
    assert_eq!(EXPERIMENT.unmoved(&data(ahead)), Vec::<String>::new());
}

#[test]
fn smoke_and_missing_runs_judge_nothing() {
    let mut small = data(ahead);
    small.scale = Scale::Smoke;
    all_are(&EXPERIMENT.claims(&small), ClaimVerdict::Open);
    let mut few = data(ahead);
    few.records.retain(|one| one.trial.clients < 50);
    all_are(&EXPERIMENT.claims(&few), ClaimVerdict::Open);
}

#[test]
fn what_cannot_be_is_told() {
    let wrong: [fn(&mut Outcome); 5] = [
        |outcome| outcome.version = "6.0.0".to_owned(),
        |outcome| outcome.books.queued = 1,
        |outcome| outcome.books.keys -= 1,
        |outcome| outcome.books.fields /= 2,
        |outcome| outcome.measures[2].commands -= 1,
    ];
    for wrong in wrong {
        let mut data = data(ahead);
        wrong(&mut data.records[7].outcome);
        all_are(&EXPERIMENT.claims(&data), ClaimVerdict::Implausible);
    }
}

#[test]
fn figure_and_report_have_all_that_was_run() {
    let data = data(ahead);
    let [svg, _, _, report] = EXPERIMENT.pictures(&data).unwrap();
    let svg = String::from_utf8(svg.bytes).unwrap();
    let report = String::from_utf8(report.bytes).unwrap();
    for system in System::ALL {
        assert!(svg.contains(system.title()), "{}", system.title());
        assert!(report.contains(&format!(" {} |", system.title())));
    }
    for line in [
        "### async, -P 16",
        "### sync, -P 1",
        "| LPUSH/BRPOP | 50 |",
        // 5 µs, 50 clients.
        "200.0 · 5.00 · 0.25, 0.50 |",
    ] {
        assert!(report.contains(line), "{line} in {report}");
    }
    let columns = |line: &str| line.split(',').count();
    let csv = data.to_csv();
    let names = columns(csv.lines().next().unwrap());
    assert!(csv.lines().all(|line| columns(line) == names), "{csv}");
}

#[test]
fn programs_send_whole_pipelines() {
    for scale in Scale::ALL {
        for trial in plan(scale, 1) {
            for work in Work::ALL {
                let sent = trial.commands(work);
                assert!(sent >= trial.clients * trial.pipeline, "{trial:?}");
                assert_eq!(sent % trial.pipeline, 0, "{trial:?}");
            }
        }
    }
}
