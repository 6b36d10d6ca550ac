//! What figures, tables and claims make of runs.

use manxdb_lab::experiment::{ClaimVerdict, Scale};

use super::*;
use crate::lab::fill::Quotas;

const EXPERIMENTS: [&Design<Stored>; 2] = [&CAAS, &LARGER_THAN_MEMORY];

/// Data in which a command takes so many microseconds of everything.
fn data(design: &Design<Stored>, micros: impl Fn(&Trial) -> f64) -> Data<Stored> {
    let record = |trial: Trial| {
        let micros = micros(&trial);
        let seconds = f64::from(trial.commands) * micros / 1e6;
        let waited_ms = micros * f64::from(trial.clients) / 1e3;
        let measure = |work: &Work| Measure {
            work: *work,
            commands: trial.commands.into(),
            seconds,
            cpu: seconds,
            mean_ms: waited_ms,
            p50_ms: waited_ms,
            p99_ms: waited_ms * 2.0,
        };
        let pooled = u64::from(trial.compactions == Compactions::Pooled);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a count
        let drawn = trial.load().drawn() as u64;
        let outcome = Outcome {
            version: "0.1".into(),
            quotas: Quotas::Version1,
            measures: trial.works.iter().map(measure).collect(),
            errors: 0,
            found: if trial.is_filled {
                trial.keys.into()
            } else {
                drawn
            },
            evicted: 1,
            loaded: 1,
            outside: 1,
            memory: 1 << 20,
            drain_seconds: 1.0,
            server_cpu: seconds,
            pool_cpu: f64::from(u8::from(pooled > 0)),
            installed: pooled,
            came_home: 0,
        };
        Record { trial, outcome }
    };
    Data {
        experiment: design.name.into(),
        scale: Scale::Laptop,
        seed: 1,
        version: "test".into(),
        records: design
            .plan(Scale::Laptop, 1)
            .into_iter()
            .map(record)
            .collect(),
    }
}

fn all_are(design: &Design<Stored>, data: &Data<Stored>, verdict: ClaimVerdict) {
    let claims = design.claims(data);
    assert_eq!(claims.len(), if design.name == CAAS.name { 4 } else { 1 });
    for claim in claims {
        assert_eq!(claim.verdict(), verdict, "{claim:?}");
    }
}

fn ahead(trial: &Trial) -> f64 {
    match trial.compactions {
        Compactions::Local => 10.0,
        Compactions::Pooled => 7.0,
    }
}

#[test]
fn every_claim_can_hold_and_fail() {
    for design in EXPERIMENTS {
        let good = data(design, ahead);
        all_are(design, &good, ClaimVerdict::Holds);
        assert_eq!(design.unmoved(&good), Vec::<String>::new());
    }
    all_are(&CAAS, &data(&CAAS, |_| 7.0), ClaimVerdict::Fails);
    let mut refused = data(&LARGER_THAN_MEMORY, ahead);
    refused.records[2].outcome.errors = 1;
    all_are(&LARGER_THAN_MEMORY, &refused, ClaimVerdict::Fails);
}

#[test]
fn smoke_and_a_machine_without_quotas_say_nothing_of_compactions() {
    let mut small = data(&CAAS, ahead);
    small.scale = Scale::Smoke;
    all_are(&CAAS, &small, ClaimVerdict::Open);
    let mut free = data(&CAAS, ahead);
    free.records[0].outcome.quotas = Quotas::None;
    all_are(&CAAS, &free, ClaimVerdict::Open);
}

#[test]
fn what_cannot_be_is_told() {
    let wrong: [fn(&mut Outcome); 5] = [
        |outcome| outcome.version = "7.2".into(),
        |outcome| outcome.found /= 2,
        |outcome| outcome.installed = 1 - outcome.installed,
        |outcome| outcome.measures[0].mean_ms *= 2.0,
        |outcome| outcome.memory = 1 << 40,
    ];
    for design in EXPERIMENTS {
        for wrong in wrong {
            let mut data = data(design, ahead);
            wrong(&mut data.records[1].outcome);
            all_are(design, &data, ClaimVerdict::Implausible);
        }
    }
    let mut data = data(&LARGER_THAN_MEMORY, ahead);
    data.records[2].outcome.outside = 0;
    all_are(&LARGER_THAN_MEMORY, &data, ClaimVerdict::Implausible);
}

#[test]
fn figures_reports_and_tables_have_all_that_was_run() {
    for (design, line) in [
        (
            &CAAS,
            "| HSET | 4096 | pooled compactions | 142857 | 7.0 | 0.35, 0.35, 0.70 | 0 |",
        ),
        (
            &LARGER_THAN_MEMORY,
            "| GET | 0.5 | local compactions | 100000 | 10.0 | 0.50, 0.50, 1.00 |",
        ),
    ] {
        let data = data(design, ahead);
        let [svg, _, _, report] = design.pictures(&data).unwrap();
        let (svg, report) = (
            String::from_utf8(svg.bytes).unwrap(),
            String::from_utf8(report.bytes).unwrap(),
        );
        for record in &data.records {
            assert!(svg.contains(record.trial.compactions.title()));
        }
        assert!(report.contains(line), "{line} in {report}");
        let columns = |line: &str| line.split(',').count();
        let csv = data.to_csv();
        let names = columns(csv.lines().next().unwrap());
        assert!(csv.lines().all(|line| columns(line) == names), "{csv}");
    }
}
