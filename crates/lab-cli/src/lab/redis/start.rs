//! The experiment with many keys: how long a server takes from its start to its first reply, and what
//! memory a small key takes.

use std::fmt::Write as _;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{
    At, Claim, Design, ExperimentKind, Falsification, Measured, Scale, Source, demand, series,
    within,
};
use manxdb_lab::figure::{Axes, Figure, Line, Look, Mark, Panel, Scale as Along};
use manxdb_lab::trial_error::TrialError;
use serde::{Deserialize, Serialize};

use super::run::{fill, own_version};
use super::server::{Link, Server, encoded};
use super::trial::{Durability, System, Trial};
use crate::lab::fill::judge;
use crate::lab::rack::open_if_small;

/// Servers that start with many keys, in processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Starting;

/// The experiment.
pub static EXPERIMENT: Design<Starting> = Design {
    name: "redis-start",
    about: "time from a start with many keys to the first reply, and memory of a small key, beside Redis",
    origin: "No paper's: what an operator waits for, and pays for, with many keys.",
    swept: "keys",
    plan,
    at,
    label,
    figure,
    judge: claims,
};

/// Bytes of a value.
const VALUE_BYTES: usize = 16;
/// Keys that are read at once.
const READ_BATCH: u32 = 1_000;
/// A key of so many bytes, and a value, take no less.
const KEY_FLOOR_BYTES: f64 = 32.0;
/// A process is started, and reads its files, in no less.
const START_FLOOR_S: f64 = 0.001;
/// Keys below which memory is that of everything else.
const SAMPLES_MIN: u64 = 50_000;
/// A server with so many keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartTrial {
    /// What serves.
    pub system: System,
    /// Keys.
    pub keys: u32,
    /// Repetition.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// What INFO tells.
    pub version: String,
    /// From the start of the process to the first reply that is no error, in seconds.
    pub first_reply_s: f64,
    /// Until commands that need the names of all keys were answered, too.
    pub all_names_s: f64,
    /// Memory of the process when every key was read once, less that of one without keys.
    pub bytes: u64,
    /// Keys with the value they must have.
    pub found: u64,
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
impl Started {
    /// Bytes of memory of a key.
    pub fn bytes_each(&self) -> f64 {
        self.bytes as f64 / self.found.max(1) as f64
    }
}

fn at(trial: &StartTrial) -> f64 {
    f64::from(trial.keys)
}

fn label(_: &Design<Starting>, trial: &StartTrial) -> String {
    format!("{}, {} keys", trial.system.title(), trial.keys)
}

fn plan(scale: Scale, seed: u64) -> Vec<StartTrial> {
    let systems: &[System] = scale.pick(
        &[System::Manxdb, System::Redis7],
        &System::ALL,
        &System::ALL,
    );
    let keys: &[u32] = scale.pick(
        &[2_000],
        &[100_000, 1_000_000],
        &[100_000, 1_000_000, 10_000_000],
    );
    let seeds = (seed..).take(scale.pick(1, 3, 5));
    let trials = seeds.flat_map(|seed| {
        keys.iter().flat_map(move |keys| {
            systems.iter().map(move |system| StartTrial {
                system: *system,
                keys: *keys,
                seed,
            })
        })
    });
    // Minutes each: once, and those alone that claims are about.
    let compared = [System::Manxdb, System::Redis7, System::Redis8].into_iter();
    let many = compared.filter(|_| scale == Scale::Laptop);
    let many = many.map(|system| StartTrial {
        system,
        keys: 10_000_000,
        seed,
    });
    trials.chain(many).collect()
}

/// Fills a server, ends it in order, and starts it again.
fn run(trial: &StartTrial) -> Result<Started, String> {
    let directory = tempfile::tempdir();
    let directory = directory.map_err(|error| format!("no directory for a run: {error}"))?;
    let settings = Trial {
        system: trial.system,
        durability: Durability::Async,
        clients: 1,
        pipeline: 1,
        keys: trial.keys,
        share: 1,
        seed: trial.seed,
    };
    let server = Server::start(&settings, directory.path())?;
    let empty = server.memory()?;
    fill(&mut Link::open(server.port)?, trial.keys, VALUE_BYTES)?;
    server.stop()?;
    let server = Server::start(&settings, directory.path())?;
    let mut link = Link::open(server.port)?;
    let keys = link.count(&["DBSIZE"])?;
    let all_names_s = server.age_s();
    let found = read_all(&mut link, trial.keys)?;
    if keys != u64::from(trial.keys) {
        return Err(format!("{keys} keys are there, of {}", trial.keys));
    }
    let version = own_version(&mut link)?;
    Ok(Started {
        version,
        first_reply_s: server.answered_after_s(),
        all_names_s,
        bytes: server.memory()?.saturating_sub(empty),
        found,
    })
}

/// Reads every key; how many have their values.
fn read_all(link: &mut Link, keys: u32) -> Result<u64, String> {
    let (mut number, mut found) = (0, 0);
    while number < keys {
        let batch = number..(number + READ_BATCH).min(keys);
        let get = |number| encoded(&["GET", &format!("key:{number:012}")]);
        link.send(&batch.clone().flat_map(get).collect::<Vec<u8>>())?;
        number = batch.end;
        for _ in batch {
            found += u64::from(link.reply()?.len() == VALUE_BYTES);
        }
    }
    Ok(found)
}

fn points(data: &Data<Starting>, system: System) -> Vec<At<'_, Starting>> {
    let belongs = |record: &Record<Starting>| record.trial.system == system;
    series(&data.records, belongs, |record| at(&record.trial))
}

/// Our median, and that of another, with the most keys that both had; and how many.
fn medians(
    data: &Data<Starting>,
    other: System,
    number: fn(&Started) -> f64,
) -> Option<(f64, f64, f64)> {
    let [ours, theirs] = [System::Manxdb, other].map(|system| points(data, system));
    let mut pairs = ours.iter().filter_map(|at| {
        let other = theirs
            .iter()
            .find(|other| other.x.total_cmp(&at.x).is_eq())?;
        Some((at.x, at.median(number), other.median(number)))
    });
    pairs.next_back()
}

fn claims(_: &Design<Starting>, data: &Data<Starting>) -> Vec<Claim> {
    let started = medians(data, System::Redis7, |run| run.first_reply_s);
    let started = started.filter(|(keys, ..)| *keys >= 1e7);
    let memory = medians(data, System::Redis8, Started::bytes_each);
    let says = "A start with 10 million keys: the first reply after at most 0.05 times what Redis 7.0 takes \
                with its append-only file.";
    let first = judge(Source::Target, says, started, |(keys, ours, theirs)| {
        let ratio = ours / theirs;
        let said = format!(
            "{ratio:.4} times with {keys} keys: {:.0} ms, {:.0} ms",
            ours * 1e3,
            theirs * 1e3
        );
        (Measured::ratio(ratio, said), ratio <= 0.05)
    });
    let says = "A small key takes at most 1.2 times the memory of Redis 8.2.";
    let small = judge(Source::Target, says, memory, |(keys, ours, theirs)| {
        let ratio = ours / theirs;
        let said = format!("{ratio:.2} times with {keys} keys: {ours:.0} bytes, {theirs:.0} bytes");
        (Measured::ratio(ratio, said), ratio <= 1.2)
    });
    open_if_small(data, vec![first, small])
}

fn figure(_: &Design<Starting>, data: &Data<Starting>) -> Figure {
    let panel = |title: &str, y_label: &str, axes, number: fn(&Started) -> f64| {
        let line = |(place, system): (usize, System)| Line {
            name: system.title().into(),
            look: Look::of(place),
            points: points(data, system)
                .iter()
                .map(|at| at.point(number))
                .collect(),
        };
        let lines = System::ALL.into_iter().enumerate().map(line);
        Panel {
            title: title.into(),
            x_label: EXPERIMENT.swept.into(),
            y_label: y_label.into(),
            axes,
            lines: lines.filter(|line| !line.points.is_empty()).collect(),
            marks: Vec::<Mark>::new(),
        }
    };
    let (both, across) = (
        Axes {
            x: Along::Log,
            y: Along::Log,
        },
        Axes {
            x: Along::Log,
            y: Along::Linear,
        },
    );
    Figure {
        title: "A start with many keys, and what they take".into(),
        columns: 2,
        legend_cell: 3,
        panels: vec![
            panel("First reply", "after the start (s)", both, |run| run.first_reply_s),
            panel("All keys known", "after the start (s)", both, |run| run.all_names_s),
            panel("Memory", "of a key (bytes)", across, Started::bytes_each),
        ],
        notes: vec![
            "Keys of 16 bytes with values of 16; redis-server and valkey-server with an append-only file."
                .into(),
        ],
    }
}

impl ExperimentKind for Starting {
    type Trial = StartTrial;
    type Outcome = Started;

    const PART: &'static str = "redis";
    const SIMULATED: bool = false;

    fn seed(trial: &StartTrial) -> u64 {
        trial.seed
    }

    fn reseeded(trial: &StartTrial, seed: u64) -> StartTrial {
        StartTrial {
            seed,
            ..trial.clone()
        }
    }

    fn run(trial: &StartTrial, progress: &mut dyn FnMut(f64)) -> Result<Started, TrialError> {
        let started = run(trial).map_err(TrialError::Failed)?;
        progress(1.0);
        Ok(started)
    }

    fn columns() -> String {
        "system,version,keys,seed,first_reply_s,all_names_s,bytes,found".to_owned()
    }

    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        format!(
            "{},{},{},{},{},{},{},{}",
            trial.system.title(),
            outcome.version,
            trial.keys,
            trial.seed,
            outcome.first_reply_s,
            outcome.all_names_s,
            outcome.bytes,
            outcome.found
        )
    }

    fn implausible(trial: &StartTrial, outcome: &Started) -> Result<(), String> {
        let version = &outcome.version;
        demand(version.starts_with(trial.system.version()), || {
            format!(
                "{} says that its version is {version}",
                trial.system.title()
            )
        })?;
        demand(outcome.found == u64::from(trial.keys), || {
            format!(
                "{} keys have their values, of {}",
                outcome.found, trial.keys
            )
        })?;
        within(
            "the first reply (s)",
            outcome.first_reply_s,
            START_FLOOR_S,
            3.6e3,
        )?;
        within(
            "all names (s)",
            outcome.all_names_s,
            outcome.first_reply_s,
            3.6e3,
        )?;
        within("bytes of a key", outcome.bytes_each(), KEY_FLOOR_BYTES, 1e6)
    }

    fn samples(outcome: &Started) -> (u64, u64) {
        (outcome.found, SAMPLES_MIN)
    }

    fn system(trial: &StartTrial) -> String {
        trial.system.title().to_owned()
    }

    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )] // for tests of verdicts
    fn falsify(_: &StartTrial, outcome: &mut Started, how: Falsification) {
        let Some(by) = how.factor() else {
            outcome.found /= 2;
            return;
        };
        outcome.first_reply_s *= by;
        outcome.all_names_s *= by;
        outcome.bytes = (outcome.bytes as f64 * by) as u64;
    }

    fn details(_: &Design<Self>, data: &Data<Self>) -> String {
        let mut text = String::from(
            "## Numbers\n\nMedians of the repetitions.\n\n| system | keys | first reply (ms) | all keys \
             known (ms) | memory of a key (bytes) |\n|---|---|---|---|---|\n",
        );
        for system in System::ALL {
            for at in points(data, system) {
                let _ = writeln!(
                    text,
                    "| {} | {} | {:.0} | {:.0} | {:.0} |",
                    system.title(),
                    at.x,
                    at.median(|run| run.first_reply_s) * 1e3,
                    at.median(|run| run.all_names_s) * 1e3,
                    at.median(Started::bytes_each),
                );
            }
        }
        text.push_str(UNLIKE);
        text
    }
}

const UNLIKE: &str = "
## How to read this

- A server is filled, ended by SIGTERM and started again; its files are in the memory of the operating \
system. Redis and Valkey read their whole append-only file, which is as SET wrote it, before they answer; \
ManxDB answers before it knows the names of its keys, and reads a key that is asked for from the store.
- All keys known: DBSIZE is answered, which has to wait for all names.
- Memory is the resident set of the whole process when every key was read once after the start, less that \
of a process without keys: of ManxDB it has the pages of the store in RocksDB's cache too.
";

#[cfg(test)]
mod tests {
    use manxdb_lab::experiment::ClaimVerdict;

    use super::*;

    /// Data in which ManxDB takes so many times what others take.
    fn data(start: f64, memory: u64) -> Data<Starting> {
        let record = |trial: StartTrial| {
            let is_ours = trial.system == System::Manxdb;
            let (start, memory) = if is_ours { (start, memory) } else { (1.0, 100) };
            let outcome = Started {
                version: format!("{}1", trial.system.version()),
                first_reply_s: start,
                all_names_s: start * 2.0,
                bytes: u64::from(trial.keys) * memory,
                found: trial.keys.into(),
            };
            Record { trial, outcome }
        };
        Data {
            experiment: EXPERIMENT.name.into(),
            scale: Scale::Laptop,
            seed: 1,
            version: "test".into(),
            records: plan(Scale::Laptop, 1).into_iter().map(record).collect(),
        }
    }

    fn all_are(data: &Data<Starting>, verdict: ClaimVerdict) {
        for claim in EXPERIMENT.claims(data) {
            assert_eq!(claim.verdict(), verdict, "{claim:?}");
        }
    }

    #[test]
    fn every_claim_can_hold_and_fail() {
        all_are(&data(0.05, 120), ClaimVerdict::Holds);
        all_are(&data(0.06, 121), ClaimVerdict::Fails);
        all_are(&data(0.000_1, 120), ClaimVerdict::Implausible);
        let mut lost = data(0.05, 120);
        lost.records[0].outcome.found -= 1;
        all_are(&lost, ClaimVerdict::Implausible);
        let mut small = data(0.05, 120);
        small.scale = Scale::Smoke;
        all_are(&small, ClaimVerdict::Open);
        assert_eq!(EXPERIMENT.unmoved(&data(0.05, 120)), Vec::<String>::new());
    }

    #[test]
    fn figure_and_report_have_every_system() {
        let data = data(0.05, 110);
        let [svg, _, _, report] = EXPERIMENT.pictures(&data).unwrap();
        let svg = String::from_utf8(svg.bytes).unwrap();
        let report = String::from_utf8(report.bytes).unwrap();
        for system in System::ALL {
            assert!(svg.contains(system.title()));
        }
        assert!(
            report.contains("| ManxDB | 1000000 | 50 | 100 | 110 |"),
            "{report}"
        );
    }
}
