//! Latencies and throughput as keys get hotter.

use super::panels::{Marks, five, flat, points};
use super::{At, Claim, Data, Experiment, Measured, Scale, Source};
use crate::figure::Figure;
use crate::systems::SystemName;
use crate::trial::{Trial, TrialOutcome, Workload};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "tpca",
    about: "throughput and latencies of TPC-A as its keys get hotter",
    origin: "Experiment 3 of the paper: three increments of keys of a Zipf distribution, a tenth of \
             the transactions across regions, 50 requests under way a shard. The hottest keys are \
             on the first shards, so that region 0 is the hottest.",
    swept: "exponent of the Zipf distribution",
    plan,
    at,
    label: Experiment::number,
    figure,
    judge: claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let alphas: &[f64] = scale.pick(
        &[0.5, 1.0],
        &[0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
        &[0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
    );
    let trials = alphas.iter().map(|alpha| Trial {
        outstanding: scale.pick(6, 50, 50),
        workload: Workload::Tpca { alpha: *alpha },
        ..scale.trial()
    });
    scale.repeated(seed, trials.collect())
}

fn at(trial: &Trial) -> f64 {
    match trial.workload {
        Workload::Tpca { alpha } => alpha,
        Workload::Tpcc | Workload::Payment { .. } | Workload::Append { .. } => 0.0,
    }
}

fn figure(experiment: &Experiment, data: &Data) -> Figure {
    let title = "TPC-A as keys get hotter";
    let all = points(experiment, data, SystemName::Dast);
    let marks = Marks {
        throughput: flat(&all, |outcome| outcome.throughput / 1_000.0),
        local_median: flat(&all, |outcome| outcome.local.p50),
        local_tail: flat(&all, |outcome| outcome.local.p99),
        cross_median: flat(&all, |outcome| outcome.cross_region.p50),
        cross_tail: flat(&all, |outcome| outcome.cross_region.p99),
    };
    five(experiment, data, title, marks)
}

fn claims(experiment: &Experiment, data: &Data) -> Vec<Claim> {
    let all = points(experiment, data, SystemName::Dast);
    if all.len() < 2 {
        return Claim::of_one_point();
    }
    let steady = |what: &str, number: fn(&TrialOutcome) -> f64| {
        let values = || all.iter().map(|at| at.median(number));
        let (least, most) = (
            values().fold(f64::MAX, f64::min),
            values().fold(0.0, f64::max),
        );
        Claim::judged(
            Source::Artifact,
            format!("{what} is flat over the skew."),
            Measured::ratio(
                most / least,
                format!("from {least:.1} to {most:.1}; judged: within a tenth"),
            ),
            most <= least * 1.1,
        )
    };
    vec![
        steady("Throughput (transactions/s)", |outcome| outcome.throughput),
        steady("The IRT tail (ms)", |outcome| outcome.local.p99),
        steady("The CRT tail (ms)", |outcome| outcome.cross_region.p99),
        others(experiment, data),
    ]
}

/// What keys that get hotter do to the rates of the others.
fn others(experiment: &Experiment, data: &Data) -> Claim {
    let says = "TAPIR and Janus degrade as keys get hotter, SLOG does not.";
    let kept = |system| {
        let all = points(experiment, data, system);
        let rate = |at: &At<'_>| at.median(|outcome| outcome.throughput);
        let (first, last) = all.first().zip(all.last())?;
        (all.len() > 1).then(|| rate(last) / rate(first))
    };
    let systems = [SystemName::Tapir, SystemName::Janus, SystemName::Slog];
    let [Some(tapir), Some(janus), Some(slog)] = systems.map(kept) else {
        return Claim::open(Source::Artifact, says, "not run");
    };
    let measured = format!(
        "with the hottest keys TAPIR has {:.0} %, Janus {:.0} % and SLOG {:.0} % of the rate with the \
         mildest; judged: below 90 % degrades",
        tapir * 100.0,
        janus * 100.0,
        slog * 100.0
    );
    let holds = tapir < 0.9 && janus < 0.9 && slog >= 0.9;
    Claim::judged(
        Source::Artifact,
        says,
        Measured::ratio(slog, measured),
        holds,
    )
}
