//! What reports say behind their claims: parameters, numbers, and what a reader must know.

use std::fmt::Write as _;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{At, Design};

use super::Filling;
use super::lines::System;
use super::trial::{Mode, Trial};

/// Parameters, numbers, and how the runs differ from the published ones.
pub fn details(design: &Design<Filling>, data: &Data<Filling>) -> String {
    let mut text = String::new();
    parameters(&mut text, data);
    numbers(&mut text, design, data);
    text.push_str(UNLIKE);
    text
}

const UNLIKE: &str = "\
## How to read this

- The baselines differ from ours in what the papers say differs: which job goes to which worker \
when, how many a worker runs at a time, and that their databases give away every compaction and \
wait for it whatever it takes. They use our transport and our checks: no second-long polls, no RPC \
that hangs for ever. Their published figures are of other machines and of larger data.
- `static` has one worker for a database by definition, so that of four workers three have nothing \
to do for one database. The gain over it is what sharing workers is worth, not what compacting \
elsewhere is worth. For that compare with `local`, and with `local` that has the workers' CPU too.
- Processes, the database's 16 clients and the emulated delays share two cores. Quotas hold \
processes to their shares; caches and the disk are shared.
- CPU seconds are user and system time of the processes, from the first put until nothing is left to \
compact; of workers and control plane from when they were up.
- After every run every entry was read and compared with what was put last under its key.
";

/// The different values of something over all trials, in their order.
fn each(data: &Data<Filling>, value: impl Fn(&Trial) -> String) -> String {
    let mut values: Vec<String> = Vec::new();
    for record in &data.records {
        let value = value(&record.trial);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.join(", ")
}

fn parameters(text: &mut String, data: &Data<Filling>) {
    text.push_str("## Parameters\n\n| parameter | value |\n|---|---|\n");
    let cpus = |trial: &Trial| {
        let all = trial
            .databases
            .iter()
            .map(|one| one.placement.cpus.to_string());
        all.collect::<Vec<_>>().join(" and ")
    };
    let puts = |trial: &Trial| {
        let threads = u64::from(trial.shape.threads);
        let puts = |puts: u32| (u64::from(puts) * threads).to_string();
        let all = trial.databases.iter().map(|one| puts(one.puts));
        all.collect::<Vec<_>>().join(" and ")
    };
    let workers = |trial: &Trial| {
        let all = trial.workers.iter().map(|one| one.cpus.to_string());
        let all: Vec<_> = all.collect();
        if all.is_empty() {
            "none".to_owned()
        } else {
            all.join(" and ")
        }
    };
    let slots = |trial: &Trial| {
        let slots = trial.mode.slots(trial.shape.background_jobs);
        format!("{} {slots}", trial.mode.name())
    };
    let quotas = data
        .records
        .first()
        .map(|record| record.outcome.quotas.name());
    for (name, value) in [
        ("puts of each database", each(data, puts)),
        (
            "threads that put",
            each(data, |trial| trial.shape.threads.to_string()),
        ),
        (
            "bytes of a key, of a value",
            each(data, |trial| format!("16, {}", trial.shape.value_bytes)),
        ),
        (
            "background jobs of a database",
            each(data, |trial| trial.shape.background_jobs.to_string()),
        ),
        (
            "memtable, sorted file, level 1 (KiB)",
            each(data, |trial| {
                let shape = &trial.shape;
                format!(
                    "{}, {}, {}",
                    shape.memtable_kb, shape.file_kb, shape.level1_kb
                )
            }),
        ),
        (
            "compression",
            each(data, |trial| trial.shape.compression.name().to_owned()),
        ),
        ("log of writes", "on, not synced".to_owned()),
        ("threads that wait for another's put", "sleep".to_owned()),
        ("cores of each database", each(data, cpus)),
        ("cores of each worker", each(data, workers)),
        ("jobs of a worker at a time", each(data, slots)),
        (
            "smallest compaction given away (MiB), ours",
            each(data, |trial| trial.shape.min_mb.to_string()),
        ),
        (
            "shares of a core held by",
            quotas.unwrap_or_default().to_owned(),
        ),
        ("seeds", each(data, |trial| trial.seed.to_string())),
    ] {
        let _ = writeln!(text, "| {name} | {value} |");
    }
    text.push('\n');
}

fn numbers(text: &mut String, design: &Design<Filling>, data: &Data<Filling>) {
    text.push_str(
        "## Numbers\n\nMedians of the repetitions. Latencies are microseconds; of several databases \
         the worst. A compaction's MiB are what a worker read and wrote for it.\n\n",
    );
    let _ = writeln!(
        text,
        "| who compacts | {} | puts/s | with the drain | mean | p50 | p99 | p99.9 | longest | stalled (s) | drain (s) \
         | CPU of databases (s) | of workers | of the control plane | of all | compactions by workers \
         | too small | came home | MiB each | MiB to and from object stores |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        design.swept
    );
    for system in System::ALL {
        for at in system.points(data, design.at) {
            row(text, system, &at);
        }
    }
    let entries: u64 = data.records.iter().map(entries_of).sum();
    let runs = data.records.len();
    let _ = writeln!(
        text,
        "\n{runs} runs; {entries} entries were found at their ends, each as it was put.\n"
    );
}

fn entries_of(record: &Record<Filling>) -> u64 {
    record.outcome.databases.iter().map(|one| one.entries).sum()
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn row(text: &mut String, system: System, at: &At<'_, Filling>) {
    let place = match system.mode {
        Mode::Local => "-".to_owned(),
        _ => at.x.to_string(),
    };
    let _ = write!(
        text,
        "| {} | {place} | {:.0} | {:.0} | {:.0} | {:.1} | {:.0} | {:.0} | {:.0} ",
        system.name,
        at.median(super::Outcome::ops),
        at.median(super::Outcome::sustained),
        at.median(super::Outcome::mean_us),
        at.median(|run| run.worst(|one| one.p50_us)),
        at.median(|run| run.worst(|one| one.p99_us)),
        at.median(|run| run.worst(|one| one.p999_us)),
        at.median(|run| run.worst(|one| one.max_us)),
    );
    let _ = writeln!(
        text,
        "| {:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} | {:.1} | {:.0} |",
        at.median(|run| run.sum(|one| one.stall_seconds)),
        at.median(|run| run.worst(|one| one.drain_seconds)),
        at.median(super::Outcome::database_cpu),
        at.median(|run| run.worker_cpu),
        at.median(|run| run.control_cpu),
        at.median(super::Outcome::total_cpu),
        at.median(|run| run.sum(|one| one.installed as f64)),
        at.median(|run| run.sum(|one| one.small as f64)),
        at.median(|run| run.sum(|one| one.came_home as f64)),
        at.median(super::Outcome::moved_mib),
        at.median(super::Outcome::stored_mib),
    );
}
