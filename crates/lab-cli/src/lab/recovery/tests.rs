//! What figure, table and claims make of runs.

use manxdb_lab::experiment::{Claim, ClaimVerdict};

use super::*;
use crate::bench::recovery::{Death, Loss as Lost};

/// Data in which a checkout takes so many microseconds of everything, and recovery so many leases.
fn data(micros: impl Fn(&RecoveryShape) -> f64, leases: f64) -> Data<Surviving> {
    let record = |trial: RecoveryShape| {
        let micros = micros(&trial);
        let lease = f64::from(trial.lease_ms);
        let stops = |from: u64| from..from + u64::from(trial.lease_ms) * 6 / 10 / 10;
        let is_quiet = trial.kill_client == Victim::None;
        let dead = match trial.kill_client {
            Victim::Leader => 0,
            _ => trial.clients - 1,
        };
        let count = |client: u16, at: u64| match at {
            300.. if !is_quiet && client == dead => 0,
            _ if !is_quiet && leases > 1.0 && at > 900 => 0,
            _ if !is_quiet && stops(900).contains(&at) => 0,
            _ => 100,
        };
        let line = |client: u16| (0..1_200).map(|at| count(client, at)).collect();
        let mut outcome = Outcome {
            every_ms: 10.0,
            counts: (0..trial.clients).map(line).collect(),
            seconds: micros,
            ..Outcome::default()
        };
        outcome.client_cpu = micros * outcome.rate() * outcome.seconds;
        if !is_quiet {
            outcome.death = Some(Death {
                client: dead,
                led: dead == 0,
                at_ms: 3_000.0,
                locks_ms: leases * lease,
                reaped_ms: Some(leases * lease),
            });
            outcome.loss = Some(Lost {
                server: 0,
                at_ms: 9_000.0,
                agreed_ms: Some(90.0),
            });
        }
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
    assert_eq!(claims.len(), 5);
    for claim in claims {
        assert_eq!(claim.verdict(), verdict, "{claim:?}");
    }
}

#[test]
fn every_claim_can_hold_and_fail() {
    let best = data(|trial| 1.0 + f64::from(trial.logs) * 0.3, 1.0);
    all_are(&EXPERIMENT.judged(&best), ClaimVerdict::Holds);
    let worst = data(|trial| 1.0 + f64::from(trial.logs) * 0.5, 2.1);
    all_are(&EXPERIMENT.judged(&worst), ClaimVerdict::Fails);
}

#[test]
fn smoke_judges_nothing() {
    let mut small = data(|_| 1.0, 1.0);
    small.scale = Scale::Smoke;
    all_are(&EXPERIMENT.judged(&small), ClaimVerdict::Open);
    let mut quiet = data(|_| 1.0, 1.0);
    quiet
        .records
        .retain(|one| one.trial.kill_client == Victim::None);
    let open = EXPERIMENT.judged(&quiet).into_iter();
    let open = open.filter(|claim| claim.verdict() == ClaimVerdict::Open);
    assert_eq!(open.count(), 3);
}

#[test]
fn figure_and_report_have_all_that_was_run() {
    let data = data(|_| 1.0, 1.25);
    let [svg, _, _, report] = EXPERIMENT.pictures(&data).unwrap();
    let svg = String::from_utf8(svg.bytes).unwrap();
    for text in [
        "Killed: the client that leads",
        "Killed: another client",
        "no kills, rows of 1024 bytes",
        "aim: two leases",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    let report = String::from_utf8(report.bytes).unwrap();
    for line in [
        "| 3 | 3 | 128 | ",
        "| 1 | 0 | 1024 | ",
        "| another client | 3 | 1250 | 1.25 | ",
        "| the client that leads | 1 | 90 | ",
    ] {
        assert!(report.contains(line), "{report}");
    }
    let columns = |line: &str| line.split(',').count();
    let csv = data.to_csv();
    let names = columns(csv.lines().next().unwrap());
    assert!(csv.lines().all(|line| columns(line) == names), "{csv}");
}
