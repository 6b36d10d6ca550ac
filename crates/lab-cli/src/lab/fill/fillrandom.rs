//! One database under db_bench's fillrandom, with half a core, and workers that have one core
//! together.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{At, Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Figure, Mark};

use super::Filling;
use super::cgroup::Quotas;
use super::lines::{panel, system};
use super::outcome::Outcome;
use super::trial::{Compression, Database, Mode, Placement, Shape, Storage, Trial};

/// The experiment.
pub static EXPERIMENT: Design<Filling> = Design {
    name: "caas-fillrandom",
    about: "fillrandom on a database with half a core, compacted by itself or by workers with one",
    origin: "The load of CaaS-LSM's evaluation (db_bench fillrandom, 16 threads, 16-byte keys, \
             100-byte values, 8 background jobs), smaller, with its baselines: the published figures \
             exist as plots only, so the numbers to compare with are those of its abstract and its \
             README.",
    swept: "workers that share one core",
    plan,
    at,
    label: |design, trial| match trial.mode {
        Mode::Local => format!("local, {} CPU", trial.databases[0].placement.cpus),
        mode => format!("{}, {} workers", mode.name(), design.at(trial)),
    },
    figure,
    judge: claims,
};

/// Share of a core of the database,
const DATABASE: f64 = 0.5;
/// and of all workers together.
const WORKERS: f64 = 1.0;
/// As how many workers they come when it is not one.
const MANY: u32 = 4;

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let repetitions = scale.pick(1, 5, 5);
    let shapes = (seed..).take(repetitions).flat_map(|seed| {
        let trial = move |mode, cpus, workers: u32| Trial {
            mode,
            databases: vec![Database {
                placement: Placement { cpus, zone: 0 },
                puts: scale.pick(3_000, 70_000, 4_000_000),
            }],
            workers: (0..workers)
                .map(|_| Placement {
                    cpus: WORKERS / f64::from(workers),
                    zone: 0,
                })
                .collect(),
            delay_ms: 0,
            storage: Storage::Directory,
            shape: shape(scale),
            seed,
        };
        let local = [DATABASE, DATABASE + WORKERS].map(|cpus| trial(Mode::Local, cpus, 0));
        let remote = [1, MANY].into_iter().flat_map(move |workers| {
            let modes = Mode::ALL.into_iter().filter(|mode| *mode != Mode::Local);
            modes.map(move |mode| trial(mode, DATABASE, workers))
        });
        local.into_iter().chain(remote)
    });
    shapes.collect()
}

/// The published one, and smaller ones of the same proportions.
pub(in crate::lab) fn shape(scale: Scale) -> Shape {
    Shape {
        threads: scale.pick(4, 16, 16),
        value_bytes: 100,
        background_jobs: 8,
        memtable_kb: scale.pick(64, 1_024, 64 << 10),
        file_kb: scale.pick(64, 1_024, 64 << 10),
        level1_kb: scale.pick(256, 2_048, 256 << 10),
        compression: Compression::Zstd,
        // A sixteenth of the published sizes and less: what is small there is nothing here.
        min_mb: scale.pick(0, 0, 4),
    }
}

fn at(trial: &Trial) -> f64 {
    f64::from(u32::try_from(trial.workers.len()).unwrap_or(u32::MAX))
}

fn figure(design: &Design<Filling>, data: &Data<Filling>) -> Figure {
    let panel = |title, y_label, number| panel(data, at, (title, design.swept, y_label), number);
    let mut throughput = panel("Puts", "1,000 puts/s", |run| run.ops() / 1e3);
    throughput.marks = marks(data);
    let panels = vec![
        throughput,
        panel("Mean latency", "latency (µs)", Outcome::mean_us),
        panel("99th percentile", "latency (µs)", |run| {
            run.worst(|one| one.p99_us)
        }),
        panel("99.9th percentile", "latency (ms)", |run| {
            run.worst(|one| one.p999_us) / 1e3
        }),
        panel("Writes stalled", "time (s)", |run| {
            run.sum(|one| one.stall_seconds)
        }),
        panel("Puts, until all is compacted", "1,000 puts/s", |run| {
            run.sustained() / 1e3
        }),
        panel("CPU of the database", "CPU seconds", Outcome::database_cpu),
        panel("CPU of all processes", "CPU seconds", Outcome::total_cpu),
    ];
    Figure {
        title: "fillrandom, one database with half a core".into(),
        columns: 3,
        legend_cell: 8,
        panels,
        notes: notes(data),
    }
}

/// Ratios that are published or aimed at, times what was measured here: nothing of it is published.
fn marks(data: &Data<Filling>) -> Vec<Mark> {
    let thousands = |run: &Outcome| run.ops() / 1e3;
    let fixed = system(Mode::Static).points(data, at);
    let fixed: Vec<_> = fixed
        .iter()
        .map(|at| (at.x, 1.61 * at.median(thousands)))
        .collect();
    let mut marks = Vec::new();
    if fixed.len() > 1 {
        marks.push(Mark::curve(fixed, "our static × 1.61"));
    }
    if let Some(local) = system(Mode::Local).points(data, at).first() {
        let local = local.median(thousands);
        marks.push(Mark::level(1.6 * local, "target: 1.6 × local"));
        marks.push(Mark::level(1.2 * local, "our local × 1.2"));
    }
    marks
}

/// What a reader must know of the runs.
pub(super) fn notes(data: &Data<Filling>) -> Vec<String> {
    let Some(first) = data.records.first() else {
        return Vec::new();
    };
    let (trial, shape) = (&first.trial, &first.trial.shape);
    vec![
        format!(
            "{} threads, memtables of {} KiB, level 1 of {} KiB, {}",
            shape.threads,
            shape.memtable_kb,
            shape.level1_kb,
            shape.compression.name()
        ),
        format!("{} puts at scale {}", trial.puts(), data.scale.name()),
        "Medians; bars: their range".into(),
        format!("Shares of a core by {}", first.outcome.quotas.name()),
        "Grey, dotted: what was measured here, times ratios that are published or aimed at".into(),
    ]
}

/// A claim's numbers: runs of a mode, with as many workers.
struct Compared<'a>(&'a Data<Filling>);

impl<'a> Compared<'a> {
    fn of(&self, mode: Mode, workers: f64) -> Option<At<'a, Filling>> {
        let points = system(mode).points(self.0, at);
        points.into_iter().find(|at| (at.x - workers).abs() < 0.5)
    }

    /// A number of one mode over that of another; with workers for those that have some.
    fn ratio(
        &self,
        one: Mode,
        other: Mode,
        workers: f64,
        number: fn(&Outcome) -> f64,
    ) -> Option<f64> {
        let of = |mode| self.of(mode, if mode == Mode::Local { 0.0 } else { workers });
        let (one, other) = (of(one)?.median(number), of(other)?.median(number));
        (other > 0.0).then(|| one / other)
    }

    /// The same with one worker and with four.
    fn both(&self, one: Mode, other: Mode, number: fn(&Outcome) -> f64) -> Option<[f64; 2]> {
        let at = |workers| self.ratio(one, other, workers, number);
        Some([at(1.0)?, at(f64::from(MANY))?])
    }
}

/// How much more or less a ratio says, in words.
pub(in crate::lab) fn percent(ratio: f64) -> String {
    format!("{:+.0} %", (ratio - 1.0) * 100.0)
}

fn claims(_: &Design<Filling>, data: &Data<Filling>) -> Vec<Claim> {
    let compared = Compared(data);
    let has_quotas = data
        .records
        .iter()
        .all(|record| record.outcome.quotas != Quotas::None);
    if data.scale == Scale::Smoke {
        return open(
            cpu_claims(&compared)
                .into_iter()
                .chain(rate_claims(&compared)),
            TOO_SMALL,
        );
    }
    let mut claims = cpu_claims(&compared);
    let rates = rate_claims(&compared);
    claims.extend(if has_quotas {
        rates
    } else {
        open(rates, NO_QUOTAS)
    });
    claims
}

/// Why claims about rates are open.
pub(in crate::lab) const NO_QUOTAS: &str = "nobody was held to a share of a core";
/// Why what is said of Kvrocks is not judged here.
pub(super) const KVROCKS: &str =
    "published of Kvrocks under its own load; here db_bench's fillrandom on a bare database";
/// Why all are.
pub(super) const TOO_SMALL: &str = "a load of this size tells nothing";

/// Claims that these data cannot judge.
pub(in crate::lab) fn open(claims: impl IntoIterator<Item = Claim>, why: &str) -> Vec<Claim> {
    claims.into_iter().map(|claim| claim.opened(why)).collect()
}

/// What CPU seconds tell, whatever a clock says.
fn cpu_claims(compared: &Compared<'_>) -> Vec<Claim> {
    let moved = "At least 34 % of the database's CPU seconds move to the worker.";
    let total = "All processes together take at most 10 % more CPU seconds than a database alone.";
    let database = compared.ratio(Mode::Manxdb, Mode::Local, 1.0, Outcome::database_cpu);
    let all = compared.ratio(Mode::Manxdb, Mode::Local, 1.0, Outcome::total_cpu);
    vec![
        judge(Source::Target, moved, database, |ratio| {
            let measured = format!("{:.0} % move, one worker", (1.0 - ratio) * 100.0);
            (Measured::ratio(ratio, measured), ratio <= 0.66)
        }),
        judge(Source::Target, total, all, |ratio| {
            let measured = format!("{}, one worker", percent(ratio));
            (Measured::ratio(ratio, measured), ratio <= 1.10)
        }),
    ]
}

fn rate_claims(compared: &Compared<'_>) -> Vec<Claim> {
    let against = |other| compared.both(Mode::Manxdb, other, Outcome::ops);
    let both = |ratios: [f64; 2]| {
        format!(
            "{} with one worker, {} with four",
            percent(ratios[0]),
            percent(ratios[1])
        )
    };
    let best = |ratios: [f64; 2]| ratios[0].max(ratios[1]);
    let least = |ratios: [f64; 2]| ratios[0].min(ratios[1]);
    // With one worker there is nothing to choose.
    let ahead = |other: Mode, what: &str, number| {
        let says = format!(
            "With four workers to choose from, more puts a second than {}{what}.",
            other.name()
        );
        judge(
            Source::Target,
            &says,
            compared.both(Mode::Manxdb, other, number),
            |ratios| (Measured::ratio(ratios[1], both(ratios)), ratios[1] > 1.0),
        )
    };
    let whole = ", the drain counted too";
    let local = compared.ratio(Mode::Manxdb, Mode::Local, 1.0, Outcome::ops);
    let latency = compared.both(Mode::Manxdb, Mode::Local, Outcome::mean_us);
    let ranked = compared.both(Mode::Random, Mode::CaasLevel, Outcome::ops);
    vec![
        judge(
            Source::Target,
            "Half a core and a worker with one: at least 1.6 times the puts of half a core alone.",
            local,
            |ratio| {
                let measured = Measured::ratio(ratio, format!("{ratio:.2} times"));
                (measured, ratio >= 1.6)
            },
        ),
        ahead(Mode::Static, "", Outcome::ops),
        ahead(Mode::Static, whole, Outcome::sustained),
        ahead(Mode::Random, "", Outcome::ops),
        ahead(Mode::Random, whole, Outcome::sustained),
        judge(
            Source::Artifact,
            "CaaS-LSM: up to 61 % more puts a second than Disaggre-RocksDB.",
            against(Mode::Static),
            |ratios| {
                let measured = format!("manxdb {} than static", both(ratios));
                (
                    Measured::ratio(best(ratios), measured),
                    best(ratios) >= 1.61,
                )
            },
        ),
        judge(
            Source::Artifact,
            "CaaS-LSM's order of jobs alone: up to 61 % more than Disaggre-RocksDB.",
            compared.both(Mode::CaasLevel, Mode::Static, Outcome::ops),
            |ratios| {
                let measured = format!("caas-level {} than static", both(ratios));
                (
                    Measured::ratio(best(ratios), measured),
                    best(ratios) >= 1.61,
                )
            },
        ),
        judge(
            Source::Artifact,
            "A worker drawn at random: 86 % fewer operations than CaaS-LSM's order (Nebula).",
            ranked,
            |ratios| {
                let measured = format!("random {} than caas-level", both(ratios));
                (
                    Measured::ratio(least(ratios), measured),
                    least(ratios) <= 0.14,
                )
            },
        ),
        judge(
            Source::Artifact,
            "Kvrocks: 20 % more operations than with local compactions.",
            against(Mode::Local),
            |ratios| {
                let measured = format!("manxdb {} than local", both(ratios));
                (Measured::ratio(best(ratios), measured), best(ratios) >= 1.2)
            },
        )
        .of_another_load(KVROCKS),
        judge(
            Source::Artifact,
            "Kvrocks: a mean latency 30 % lower than with local compactions.",
            latency,
            |ratios| {
                let measured = format!("manxdb {} than local", both(ratios));
                (
                    Measured::ratio(least(ratios), measured),
                    least(ratios) <= 0.7,
                )
            },
        )
        .of_another_load(KVROCKS),
    ]
}

/// A claim about numbers that may not be there.
pub(in crate::lab) fn judge<T: Copy>(
    source: Source,
    says: &str,
    found: Option<T>,
    judged: impl Fn(T) -> (Measured, bool),
) -> Claim {
    match found {
        Some(found) => {
            let (measured, holds) = judged(found);
            Claim::judged(source, says, measured, holds)
        }
        None => Claim::open(source, says, "these runs are not among the data"),
    }
}
