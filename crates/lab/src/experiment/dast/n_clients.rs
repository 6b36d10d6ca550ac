//! Latencies and throughput as clients are added.

use super::panels::{Marks, five, points};
use super::{At, Claim, Data, Experiment, Measured, Scale, Source, busiest_role};
use crate::figure::{Figure, Mark};
use crate::systems::SystemName;
use crate::trial::{Trial, TrialOutcome, Workload};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "n-clients",
    about: "throughput and latencies of TPC-C as clients are added",
    origin: "Experiment 1 of the paper: 1 to 3 client processes a shard with 1 to 50 requests under \
             way each. Numbers of clients that two such pairs have in common are run once.",
    swept: "clients per region",
    plan,
    at,
    label: Experiment::number,
    figure,
    judge: claims,
};

/// Servers less busy than this have short lines: latencies are the protocol's.
const LIGHT: f64 = 0.7;
/// And with servers less busy than this there are hardly any lines at all.
const UNLOADED: f64 = 0.3;

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let outstanding: &[u32] = scale.pick(
        &[2, 8],
        &[1, 5, 10, 20, 30, 50],
        &[1, 5, 10, 15, 20, 25, 30, 40, 50],
    );
    let processes: &[u32] = scale.pick(&[1], &[1, 3], &[1, 2, 3]);
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
    let mut light: Vec<&At<'_>> = all.iter().filter(|at| busiest(at) < LIGHT).collect();
    let mut claims = match light.pop() {
        // All that is said of few clients needs a point with few of them.
        Some(loaded) if busiest(first) < UNLOADED => vec![
            local_start(first),
            cross_start(first),
            climb(first, loaded),
            linear(first, loaded),
        ],
        _ => Vec::new(),
    };
    claims.push(peak(data, last));
    claims.extend(against_others(experiment, data, &all));
    claims
}

fn busiest(at: &At<'_>) -> f64 {
    at.median(|outcome| outcome.busiest_server)
}

fn local_start(first: &At<'_>) -> Claim {
    let tail = first.median(|outcome| outcome.local.p99);
    let measured = format!(
        "99th percentile {tail:.1} ms at {} clients a region",
        first.x
    );
    let says = "The IRT tail starts below 20 ms.";
    Claim::judged(
        Source::Artifact,
        says,
        Measured::millis(tail, measured),
        tail < 20.0,
    )
}

fn cross_start(first: &At<'_>) -> Claim {
    let tail = first.median(|outcome| outcome.cross_region.p99);
    let measured = format!(
        "99th percentile {tail:.1} ms at {} clients a region; judged: at most 240",
        first.x
    );
    let says = "The CRT tail starts at about 230 ms.";
    Claim::judged(
        Source::Artifact,
        says,
        Measured::millis(tail, measured),
        tail <= 240.0,
    )
}

fn climb(first: &At<'_>, loaded: &At<'_>) -> Claim {
    let tail = |at: &At<'_>| at.median(|outcome| outcome.cross_region.p99);
    let measured = format!(
        "{:.1} ms, and {:.1} ms at {} clients a region, where the busiest server is still below \
         {:.0} % busy; judged: by at most a half",
        tail(first),
        tail(loaded),
        loaded.x,
        LIGHT * 100.0
    );
    let holds = tail(loaded) <= tail(first) * 1.5;
    Claim::judged(
        Source::Artifact,
        "From there it climbs slowly.",
        Measured::ratio(tail(loaded) / tail(first), measured),
        holds,
    )
}

fn linear(first: &At<'_>, loaded: &At<'_>) -> Claim {
    let each = |at: &At<'_>| at.median(|outcome| outcome.throughput) / at.x;
    let median = |at: &At<'_>| at.median(|outcome| outcome.local.p50);
    let share = each(loaded) / each(first);
    let measured = format!(
        "at {} clients a region, the last point below {:.0} %, each asks {:.0} % of what it does at \
         {}, as the median IRT goes from {:.1} to {:.1} ms; judged: 85 %",
        loaded.x,
        LIGHT * 100.0,
        share * 100.0,
        first.x,
        median(first),
        median(loaded)
    );
    let says = "Throughput is linear in clients until servers are about 70 % busy.";
    Claim::judged(
        Source::Derived,
        says,
        Measured::ratio(share, measured),
        share >= 0.85,
    )
}

/// What a shard executes at most.
fn peak(data: &Data, last: &At<'_>) -> Claim {
    let first = data.records.first();
    let shards = first.map_or(1, |record| record.trial.topology().shards());
    let each = last.median(|outcome| outcome.throughput) / f64::from(shards);
    let says = "A shard executes 2,000 to 2,500 transactions a second when servers are full.";
    let measured = format!(
        "{each:.0} at {} clients a region, the busiest server, a {}, {:.0} % busy",
        last.x,
        busiest_role(last),
        100.0 * busiest(last).min(1.0)
    );
    if busiest(last) < 0.95 {
        return Claim::open(Source::Derived, says, measured);
    }
    let holds = (2_000.0..=2_500.0).contains(&each);
    let measured = Measured::new(each, 1.0..=1e6, measured);
    Claim::judged(Source::Derived, says, measured, holds)
        .circular("the CPU model was calibrated to this number")
}

/// DAST beside the others, at the last point at which its servers have short lines: there both are
/// asked by as many clients.
fn against_others(experiment: &Experiment, data: &Data, all: &[At<'_>]) -> Vec<Claim> {
    let light = all.iter().rfind(|at| busiest(at) < LIGHT);
    let mut claims = Vec::new();
    for system in [SystemName::Janus, SystemName::Tapir, SystemName::Slog] {
        let theirs = points(experiment, data, system);
        let theirs = light.and_then(|own| theirs.iter().find(|at| at.x.total_cmp(&own.x).is_eq()));
        let both = light.zip(theirs);
        claims.push(lower(system, both, ("IRT", 87.9, 93.2), |one| {
            one.local.p99
        }));
        claims.push(lower(system, both, ("CRT", 27.7, 70.4), |one| {
            one.cross_region.p99
        }));
        claims.push(comparable(system, both));
    }
    claims
}

/// DAST's point and the other's.
type Both<'a> = Option<(&'a At<'a>, &'a At<'a>)>;

/// The paper's range is over three systems: a tail that is lower by even more is not held against DAST.
fn lower(
    system: SystemName,
    both: Both<'_>,
    (kind, least, most): (&str, f64, f64),
    tail: fn(&TrialOutcome) -> f64,
) -> Claim {
    let name = system.title();
    let says = format!("The {kind} tail is {least} % to {most} % lower than that of {name}.");
    let Some((own, theirs)) = both else {
        return Claim::open(
            Source::Abstract,
            says,
            "not run at a point with short lines",
        );
    };
    let (own_tail, their_tail) = (own.median(tail), theirs.median(tail));
    let lower = 100.0 * (1.0 - own_tail / their_tail);
    let measured = format!(
        "{lower:.1} % lower: {own_tail:.1} ms and {their_tail:.1} ms at {} clients a region; judged: \
         at least {least} %",
        own.x
    );
    let measured = Measured::ratio(own_tail / their_tail, measured);
    Claim::judged(Source::Abstract, says, measured, lower >= least)
}

fn comparable(system: SystemName, both: Both<'_>) -> Claim {
    let name = system.title();
    let says = format!("Throughput and medians are comparable to those of {name}.");
    let Some((own, theirs)) = both else {
        return Claim::open(
            Source::Artifact,
            says,
            "not run at a point with short lines",
        );
    };
    type Number = fn(&TrialOutcome) -> f64;
    let numbers: [(&str, Number); 3] = [
        ("throughput", |one| one.throughput),
        ("median IRT", |one| one.local.p50),
        ("median CRT", |one| one.cross_region.p50),
    ];
    let ratios = numbers.map(|(what, number)| (what, own.median(number) / theirs.median(number)));
    let shown: Vec<String> = ratios
        .iter()
        .map(|(what, ratio)| format!("{what} {ratio:.2}"))
        .collect();
    let farthest = ratios
        .iter()
        .map(|(_, ratio)| ratio.max(1.0 / ratio))
        .fold(1.0, f64::max);
    let measured = format!(
        "DAST's by {name}'s at {} clients a region: {}; judged: within a half",
        own.x,
        shown.join(", ")
    );
    let measured = Measured::ratio(farthest, measured);
    Claim::judged(Source::Artifact, says, measured, farthest <= 1.5)
}
