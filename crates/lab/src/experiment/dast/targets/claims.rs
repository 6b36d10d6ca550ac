//! What is claimed of the targets, and whether it holds.

use super::super::{Claim, Data, Experiment, Measured, Record, Source, series};
use super::{BASE, Case, SYSTEMS, cases};
use crate::systems::SystemName;
use crate::trial::{Cpu, TrialOutcome};

/// A number of a case under DAST.
fn tail(data: &Data, case: Case, number: fn(&TrialOutcome) -> f64) -> Option<f64> {
    of_system(data, SystemName::Dast, case, number)
}

fn of_system(
    data: &Data,
    system: SystemName,
    case: Case,
    number: fn(&TrialOutcome) -> f64,
) -> Option<f64> {
    let belongs =
        |record: &Record| record.trial.system == system && Case::of(&record.trial) == case;
    let found = series(&data.records, belongs, |_| 0.0);
    found.first().map(|at| at.median(number))
}

pub(super) fn claims(_: &Experiment, data: &Data) -> Vec<Claim> {
    let local: fn(&TrialOutcome) -> f64 = |outcome| outcome.local.p99;
    let cross: fn(&TrialOutcome) -> f64 = |outcome| outcome.cross_region.p99;
    let modelled = Case {
        cpu: Cpu::Modelled,
        ..BASE
    };
    let mut claims = Vec::new();
    for (case, how) in [
        (BASE, "with message delays only"),
        (modelled, "with the CPU model"),
    ] {
        for (kind, number, most) in [("IRT", local, 16.0), ("CRT", cross, 225.0)] {
            let says = format!("{kind} tail at most {most} ms, {how}.");
            claims.push(match tail(data, case, number) {
                Some(tail) => Claim::judged(
                    Source::Target,
                    says,
                    Measured::millis(tail, format!("99th percentile {tail:.2} ms")),
                    tail <= most,
                ),
                None => Claim::open(Source::Target, says, "not run"),
            });
        }
    }
    let unchanged = |what: &str, cases: &[Case]| {
        let says =
            format!("The IRT tail is the same within 1 ms {what}, with message delays only.");
        let tails: Option<Vec<f64>> = cases.iter().map(|case| tail(data, *case, local)).collect();
        let Some(tails) = tails else {
            return Claim::open(Source::Target, says, "not run");
        };
        let shown: Vec<String> = tails.iter().map(|tail| format!("{tail:.2}")).collect();
        let (low, high) = (
            tails.iter().copied().fold(f64::MAX, f64::min),
            tails.iter().copied().fold(0.0, f64::max),
        );
        Claim::judged(
            Source::Target,
            says,
            Measured::millis(high, format!("99th percentile {} ms", shown.join(" and "))),
            high - low <= 1.0,
        )
    };
    claims.push(unchanged(
        "with jitter of ±30 ms between regions",
        &[
            BASE,
            Case {
                jitter_ms: 30,
                ..BASE
            },
        ],
    ));
    claims.push(unchanged(
        "with nine tenths of CRTs",
        &[
            BASE,
            Case {
                crt_percent: 90,
                ..BASE
            },
        ],
    ));
    claims.push(unchanged(
        "from 3 over 5 to 10 shards a region",
        &[3, 5, 10].map(|shards| Case { shards, ..BASE }),
    ));
    claims.extend(ahead(data));
    claims.push(like_dast(data));
    claims.extend(SYSTEMS.map(|system| where_they_meet(data, system)));
    claims
}

/// What is aimed at when cross-region transactions are ordered ahead.
fn ahead(data: &Data) -> Vec<Claim> {
    let median: fn(&TrialOutcome) -> f64 = |outcome| outcome.cross_region.p50;
    let tail: fn(&TrialOutcome) -> f64 = |outcome| outcome.cross_region.p99;
    let (jitter, shares, shards, cpu) = (
        Case {
            jitter_ms: 30,
            ..BASE
        },
        Case {
            crt_percent: 90,
            ..BASE
        },
        Case { shards: 10, ..BASE },
        Case {
            cpu: Cpu::Modelled,
            ..BASE
        },
    );
    let aims = [
        (BASE, "median", median, 122.5, "with message delays only"),
        (BASE, "tail", tail, 125.0, "with message delays only"),
        (shares, "tail", tail, 125.0, "with nine tenths of CRTs"),
        (shards, "tail", tail, 125.0, "with 10 shards a region"),
        (jitter, "tail", tail, 195.0, "with jitter of ±30 ms"),
        (cpu, "tail", tail, 135.0, "with the CPU model"),
    ];
    let claims = aims.map(|(case, what, number, most, how)| {
        let says = format!("Ordered ahead, CRT {what} at most {most} ms, {how}.");
        match of_system(data, SystemName::Ahead, case, number) {
            Some(found) => Claim::judged(
                Source::Target,
                says,
                Measured::millis(found, format!("{found:.2} ms")),
                found <= most,
            ),
            None => Claim::open(Source::Target, says, "not run"),
        }
    });
    claims.into()
}

/// Local transactions do not notice which way cross-region ones are ordered.
fn like_dast(data: &Data) -> Claim {
    let says = "Ordered ahead, the IRT tail is at most 0.5 ms above DAST's in every case of \
                payments.";
    let local: fn(&TrialOutcome) -> f64 = |outcome| outcome.local.p99;
    let payments = cases().into_iter().filter(|case| !case.meets);
    let both = payments.filter_map(|case| {
        let ahead = of_system(data, SystemName::Ahead, case, local)?;
        Some((ahead, ahead - tail(data, case, local)?))
    });
    let most = both.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)));
    let Some((highest, most)) = most else {
        return Claim::open(Source::Target, says, "not run");
    };
    let text = format!("at most {highest:.2} ms, which is {most:+.2} ms");
    let measured = Measured::millis(highest, text);
    Claim::judged(Source::Target, says, measured, most <= 0.5)
}

/// The price that no serializable order avoids.
fn where_they_meet(data: &Data, system: SystemName) -> Claim {
    let says = format!(
        "{}: where IRTs read rows that wait for another region's value, their tail is that of the wide \
         network, more than 50 ms.",
        system.title()
    );
    let case = Case {
        meets: true,
        ..BASE
    };
    match of_system(data, system, case, |outcome| outcome.local.p99) {
        Some(found) => Claim::judged(
            Source::Target,
            says,
            Measured::millis(found, format!("99th percentile {found:.2} ms")),
            found > 50.0,
        ),
        None => Claim::open(Source::Target, says, "not run"),
    }
}
