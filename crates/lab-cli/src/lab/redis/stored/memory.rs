//! GETs and SETs on keys whose values are larger than the memory that they may take.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::Figure;

use super::super::trial::{Measure, Work};
use super::trial::{Compactions, Outcome, Trial};
use super::{Stored, panel, points};
use crate::lab::fill::judge;

/// The experiment.
pub static EXPERIMENT: Design<Stored> = Design {
    name: "redis-larger-than-memory",
    about: "GET and SET on values that take several times the memory that they may, their 99th percentile",
    origin: "No paper's: what a server does whose data grow past its memory.",
    swept: "values, of the memory for them",
    plan,
    at: Trial::times_memory,
    label: |_, trial| format!("{} times the memory", trial.times_memory()),
    figure,
    judge: claims,
};

/// What is asked for.
const WORKS: [Work; 2] = [Work::Get, Work::Set];
/// Bytes of a value.
const VALUE_BYTES: u32 = 4096;
/// The point that the target is about.
const TIMES: f64 = 4.0;

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    // Halves of the memory.
    let halves: &[u32] = scale.pick(&[1, 8], &[1, 2, 8, 16], &[1, 2, 8, 16]);
    let memory_mb: u32 = scale.pick(16, 64, 1024);
    let seeds = (seed..).take(scale.pick(1, 5, 5));
    let trials = seeds.flat_map(|seed| {
        halves.iter().map(move |halves| Trial {
            compactions: Compactions::Local,
            shares: None,
            works: WORKS.to_vec(),
            is_filled: true,
            value_bytes: VALUE_BYTES,
            keys: (memory_mb << 20) / VALUE_BYTES * halves / 2,
            commands: scale.pick(1_000, 50_000, 500_000),
            clients: scale.pick(4, 50, 50),
            memory_mb,
            write_buffer_mb: scale.pick(4, 16, 64),
            min_mb: 0,
            seed,
        })
    });
    trials.collect()
}

fn figure(design: &Design<Stored>, data: &Data<Stored>) -> Figure {
    let panels = WORKS.into_iter().flat_map(|work| {
        let of_work = |number: fn(&Measure) -> f64| move |run: &Outcome| run.number(work, number);
        [
            panel(
                (design, data),
                work,
                ("rate", "commands/s"),
                of_work(Measure::rate),
            ),
            panel(
                (design, data),
                work,
                ("99th percentile", "ms"),
                of_work(|one| one.p99_ms),
            ),
        ]
    });
    Figure {
        title: "Values larger than their memory".into(),
        columns: 2,
        legend_cell: 4,
        panels: panels.collect(),
        notes: vec![
            "Medians; bars: their range".into(),
            format!("Values of {VALUE_BYTES} bytes; --durability async"),
        ],
    }
}

fn claims(_: &Design<Stored>, data: &Data<Stored>) -> Vec<Claim> {
    let says = "Values of four times the memory for them: every GET and SET is answered without an error; \
                the 99th percentile is told.";
    let p99 = WORKS.map(|work| {
        let points = points(&EXPERIMENT, data, Compactions::Local, work);
        let point = points.iter().find(|at| at.x.total_cmp(&TIMES).is_eq())?;
        let errors: u64 = point.outcomes().map(|run| run.errors).sum();
        Some((
            point.median(|run| run.number(work, |one| one.p99_ms)),
            errors,
        ))
    });
    let [get, set] = p99;
    let serves_on = judge(Source::Target, says, get.zip(set), |(get, set)| {
        let said = format!(
            "p99 of GET {:.2} ms, of SET {:.2} ms; {} errors",
            get.0, set.0, get.1
        );
        (Measured::millis(get.0.max(set.0), said), get.1 == 0)
    });
    vec![serves_on]
}

/// What a reader must know.
pub(super) const UNLIKE: &str = "
## How to read this

- `manxdb serve --redis-engine rocksdb --redis-memory-mb`: a value that left memory is read from the store \
by the next command that uses it, off the loop that runs commands. Keys are drawn evenly, so that of four \
times the memory three GETs of four need the store: a load with a working set needs it less.
- SET does not read the value that it replaces, also when that one has left memory.
- The store's files are in the memory of the operating system, and blocks of them in RocksDB's cache: a disk \
that has to be waited for is slower.
- Server and redis-benchmark share this machine's cores. Whether all is answered does not depend on the \
build or on other work beside it, and is judged at every scale; rates and percentiles do.
- After a run every key is there, values have left memory, and keys and values take no more than half as \
much again as they may.
";
