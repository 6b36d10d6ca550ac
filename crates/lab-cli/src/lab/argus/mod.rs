//! Experiments with witnesses alone: a client's records to a process, and to XDP programs behind and in the
//! driver.
//!
//! | question | answered in |
//! |---|---|
//! | what decides a run, and what is kept of it | [`trial`] |
//! | witnesses with a client's sockets | [`bench`], [`veth`] |
//! | how a trial is run | [`run`] |
//! | the experiments, their claims and figures | [`witness`], [`tail`] |
//! | which outcomes can be true | [`plausible`] |

mod bench;
mod plausible;
pub(super) mod run;
mod tail;
mod trial;
mod veth;
mod witness;

use std::fmt::Write as _;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{
    At, Design, Experiment, ExperimentKind, Falsification, Scale, series,
};
use manxdb_lab::figure::Look;
use manxdb_lab::trial_error::TrialError;

use self::trial::{Answerer, Outcome, Pace, Trial};
use super::columns::{Column, cells, names};
use super::curp::REPETITIONS_MIN;

/// The experiments, in the order of the list.
pub static ALL: [&dyn Experiment; 2] = [&witness::EXPERIMENT, &tail::EXPERIMENT];

/// Witnesses alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Witnessing;

/// A number of a run.
type Number = fn(&Outcome) -> f64;

/// The numbers of `data.csv`.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
const NUMBERS: [Column<Outcome>; 10] = [
    ("answered", |run| run.answered as f64),
    ("accepted", |run| run.accepted as f64),
    ("per_second", Outcome::rate),
    ("per_own_cpu_second", finite_own_rate),
    ("own_cpu_us_each", Outcome::own_us),
    ("all_cpu_us_each", Outcome::all_us),
    ("mean_us", |run| run.rounds.mean),
    ("p50_us", |run| run.rounds.p50),
    ("p99_us", |run| run.rounds.p99),
    ("p999_us", |run| run.rounds.p999),
];

/// 0 where the witness's own CPU was not measured.
fn finite_own_rate(run: &Outcome) -> f64 {
    if run.witness_cpu > 0.0 {
        run.own_rate()
    } else {
        0.0
    }
}

impl ExperimentKind for Witnessing {
    type Trial = Trial;
    type Outcome = Outcome;

    const PART: &'static str = "curp";
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
        let outcome = run::run(trial).map_err(TrialError::Failed)?;
        progress(1.0);
        Ok(outcome)
    }

    fn columns() -> String {
        let columns = "carrier,witnesses,busy,pace,seed,lacking";
        format!("{columns}{}", names(&NUMBERS))
    }

    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        let lacking = outcome.lacking.as_deref().unwrap_or_default();
        let pace = match trial.pace {
            Pace::Flood => "flood",
            Pace::Rounds => "rounds",
        };
        format!(
            "{},{},{},{pace},{},{}{}",
            trial.answerer.title(),
            trial.witnesses,
            trial.busy,
            trial.seed,
            lacking.replace([',', '\n'], ";"),
            cells(&NUMBERS, outcome)
        )
    }

    fn implausible(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn samples(outcome: &Outcome) -> (u64, u64) {
        plausible::samples(outcome)
    }

    fn system(trial: &Trial) -> String {
        trial.answerer.title().to_owned()
    }

    fn falsify(_: &Trial, outcome: &mut Outcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(_: &Design<Self>, data: &Data<Self>) -> String {
        let mut text = String::from(
            "## Numbers\n\nMedians of the repetitions. A round is one record to all witnesses, from before the \
             first is sent to the last answer.\n\n| carrier | witnesses | host | requests/s | per second of the \
             witness's CPU | its CPU (µs) | CPU of all (µs) | round p50 (µs) | p99 (µs) | p99.9 (µs) \
             |\n|---|---|---|---|---|---|---|---|---|---|\n",
        );
        for answerer in Answerer::ALL {
            for busy in [false, true] {
                for at in points(data, answerer, busy) {
                    row(&mut text, &at, answerer, busy);
                }
            }
        }
        text.push_str(&lacking(data));
        text.push_str(UNLIKE);
        text
    }
}

fn row(text: &mut String, at: &At<'_, Witnessing>, answerer: Answerer, busy: bool) {
    let host = if busy { "busy" } else { "idle" };
    let _ = write!(
        text,
        "| {} | {} | {host} | {:.0} |",
        answerer.title(),
        at.x,
        at.median(Outcome::rate)
    );
    let own = at.median(Outcome::own_us);
    if own > 0.0 {
        let _ = write!(text, " {:.0} | {own:.2} |", at.median(Outcome::own_rate));
    } else {
        text.push_str(" | |");
    }
    let _ = write!(text, " {:.2} |", at.median(Outcome::all_us));
    let rounds: [Number; 3] = [
        |run| run.rounds.p50,
        |run| run.rounds.p99,
        |run| run.rounds.p999,
    ];
    for number in rounds {
        match at.median(number) {
            0.0 => text.push_str(" |"),
            micros => {
                let _ = write!(text, " {micros:.1} |");
            }
        }
    }
    text.push('\n');
}

/// What this machine lacks, by carrier.
fn lacking(data: &Data<Witnessing>) -> String {
    let mut text = String::new();
    let mut told = Vec::new();
    for record in &data.records {
        let Some(why) = &record.outcome.lacking else {
            continue;
        };
        let line = format!("{} did not run: {why}", record.trial.answerer.title());
        if !told.contains(&line) {
            let _ = writeln!(text, "\nskipped: {line}");
            told.push(line);
        }
    }
    text
}

/// The runs of a carrier, by the number of witnesses.
fn points(data: &Data<Witnessing>, answerer: Answerer, busy: bool) -> Vec<At<'_, Witnessing>> {
    let belongs = |record: &Record<Witnessing>| {
        let trial = &record.trial;
        (trial.answerer, trial.busy) == (answerer, busy) && record.outcome.lacking.is_none()
    };
    series(&data.records, belongs, |record| at(&record.trial))
}

/// The median of a number with so many witnesses.
///
/// # Errors
/// Why there is none, or too few repetitions: what else the machine did decides one.
fn median(
    data: &Data<Witnessing>,
    (answerer, witnesses, busy): (Answerer, u32, bool),
    number: Number,
) -> Result<f64, String> {
    let points = points(data, answerer, busy);
    let at = points
        .iter()
        .find(|at| at.x.total_cmp(&f64::from(witnesses)).is_eq());
    if let Some(at) = at {
        let (found, repetitions) = (at.median(number), at.repetitions());
        if repetitions < REPETITIONS_MIN && data.scale != Scale::Smoke {
            return Err(format!(
                "{repetitions} repetitions: {REPETITIONS_MIN} at least judge a time"
            ));
        }
        return Ok(found);
    }
    let own = data.records.iter();
    let mut own = own.filter(|record| record.trial.answerer == answerer);
    let why = own.find_map(|record| record.outcome.lacking.clone());
    Err(why.map_or_else(
        || "these runs are not among the data".to_owned(),
        |why| format!("{} did not run: {why}", answerer.title()),
    ))
}

fn at(trial: &Trial) -> f64 {
    f64::from(trial.witnesses)
}

/// A trial, for people.
fn label(_: &Design<Witnessing>, trial: &Trial) -> String {
    let host = if trial.busy { "busy" } else { "idle" };
    let (answerer, witnesses) = (trial.answerer.title(), trial.witnesses);
    format!("{answerer}, {witnesses} witnesses, {host} host")
}

fn look(answerer: Answerer) -> Look {
    let place = Answerer::ALL.iter().position(|one| *one == answerer);
    match place {
        Some(0) | None => Look::of(4),
        Some(place) => Look::of(place - 1),
    }
}

const UNLIKE: &str = "
## How to read this

- Client and witnesses share one machine with what else runs on it. The client stays on the first core, \
witnesses' threads on the last; on a *busy* host two threads that never wait compete for the witnesses' \
core (as many as cores), and none of ours for the client's. Nobody has real-time priority.
- An XDP program runs in the context of who sends the packet, so no process is woken up: `xdp-generic` behind \
the driver, on the loopback interface of a network namespace; `xdp` in the driver of a veth, whose other end \
is in another namespace.
- *client alone*: the client reads its own datagrams, with as many calls. What a witness adds is the \
difference to it.
- The witness's own CPU is that of its thread with all its calls, or of the program in the kernel as the \
kernel measures it. What receives and sends packets below both is in neither; it is in the CPU of all, as is \
the client.
- In the kernel nothing wakes up, but each more witness costs the client a call to send and one to receive: on \
this machine one after the other.
";
