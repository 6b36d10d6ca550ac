//! What reports about databases that share workers say behind their claims.

use std::fmt::Write as _;

use super::panels::{NEVER, home_percent, points};
use super::{At, Data, Experiment, each};
use crate::caas_many::{CaasOutcome, Trial, Who};

/// What a reader must know of the model.
const MODEL: &str = "\
- Databases are models: leveled trees with the store's settings (memtables and files of 64 MiB, level \
0 compacted at 4 files, writes stop at 36 and are not slowed down before, base level 256 MiB, each \
level ten times the one above), without keys: every level's bytes are spread evenly. Nothing is \
deleted or overwritten. Databases have 1 to 16 GiB at the start, evenly over the logarithm.
- Jobs go through the cores of the service as they are (client, control plane, worker) with their \
default settings, over a simulated network; a job takes a slot 50 ms and its bytes through the slot's \
speed. The control plane's own CPU costs nothing.
- A database hands out 5 compactions at a time. Without a pool it compacts one at a time, as the store \
does. A greedy one has files of 512 MiB of its last level rewritten beside that, so many at once as is \
swept (as RocksDB's periodic compaction of a large database would), for as long as writes arrive.
- A job done at home shares the speed of its database's machine with the others there. That speed is \
given for each database: `local` has as many of these machines as there are databases, and so more \
speed in all than the pool.
- Writes of the others arrive whether earlier ones are done or not, the same for all systems; a greedy \
one writes evenly, as much as another on average. Waiting means that all three memtables are full.
- `caas-level` gets the compaction score with each job, as CaaS-LSM's RocksDB does; the real service \
has none to give (RocksDB does not tell).
- In each run it was checked every second that every byte written is somewhere, and at the end that \
every job had ended once and the control plane knew of none.
";

/// Parameters, numbers, and what is modelled.
pub(super) fn details(experiment: &Experiment, data: &Data) -> String {
    let mut text = String::new();
    parameters(&mut text, data);
    numbers(&mut text, experiment, data);
    let _ = write!(text, "## What is modelled, and how\n\n{MODEL}");
    text
}

fn parameters(text: &mut String, data: &Data) {
    let _ = writeln!(text, "## Parameters\n\n| parameter | value |\n|---|---|");
    let each = |value: fn(&Trial) -> String| each(data, value);
    for (name, values) in [
        ("databases", each(|trial| trial.databases.to_string())),
        ("greedy ones", each(|trial| trial.greedy.to_string())),
        (
            "compactions that a greedy one asks for at once",
            each(|trial| trial.asks.to_string()),
        ),
        (
            "workers, slots each",
            each(|trial| format!("{}, {}", trial.workers, trial.slots)),
        ),
        (
            "a slot compacts (MiB of inputs a second)",
            each(|trial| trial.slot_speed.to_string()),
        ),
        (
            "a database's own machine compacts (MiB of inputs a second)",
            each(|trial| trial.home_speed.to_string()),
        ),
        (
            "a database that is not greedy writes bursts of (MiB, mean), at (MiB/s), every (s, mean)",
            each(|trial| format!("{}, {}, {}", trial.burst, trial.write_speed, trial.gap)),
        ),
        (
            "minutes in which writes arrive (virtual time)",
            each(|trial| trial.minutes.to_string()),
        ),
        ("seeds", each(|trial| trial.seed.to_string())),
    ] {
        let _ = writeln!(text, "| {name} | {values} |");
    }
    text.push('\n');
}

fn numbers(text: &mut String, experiment: &Experiment, data: &Data) {
    text.push_str(
        "## Numbers\n\nMedians over the seeds. Queue: from asking until a slot, or the database's own \
         machine, begins.\n\n",
    );
    for who in Who::ALL {
        let points = points(experiment, data, who);
        if points.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "| {}: {} | others wait (s) | longest (s) | queue of others p50 (s) | p99 | of level 0 p99 \
             | others' jobs | at home | of level 0 | too much | stall near | greedy at home \
             | greedy share | greedy wrote (MiB/s) | slots busy | drain (s) | Jain |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
            who.title(),
            experiment.swept,
        );
        for at in &points {
            row(text, data, at);
        }
        text.push('\n');
    }
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn row(text: &mut String, data: &Data, at: &At<'_>) {
    let minutes = data.records.first().map_or(1, |one| one.trial.minutes);
    let seconds = f64::from(minutes) * 60.0;
    let median = |number: fn(&CaasOutcome) -> f64| at.median(number);
    let drain = median(|one| one.drain.unwrap_or(NEVER));
    let drain = if drain < NEVER {
        format!("{drain:.0}")
    } else {
        "not in an hour".to_owned()
    };
    let _ = writeln!(
        text,
        "| {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.0} | {:.1} % | {:.0} | {:.0} | {:.0} | {:.0} \
         | {:.1} % | {:.1} | {:.0} % | {drain} | {:.3} |",
        at.x,
        median(|one| one.others.stalled),
        median(|one| one.others.stalled_worst),
        median(|one| one.others.queue.p50 / 1e3),
        median(|one| one.others.queue.p99 / 1e3),
        median(|one| one.others.queue_level0.p99 / 1e3),
        median(|one| one.others.jobs as f64),
        median(home_percent),
        median(|one| one.others.home_level0 as f64),
        median(|one| one.others.home_overloaded as f64),
        median(|one| one.others.home_hedge as f64),
        median(|one| one.greedy.home as f64),
        median(|one| one.greedy.share * 100.0),
        median(|one| one.greedy.written) / seconds,
        median(|one| one.busy * 100.0),
        median(|one| one.jain),
    );
}
