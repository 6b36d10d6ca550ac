//! SETs and HSETs on a server with half a core whose store is compacted by itself or by a worker.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::Figure;

use super::super::trial::{Measure, Work};
use super::trial::{Compactions, Shares, Trial};
use super::{Stored, panel, points};
use crate::lab::fill::{NO_QUOTAS, Quotas, judge, open, percent};
use crate::lab::rack::open_if_small;

/// The experiment.
pub static EXPERIMENT: Design<Stored> = Design {
    name: "caas-redis",
    about: "SET and HSET on a Redis server with half a core, compacted by itself or by a worker with one",
    origin: "The question of CaaS-LSM's evaluation of Kvrocks, asked of our server on one machine: its \
             artifact's README has about 20 % more operations and a mean latency 30 % lower than with \
             local compactions, measured on six nodes under a load that is not given.",
    swept: "bytes of a value",
    plan,
    at: |trial| f64::from(trial.value_bytes),
    label: |_, trial| {
        let works = trial.works.iter().map(|work| work.title());
        let works = works.collect::<Vec<_>>().join(" and ");
        let (bytes, who) = (trial.value_bytes, trial.compactions.title());
        format!("{works}, {bytes} bytes, {who}")
    },
    figure,
    judge: claims,
};

/// Those of caas-fillrandom.
const SHARES: Shares = Shares {
    server: 0.5,
    worker: 1.0,
};
/// What is written.
const WORKS: [Work; 2] = [Work::Set, Work::Hset];
/// Bytes that a row takes beside its value, about.
const ROW_BYTES: u32 = 64;
/// Each key is written about so many times.
const TIMES: u32 = 4;

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let values: &[u32] = scale.pick(&[100, 4096], &[100, 1024, 4096], &[100, 512, 1024, 4096]);
    let bytes: u32 = scale.pick(10 << 20, 192 << 20, 2 << 30);
    let seeds = (seed..).take(scale.pick(1, 5, 5));
    let trial = move |seed, work, value_bytes: u32, compactions| {
        let commands = bytes / (value_bytes + ROW_BYTES);
        Trial {
            compactions,
            shares: Some(SHARES),
            works: vec![work],
            is_filled: false,
            value_bytes,
            keys: commands / TIMES,
            commands,
            clients: scale.pick(10, 50, 50),
            memory_mb: 8192,
            write_buffer_mb: scale.pick(1, 4, 64),
            min_mb: scale.pick(0, 0, 4),
            seed,
        }
    };
    let trials = seeds.flat_map(|seed| {
        WORKS.into_iter().flat_map(move |work| {
            values.iter().flat_map(move |bytes| {
                Compactions::ALL.map(|compactions| trial(seed, work, *bytes, compactions))
            })
        })
    });
    trials.collect()
}

fn figure(design: &Design<Stored>, data: &Data<Stored>) -> Figure {
    let of = (design, data);
    let panels = WORKS.into_iter().flat_map(|work| {
        let of_work =
            |number: fn(&Measure) -> f64| move |run: &super::Outcome| run.number(work, number);
        [
            panel(of, work, ("rate", "commands/s"), of_work(Measure::rate)),
            panel(of, work, ("mean latency", "ms"), of_work(|one| one.mean_ms)),
            panel(
                of,
                work,
                ("99th percentile", "ms"),
                of_work(|one| one.p99_ms),
            ),
            panel(
                of,
                work,
                ("CPU with the drain", "CPU seconds of the server"),
                |run| run.server_cpu,
            ),
        ]
    });
    let quotas = data
        .records
        .first()
        .map_or(Quotas::None, |one| one.outcome.quotas);
    Figure {
        title: "SET and HSET beside compactions".into(),
        columns: 3,
        legend_cell: 8,
        panels: panels.collect(),
        notes: vec![
            "Medians; bars: their range".into(),
            format!("Shares of a core by {}", quotas.name()),
        ],
    }
}

/// How often a number with local compactions goes into that with pooled ones, for each size of values.
fn ratios(data: &Data<Stored>, work: Work, number: fn(&Measure) -> f64) -> Vec<(f64, f64)> {
    let [local, pooled] =
        Compactions::ALL.map(|compactions| points(&EXPERIMENT, data, compactions, work));
    let pairs = pooled.iter().filter_map(|pooled| {
        let local = local
            .iter()
            .find(|one| one.x.total_cmp(&pooled.x).is_eq())?;
        let [local, pooled] =
            [local, pooled].map(|at| (at.x, at.median(|run| run.number(work, number))));
        (local.1 > 0.0).then(|| (pooled.0, pooled.1 / local.1))
    });
    pairs.collect()
}

fn claims(_: &Design<Stored>, data: &Data<Stored>) -> Vec<Claim> {
    let claim = |work: Work, says: &str, number: fn(&Measure) -> f64, least: bool, bound: f64| {
        let says = format!(
            "{} of ours, at every size of values: {says} (published for Kvrocks on CaaS-LSM).",
            work.title()
        );
        let ratios = ratios(data, work, number);
        let found = Some(ratios.as_slice()).filter(|ratios| !ratios.is_empty());
        judge(Source::Target, &says, found, |ratios| {
            let each = ratios
                .iter()
                .map(|(bytes, ratio)| format!("{} with {bytes} bytes", percent(*ratio)));
            let said = each.collect::<Vec<_>>().join(", ");
            let ratios = ratios.iter().map(|(_, ratio)| *ratio);
            let worst = if least {
                ratios.fold(f64::INFINITY, f64::min)
            } else {
                ratios.fold(0.0, f64::max)
            };
            let holds = if least {
                worst >= bound
            } else {
                worst <= bound
            };
            (Measured::ratio(worst, said), holds)
        })
    };
    let mut claims = Vec::new();
    for work in WORKS {
        let more = "20 % more commands a second than with local compactions";
        claims.push(claim(work, more, Measure::rate, true, 1.2));
        let lower = "a mean latency 30 % lower than with local compactions";
        claims.push(claim(work, lower, |one| one.mean_ms, false, 0.7));
    }
    let is_held = |quotas| quotas != Quotas::None;
    if data.records.iter().all(|one| is_held(one.outcome.quotas)) {
        open_if_small(data, claims)
    } else {
        open(claims, NO_QUOTAS)
    }
}

/// What a reader must know.
pub(super) const UNLIKE: &str = "
## How to read this

- Ours, not Kvrocks: `manxdb serve --redis-engine rocksdb --durability async`, which answers from objects in \
memory and writes rows to its store; Kvrocks reads its store for every write of a hash. So compactions are a \
smaller part of its work, and waits for reads of the store none.
- One machine: server, worker, control plane and redis-benchmark share its cores, caches and disk. Quotas \
give the server half a core and the worker one, as in caas-fillrandom; with pooled compactions there is the \
worker's core beside the server's half. That is what a pool of other machines is worth at best, without \
their network. It cannot say what six nodes do.
- The quota of a server is spent and given anew ten times a second: a 99th percentile of tens of \
milliseconds may be that, on both sides. As each client waits for its reply, a mean latency 30 % lower is the same \
as 43 % more commands a second: both published numbers do not describe clients like these.
- SET draws from as many keys, and HSET from as many fields of one hash, that each is written four times. \
Values are numbers of twelve digits drawn anew, which compress.
- Drain: from the last reply until nothing is left to compact. CPU of the server and of the pool is of load \
and drain. After a run the keys or fields are as many as were drawn.
- Scale smoke writes 10 MiB with memtables of 1 MiB in whatever build the tests have: it shows that the \
worker compacts, and judges nothing.
";
