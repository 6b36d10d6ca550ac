//! Latencies and throughput as clients are added.

use super::claim::{Claim, Source};
use super::panels::{Marks, five, points};
use super::{Experiment, Scale};
use crate::data::Data;
use crate::figure::{Figure, Mark};
use crate::systems::SystemName;
use crate::trial::{Trial, Workload};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "n-clients",
    about: "throughput and latencies of TPC-C as clients are added",
    origin: "Experiment 1 of the paper: 1 to 3 client processes a shard with 1 to 50 requests under \
             way each. Numbers of clients that two such pairs have in common are run once.",
    swept: "clients per region",
    plan,
    at,
    label: super::number,
    figure,
    claims,
};

/// Servers less busy than this have short lines: latencies are the protocol's.
const LIGHT: f64 = 0.7;

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let outstanding: &[u32] = scale.pick(
        &[2, 8],
        &[1, 5, 10, 20, 30, 50],
        &[1, 5, 10, 15, 20, 25, 30, 40, 50],
    );
    let processes: &[u32] = scale.pick(&[1], &[1, 2], &[1, 2, 3]);
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for processes in processes {
        for outstanding in outstanding {
            let clients = processes * outstanding;
            if !pairs.iter().any(|known| known.0 * known.1 == clients) {
                pairs.push((*processes, *outstanding));
            }
        }
    }
    pairs.sort_by_key(|(processes, outstanding)| processes * outstanding);
    let trials = pairs
        .into_iter()
        .map(|(clients_per_shard, outstanding)| Trial {
            clients_per_shard,
            outstanding,
            workload: Workload::Tpcc,
            ..scale.trial()
        });
    scale.repeated(seed, trials.collect())
}

fn at(trial: &Trial) -> f64 {
    trial.clients_per_region().into()
}

fn figure(experiment: &Experiment, data: &Data) -> Figure {
    let title = "TPC-C as clients are added";
    let marks = Marks {
        local_tail: vec![Mark::level(20.0, "published: starts below 20 ms")],
        local_median: vec![Mark::level(10.0, "derived: two local round trips")],
        cross_median: vec![Mark::level(210.0, "derived: 210 ms unloaded")],
        cross_tail: vec![Mark::level(230.0, "published: starts at 230 ms")],
        ..Marks::default()
    };
    five(experiment, data, title, marks)
}

fn claims(experiment: &Experiment, data: &Data) -> Vec<Claim> {
    let all = points(experiment, data, SystemName::Dast);
    let (Some(first), Some(last)) = (all.first(), all.last()) else {
        return Vec::new();
    };
    let mut claims = Vec::new();
    let local = first.median(|outcome| outcome.local.p99);
    claims.push(Claim::judged(
        Source::Artifact,
        "The IRT tail starts below 20 ms.",
        format!(
            "99th percentile {local:.1} ms at {} clients a region",
            first.x
        ),
        local < 20.0,
    ));
    let cross = first.median(|outcome| outcome.cross_region.p99);
    claims.push(Claim::judged(
        Source::Artifact,
        "The CRT tail starts at about 230 ms.",
        format!(
            "99th percentile {cross:.1} ms at {} clients a region; judged: at most 240",
            first.x
        ),
        cross <= 240.0,
    ));
    let is_light = |busiest: f64| busiest < LIGHT;
    let light: Vec<_> = all
        .iter()
        .filter(|at| is_light(at.median(|outcome| outcome.busiest_server)))
        .collect();
    let loaded = light.last().map_or(first, |at| *at);
    let climbed = loaded.median(|outcome| outcome.cross_region.p99);
    claims.push(Claim::judged(
        Source::Artifact,
        "From there it climbs slowly.",
        format!(
            "{cross:.1} ms, and {climbed:.1} ms at {} clients a region, where the busiest server is \
             still below {:.0} % busy; judged: by at most a half",
            loaded.x,
            LIGHT * 100.0
        ),
        climbed <= cross * 1.5,
    ));
    let per_client = |at: &super::series::At<'_>| at.median(|outcome| outcome.throughput) / at.x;
    let least = light
        .iter()
        .map(|at| per_client(at))
        .fold(f64::MAX, f64::min);
    claims.push(Claim::judged(
        Source::Derived,
        "Throughput is linear in clients until servers are about 70 % busy.",
        format!(
            "up to {} clients a region each adds at least {:.0} % of what the first ones do; judged: 85 %",
            loaded.x,
            100.0 * least / per_client(first)
        ),
        least >= 0.85 * per_client(first),
    ));
    claims.push(peak(data, last));
    claims.extend(against_others());
    claims
}

/// What a shard executes at most.
fn peak(data: &Data, last: &super::series::At<'_>) -> Claim {
    let shards = data
        .records
        .first()
        .map_or(1, |record| record.trial.topology().shards());
    let each = last.median(|outcome| outcome.throughput) / f64::from(shards);
    let busiest = last.median(|outcome| outcome.busiest_server);
    let says = "A shard executes 2,000 to 2,500 transactions a second when it is full.";
    let measured = format!(
        "{each:.0} at {} clients a region, the busiest server {:.0} % busy",
        last.x,
        100.0 * busiest.min(1.0)
    );
    if busiest < 0.95 {
        return Claim::open(Source::Derived, says, measured);
    }
    Claim::judged(
        Source::Derived,
        says,
        measured,
        (2_000.0..=2_500.0).contains(&each),
    )
}

/// What takes the other systems to judge.
fn against_others() -> [Claim; 3] {
    let missing = "Janus, TAPIR and SLOG are not in the lab yet";
    [
        Claim::open(
            Source::Abstract,
            "The IRT tail is 87.9 % to 93.2 % lower than that of Janus, TAPIR and SLOG.",
            missing,
        ),
        Claim::open(
            Source::Abstract,
            "The CRT tail is 27.7 % to 70.4 % lower than theirs.",
            missing,
        ),
        Claim::open(
            Source::Artifact,
            "Throughput and medians are comparable to theirs.",
            missing,
        ),
    ]
}
