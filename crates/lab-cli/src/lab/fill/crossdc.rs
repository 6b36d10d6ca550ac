//! Two databases in two zones, workers in both, and the control plane in one of them.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Figure, Mark};

use super::Filling;
use super::cgroup::Quotas;
use super::fillrandom::{KVROCKS, NO_QUOTAS, TOO_SMALL, judge, notes, open, percent, shape};
use super::lines::{panel, system};
use super::outcome::Outcome;
use super::trial::{Database, Mode, Placement, Shape, Storage, Trial};
use crate::lab::rack::farthest;

/// The experiment.
pub static EXPERIMENT: Design<Filling> = Design {
    name: "caas-crossdc",
    about: "fillrandom on databases in two zones, with workers in both and a control plane in one",
    origin: "CaaS-LSM's evaluation of Kvrocks over data centres, as far as one machine shows it: \
             whatever is said between the zones takes longer, to the control plane through a port \
             that holds it back, to the other zone's storage through a layer that holds back each \
             request. Storage is objects in a directory for each zone, where a database puts copies \
             of what workers need; ours compact eight files of level 0 at once for that reason, into a \
             level 1 twice as large, the others four, as RocksDB does. Two databases of unequal load \
             (three to one) with two fifths of a core each, two workers with a fifth of a core each; \
             local: the same without workers.",
    swept: "delay between the zones, one way (ms)",
    plan,
    at: |trial| f64::from(trial.delay_ms),
    label: |design, trial| format!("{}, {} ms", trial.mode.name(), design.at(trial)),
    figure,
    judge: claims,
};

/// Shares of a core of each database and of each worker.
const DATABASE: f64 = 0.4;
const WORKER: f64 = 0.2;
/// Who is compared.
const MODES: [Mode; 4] = [Mode::Static, Mode::Random, Mode::CaasLevel, Mode::Manxdb];

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let (repetitions, puts) = (scale.pick(1, 5, 5), scale.pick(3_000, 20_000, 3_000_000));
    let delays: &[u32] = scale.pick(&[5], &[0, 50], &[0, 10, 25, 50, 100]);
    let placement = |cpus, zone| Placement { cpus, zone };
    let trials = (seed..).take(repetitions).flat_map(|seed| {
        let trial = move |mode, delay_ms| Trial {
            mode,
            databases: [(0, puts), (1, puts / 3)]
                .map(|(zone, puts)| Database {
                    placement: placement(DATABASE, zone),
                    puts,
                })
                .to_vec(),
            workers: match mode {
                Mode::Local => Vec::new(),
                _ => vec![placement(WORKER, 0), placement(WORKER, 1)],
            },
            delay_ms,
            storage: Storage::Objects,
            shape: Shape {
                // As large as four memtables, as RocksDB's are.
                level1_kb: scale.pick(256, 4_096, 256 << 10),
                ..shape(scale)
            },
            seed,
        };
        let remote = delays
            .iter()
            .flat_map(move |delay| MODES.map(|mode| trial(mode, *delay)));
        std::iter::once(trial(Mode::Local, 0)).chain(remote)
    });
    trials.collect()
}

fn at(trial: &Trial) -> f64 {
    f64::from(trial.delay_ms)
}

fn figure(design: &Design<Filling>, data: &Data<Filling>) -> Figure {
    let panel = |title, y_label, number| panel(data, at, (title, design.swept, y_label), number);
    let mut throughput = panel("Puts of both", "1,000 puts/s", |run| run.ops() / 1e3);
    let mut tail = panel("99th percentile, the slower one", "latency (µs)", p99);
    if let Some(local) = system(Mode::Local).points(data, at).first() {
        let rate = local.median(|run| run.ops() / 1e3);
        throughput.marks = vec![Mark::level(1.28 * rate, "our local × 1.28")];
        tail.marks = vec![Mark::level(0.35 * local.median(p99), "our local × 0.35")];
    }
    let panels = vec![
        throughput,
        tail,
        panel("99.9th percentile, the slower one", "latency (ms)", |run| {
            run.worst(|one| one.p999_us) / 1e3
        }),
        panel("Writes stalled, both", "time (s)", |run| {
            run.sum(|one| one.stall_seconds)
        }),
        panel(
            "Puts of both, until all is compacted",
            "1,000 puts/s",
            |run| run.sustained() / 1e3,
        ),
        panel("CPU of all processes", "CPU seconds", Outcome::total_cpu),
        panel("To and from storage, of all", "MiB", Outcome::stored_mib),
    ];
    Figure {
        title: "fillrandom, two databases in two zones".into(),
        columns: 3,
        legend_cell: 7,
        panels,
        notes: notes(data),
    }
}

fn p99(run: &Outcome) -> f64 {
    run.worst(|one| one.p99_us)
}

/// Ratios of a number of ours to another mode's, at each delay that was run.
fn ratios(data: &Data<Filling>, other: Mode, number: fn(&Outcome) -> f64) -> Vec<(f64, f64)> {
    let others = system(other).points(data, at);
    let ours = system(Mode::Manxdb).points(data, at);
    let found = ours.iter().filter_map(|ours| {
        // Without workers there is no delay.
        let other = others
            .iter()
            .find(|one| other == Mode::Local || one.x.total_cmp(&ours.x).is_eq())?;
        let below = other.median(number);
        (below > 0.0).then(|| (ours.x, ours.median(number) / below))
    });
    found.collect()
}

fn said(ratios: &[(f64, f64)]) -> String {
    let each = ratios
        .iter()
        .map(|(delay, ratio)| format!("{} at {delay} ms", percent(*ratio)));
    each.collect::<Vec<_>>().join(", ")
}

fn claims(_: &Design<Filling>, data: &Data<Filling>) -> Vec<Claim> {
    let known = |ratios: Vec<(f64, f64)>| Some(ratios).filter(|ratios| !ratios.is_empty());
    let compare = |source, says: &str, other, number, holds: fn(f64) -> bool| {
        let ratios = known(ratios(data, other, number));
        judge(source, says, ratios.as_ref(), |ratios| {
            let all = ratios.iter().all(|(_, ratio)| holds(*ratio));
            (Measured::ratio(farthest(ratios), said(ratios)), all)
        })
    };
    let mut claims = vec![
        compare(
            Source::Artifact,
            "Kvrocks over data centres: 28 % more operations than with local compactions.",
            Mode::Local,
            Outcome::ops,
            |ratio| ratio >= 1.28,
        )
        .of_another_load(KVROCKS),
        compare(
            Source::Artifact,
            "Kvrocks over data centres: a 99th percentile 65 % lower.",
            Mode::Local,
            p99,
            |ratio| ratio <= 0.35,
        )
        .of_another_load(KVROCKS),
    ];
    let others = [
        (Mode::Static, "static"),
        (Mode::Random, "random"),
        (Mode::CaasLevel, "CaaS-LSM's order"),
    ];
    for (other, name) in others {
        let says = format!("More puts a second than {name} at every delay");
        let ahead =
            |says: &str, number| compare(Source::Target, says, other, number, |ratio| ratio > 1.0);
        claims.push(ahead(&format!("{says}."), Outcome::ops));
        let drained = format!("{says}, the drain counted too.");
        claims.push(ahead(&drained, Outcome::sustained));
    }
    let has_quotas = |quotas| quotas != Quotas::None;
    if data.scale == Scale::Smoke {
        open(claims, TOO_SMALL)
    } else if data
        .records
        .iter()
        .all(|one| has_quotas(one.outcome.quotas))
    {
        claims
    } else {
        open(claims, NO_QUOTAS)
    }
}
