//! Throughput and latencies as regions are added.

use super::panels::{Marks, five, flat, points};
use super::{At, Claim, Data, Experiment, Measured, Scale, Source};
use crate::figure::{Figure, Mark};
use crate::systems::SystemName;
use crate::trial::{Trial, TrialOutcome, Workload};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "scalability",
    about: "throughput and latencies of TPC-C as regions are added",
    origin: "Experiment 4 of the paper: 2 client processes a shard with 15 requests under way each. \
             The share of transactions that cross regions grows with them, because the other \
             warehouse of a transaction is any of all.",
    swept: "regions",
    plan,
    at,
    label: Experiment::number,
    figure,
    judge: claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let regions: &[u32] = scale.pick(&[2, 4], &[2, 3, 5, 7, 10], &[2, 3, 5, 7, 10]);
    let (clients_per_shard, outstanding) = scale.pick((1, 4), (2, 15), (2, 15));
    let trials = regions.iter().map(|regions| Trial {
        regions: *regions,
        clients_per_shard,
        outstanding,
        workload: Workload::Tpcc,
        ..scale.trial()
    });
    scale.repeated(seed, trials.collect())
}

fn at(trial: &Trial) -> f64 {
    trial.regions.into()
}

fn figure(experiment: &Experiment, data: &Data) -> Figure {
    let title = "TPC-C as regions are added";
    let all = points(experiment, data, SystemName::Dast);
    let throughput = all.first().zip(all.last()).map(|(first, last)| {
        let each = first.median(|outcome| outcome.throughput) / 1_000.0 / first.x;
        let points = vec![(first.x, each * first.x), (last.x, each * last.x)];
        Mark::curve(points, "our first point, in proportion")
    });
    let marks = Marks {
        throughput: throughput.into_iter().collect(),
        local_median: flat(&all, |outcome| outcome.local.p50),
        local_tail: flat(&all, |outcome| outcome.local.p99),
        cross_median: flat(&all, |outcome| outcome.cross_region.p50),
        cross_tail: flat(&all, |outcome| outcome.cross_region.p99),
    };
    five(experiment, data, title, marks)
}

/// Share of answered transactions that crossed regions.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn crossing(outcome: &TrialOutcome) -> f64 {
    let (local, cross) = (
        outcome.local.count as f64,
        outcome.cross_region.count as f64,
    );
    cross / (local + cross).max(1.0)
}

fn claims(experiment: &Experiment, data: &Data) -> Vec<Claim> {
    let all = points(experiment, data, SystemName::Dast);
    if all.len() < 2 {
        return Claim::of_one_point();
    }
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return Vec::new();
    };
    let each = |at: &At<'_>| at.median(|outcome| outcome.throughput) / at.x;
    let least = all.iter().map(each).fold(f64::MAX, f64::min);
    let steady = |what: &str, number: fn(&TrialOutcome) -> f64, by: f64| {
        let highest = all.iter().map(|at| at.median(number)).fold(0.0, f64::max);
        Claim::judged(
            Source::Artifact,
            format!("{what} is flat."),
            Measured::millis(
                highest,
                format!(
                    "99th percentile {:.1} ms at {} regions, {:.1} ms at {}, at most {highest:.1} ms; \
                     judged: it grows by {by} ms at most",
                    first.median(number),
                    first.x,
                    last.median(number),
                    last.x
                ),
            ),
            highest - first.median(number) <= by,
        )
    };
    vec![
        Claim::judged(
            Source::Artifact,
            "Throughput grows in proportion to regions.",
            Measured::ratio(
                least / each(first),
                format!(
                    "{:.0} transactions/s a region at {} regions, {:.0} at {}; {:.1} % and {:.1} % of \
                     them cross regions; judged: no region loses more than a fifth",
                    each(first),
                    first.x,
                    each(last),
                    last.x,
                    100.0 * first.median(crossing),
                    100.0 * last.median(crossing)
                ),
            ),
            least >= 0.8 * each(first),
        ),
        steady("The IRT tail", |outcome| outcome.local.p99, 2.0),
        steady("The CRT tail", |outcome| outcome.cross_region.p99, 23.0),
    ]
}
