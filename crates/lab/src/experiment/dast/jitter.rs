//! Latencies and throughput on a wide network that is not even.

use super::panels::{Marks, five, flat, points};
use super::{At, Claim, Data, Experiment, Measured, Scale, Source};
use crate::figure::Figure;
use crate::systems::SystemName;
use crate::trial::{Trial, Workload};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "robust",
    about: "throughput and latencies of TPC-C under jitter between regions",
    origin: "Experiment 5 of the paper: each message between regions takes 50 ms plus or minus up to \
             X ms, evenly spread and never below zero; 2 client processes a shard with 15 requests \
             under way each. Here connections keep their order, where the artifact's network \
             emulation lets packets pass each other.",
    swept: "jitter X between regions (± ms)",
    plan,
    at,
    label: Experiment::number,
    figure,
    judge: claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let jitters: &[u32] = scale.pick(
        &[0, 30],
        &[0, 10, 20, 30, 40, 50, 60, 70, 80],
        &[0, 10, 20, 30, 40, 50, 60, 70, 80],
    );
    let (clients_per_shard, outstanding) = scale.pick((1, 4), (2, 15), (2, 15));
    let trials = jitters.iter().map(|jitter| Trial {
        wan_jitter_ms: *jitter,
        clients_per_shard,
        outstanding,
        workload: Workload::Tpcc,
        ..scale.trial()
    });
    scale.repeated(seed, trials.collect())
}

fn at(trial: &Trial) -> f64 {
    trial.wan_jitter_ms.into()
}

fn figure(experiment: &Experiment, data: &Data) -> Figure {
    let title = "TPC-C under jitter between regions";
    let all = points(experiment, data, SystemName::Dast);
    let marks = Marks {
        local_median: flat(&all, |outcome| outcome.local.p50),
        local_tail: flat(&all, |outcome| outcome.local.p99),
        ..Marks::default()
    };
    five(experiment, data, title, marks)
}

/// The share of the values' variance that a straight line explains.
fn straightness(points: &[(f64, f64)]) -> f64 {
    #[allow(clippy::cast_precision_loss)] // a dozen points
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|at| at.0), mean(|at| at.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let both = sum(&|at| (at.0 - x) * (at.1 - y));
    let (across, up) = (sum(&|at| (at.0 - x).powi(2)), sum(&|at| (at.1 - y).powi(2)));
    if across == 0.0 || up == 0.0 {
        return 0.0;
    }
    both * both / (across * up)
}

fn claims(experiment: &Experiment, data: &Data) -> Vec<Claim> {
    let all = points(experiment, data, SystemName::Dast);
    if all.len() < 2 {
        return Claim::of_one_point();
    }
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return Vec::new();
    };
    let tails = all.iter().map(|at| at.median(|outcome| outcome.local.p99));
    let (calm, worst) = (
        first.median(|outcome| outcome.local.p99),
        tails.fold(0.0, f64::max),
    );
    let cross: Vec<(f64, f64)> = all
        .iter()
        .map(|at| (at.x, at.median(|outcome| outcome.cross_region.p99)))
        .collect();
    let straight = straightness(&cross);
    let rises = cross.last().map(|at| at.1) > cross.first().map(|at| at.1);
    let rate = |at: &At<'_>| at.median(|outcome| outcome.throughput);
    vec![
        Claim::judged(
            Source::Artifact,
            "IRT latency is flat.",
            Measured::millis(
                worst,
                format!(
                    "99th percentile {calm:.1} ms without jitter, at most {worst:.1} ms with; judged: \
                     1 ms more"
                ),
            ),
            worst <= calm + 1.0,
        ),
        Claim::judged(
            Source::Artifact,
            "CRT latency grows in proportion to the jitter.",
            Measured::new(
                straight,
                0.0..=1.000_001,
                format!(
                    "99th percentile from {:.1} to {:.1} ms; a straight line explains {:.0} % of its \
                     variance; judged: 95 %",
                    cross.first().map_or(0.0, |at| at.1),
                    cross.last().map_or(0.0, |at| at.1),
                    straight * 100.0
                ),
            ),
            rises && straight >= 0.95,
        ),
        Claim::judged(
            Source::Artifact,
            "Throughput goes down slightly.",
            Measured::ratio(
                rate(last) / rate(first),
                format!(
                    "{:.0} transactions/s without jitter, {:.0} at ±{} ms; judged: by at most a third",
                    rate(first),
                    rate(last),
                    last.x
                ),
            ),
            rate(last) <= rate(first) && rate(last) >= rate(first) * 2.0 / 3.0,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_explains_itself_and_nothing_else() {
        assert!((straightness(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) - 1.0).abs() < 1e-12);
        assert!(straightness(&[(0.0, 1.0), (1.0, 9.0), (2.0, 1.0)]) < 0.1);
        assert!(straightness(&[(0.0, 1.0), (1.0, 1.0)]).abs() < 1e-12);
        assert!(straightness(&[]).abs() < 1e-12);
    }
}
