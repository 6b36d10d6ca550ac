//! Latencies and throughput as more transactions cross regions.

use super::panels::{Marks, five, points};
use super::{Claim, Data, Experiment, Measured, Scale, Source};
use crate::figure::{Figure, Mark};
use crate::systems::SystemName;
use crate::trial::{Trial, Workload};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "crt-ratio",
    about: "throughput and latencies of Payment as more of it crosses regions",
    origin: "Experiment 2 of the paper: TPC-C's Payment alone, 25 requests under way a shard. Two \
             fifths of the cross-region payments carry a value from one region to another.",
    swept: "cross-region transactions (%)",
    plan,
    at,
    label: Experiment::number,
    figure,
    judge: claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let percents: &[u32] = scale.pick(
        &[10, 90],
        &[10, 20, 30, 40, 50, 60, 70, 80, 90],
        &[10, 20, 30, 40, 50, 60, 70, 80, 90],
    );
    let trials = percents.iter().map(|percent| Trial {
        outstanding: scale.pick(6, 25, 25),
        workload: Workload::Payment {
            cross_region: f64::from(*percent) / 100.0,
        },
        ..scale.trial()
    });
    scale.repeated(seed, trials.collect())
}

fn at(trial: &Trial) -> f64 {
    match trial.workload {
        Workload::Payment { cross_region } => (cross_region * 100.0).round(),
        Workload::Tpcc | Workload::Tpca { .. } | Workload::Append { .. } => 0.0,
    }
}

fn figure(experiment: &Experiment, data: &Data) -> Figure {
    let title = "Payment as more transactions cross regions";
    let marks = Marks {
        local_median: vec![Mark::level(10.0, "derived: two local round trips")],
        local_tail: vec![Mark::level(20.0, "published at few clients: 20 ms")],
        cross_median: vec![Mark::level(210.0, "derived: 210 ms unloaded")],
        cross_tail: vec![Mark::level(230.0, "published at few clients: 230 ms")],
        ..Marks::default()
    };
    five(experiment, data, title, marks)
}

fn claims(experiment: &Experiment, data: &Data) -> Vec<Claim> {
    let all = points(experiment, data, SystemName::Dast);
    if all.len() < 2 {
        return Claim::of_one_point();
    }
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return Vec::new();
    };
    let rates: Vec<f64> = all
        .iter()
        .map(|at| at.median(|outcome| outcome.throughput))
        .collect();
    let falls = rates.windows(2).all(|pair| pair[1] <= pair[0]);
    let worst = |number: fn(&crate::trial::TrialOutcome) -> f64| {
        all.iter().map(|at| at.median(number)).fold(0.0, f64::max)
    };
    let (median, tail) = (
        worst(|outcome| outcome.local.p50),
        worst(|outcome| outcome.local.p99),
    );
    vec![
        Claim::judged(
            Source::Artifact,
            "Throughput falls as more transactions cross regions.",
            Measured::ratio(
                rates.last().copied().unwrap_or_default()
                    / rates.first().copied().unwrap_or_default(),
                format!(
                    "{:.0} transactions/s at {} %, {:.0} at {} %; judged: never up",
                    rates.first().copied().unwrap_or_default(),
                    first.x,
                    rates.last().copied().unwrap_or_default(),
                    last.x
                ),
            ),
            falls,
        ),
        Claim::judged(
            Source::Artifact,
            "IRT median and tail stay low.",
            Measured::millis(
                tail,
                format!(
                    "at most {median:.1} ms and {tail:.1} ms (99th percentile) at any share; judged: \
                     below 20 ms"
                ),
            ),
            tail < 20.0,
        ),
        Claim::open(
            Source::Artifact,
            "CRT latency may rise and then fall.",
            format!(
                "99th percentile {:.1} ms at {} %, {:.1} ms at {} %, at most {:.1} ms; nothing to judge in “may”",
                first.median(|outcome| outcome.cross_region.p99),
                first.x,
                last.median(|outcome| outcome.cross_region.p99),
                last.x,
                worst(|outcome| outcome.cross_region.p99)
            ),
        ),
    ]
}
