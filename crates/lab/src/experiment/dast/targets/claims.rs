//! What is claimed of the targets, and whether it holds.

use super::super::{Claim, Data, Experiment, Measured, Record, Source, series};
use super::{BASE, Case};
use crate::trial::{Cpu, TrialOutcome};

/// The tail of a case.
fn tail(data: &Data, case: Case, number: fn(&TrialOutcome) -> f64) -> Option<f64> {
    let belongs = |record: &Record| Case::of(&record.trial) == case;
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
    claims
}
