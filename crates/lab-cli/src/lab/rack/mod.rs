//! Experiments in a rack: checkouts on one-sided memory and on what it is compared with, in
//! processes of this machine, and beside them on the machines of the published experiment, simulated.
//!
//! | question | answered in |
//! |---|---|
//! | what is compared, and how its lines look | [`systems`] |
//! | what decides a run | [`trial`] |
//! | the experiments, their claims and figures | [`scale`], [`hotset`], [`cpu`] |
//! | what is claimed of the machines of the published experiment | [`model`] |
//! | which outcomes can be true | [`plausible`] |

mod cpu;
mod hotset;
mod model;
mod plausible;
mod scale;
mod systems;
mod trial;

use std::fmt::Write as _;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{Claim, Design, Experiment, ExperimentKind, Falsification, Scale};
use manxdb_lab::trial_error::TrialError;

use self::systems::System;
pub(super) use self::systems::{compared, farthest, ratios, repetitions};
use self::trial::Trial;
use crate::bench::checkout::Outcome;

/// The experiments, in the order of the list.
pub static ALL: [&dyn Experiment; 3] = [&scale::EXPERIMENT, &hotset::EXPERIMENT, &cpu::EXPERIMENT];

/// Customers, in processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Shopping;

impl ExperimentKind for Shopping {
    type Trial = Trial;
    type Outcome = Outcome;

    const PART: &'static str = "rack";
    const SIMULATED: bool = false;

    fn seed(trial: &Trial) -> u64 {
        trial.seed()
    }

    fn reseeded(trial: &Trial, seed: u64) -> Trial {
        trial.reseeded(seed)
    }

    fn run(trial: &Trial, progress: &mut dyn FnMut(f64)) -> Result<Outcome, TrialError> {
        trial.run(progress)
    }

    fn columns() -> String {
        "system,clients,servers,products,hot,versions,logs,seed,seconds,committed,aborted,\
         per_second,p50_us,p99_us,client_cpu_us,server_cpu_us"
            .to_owned()
    }

    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        let [servers, products, hot, versions, logs] = trial.sizes();
        let numbers = [
            trial.clients().to_string(),
            servers,
            products,
            hot,
            versions,
            logs,
            trial.seed().to_string(),
            outcome.seconds.to_string(),
            outcome.committed.to_string(),
            outcome.aborted.to_string(),
            outcome.rate().to_string(),
            outcome.p50_us.to_string(),
            outcome.p99_us.to_string(),
            outcome.client_cpu_us().to_string(),
            outcome.server_cpu_us().to_string(),
        ];
        // Names have commas.
        let system = title(trial).replace(',', "");
        format!("{system},{}", numbers.join(","))
    }

    fn implausible(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn samples(outcome: &Outcome) -> (u64, u64) {
        plausible::samples(outcome)
    }

    fn system(trial: &Trial) -> String {
        title(trial).to_owned()
    }

    fn falsify(_: &Trial, outcome: &mut Outcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(design: &Design<Self>, data: &Data<Self>) -> String {
        let mut text = String::from(
            "## Numbers\n\nMedians of the repetitions. Latencies are of a try, of the worst client; \
             CPU is of a checkout that is committed, of all processes of a side.\n\n",
        );
        let _ = writeln!(
            text,
            "| system | {} | checkouts/s | aborted | p50 (µs) | p99 (µs) | CPU of clients (µs) | of \
             servers (µs) |\n|---|---|---|---|---|---|---|---|",
            design.swept
        );
        for system in System::everywhere() {
            for at in system.points(data, design.at) {
                let _ = writeln!(
                    text,
                    "| {} | {} | {:.0} | {:.1} % | {:.1} | {:.1} | {:.2} | {:.2} |",
                    system.name,
                    at.x,
                    at.median(Outcome::rate),
                    at.median(aborted_percent),
                    at.median(|run| run.p50_us),
                    at.median(|run| run.p99_us),
                    at.median(Outcome::client_cpu_us),
                    at.median(Outcome::server_cpu_us),
                );
            }
        }
        text.push_str(UNLIKE);
        text
    }
}

/// A trial, for people.
fn label(design: &Design<Shopping>, trial: &Trial) -> String {
    let (system, at) = (title(trial), design.at(trial));
    format!("{system}, {at} {}", design.swept)
}

/// Its system, for people.
fn title(trial: &Trial) -> &'static str {
    System::of_trial(trial).map_or("unknown", |system| system.name)
}

/// Of all tries.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn aborted_percent(run: &Outcome) -> f64 {
    run.aborted as f64 * 100.0 / (run.committed + run.aborted).max(1) as f64
}

const UNLIKE: &str = "
## How to read this

- All processes share this machine's cores. Memory that processes share is faster than any network: \
an operation takes about a tenth of a microsecond where a network card takes one or two. Sockets are \
faster too, without cards and switches. CPU of a checkout is what carries over best.
- With more busy processes than cores, whoever waits for a message waits for a processor as well: \
rates of `two-sided` and `trad-si` at several clients say as much about the scheduler.
- What is called simulated was not measured: it is what the paper's prices of cycles, bytes and \
delays add up to on its eight machines, message by message, in virtual time. Nobody aborts there. Its network carries 13.8 GB/s for all machines \
together, as in the paper's own limit of 2.4 million checkouts a second; records lie on three machines, \
and the paper does not say why one card's bytes bound them all. Cores that handle messages of a card are \
not published either: all of a server over Ethernet (where the wire is full first) and over InfiniBand's \
verbs, one over IPoIB, whose interface had one queue. Nothing published costs more with more clients, so \
that the fall of the two-sided variant from 40 to 70 clients cannot come out.
- `rsi as published` has a timestamp service that looks for finished commits all the time, in the first \
memory server; its CPU is counted there.
- After every run the books are checked: three products sold for each order, every order with all of \
its lines, no lock left.
";

/// Claims that data of this size cannot judge.
pub(super) fn open_if_small<K: ExperimentKind>(data: &Data<K>, claims: Vec<Claim>) -> Vec<Claim> {
    if data.scale == Scale::Smoke {
        super::fill::open(claims, "a load of this size tells nothing")
    } else {
        claims
    }
}

#[cfg(test)]
mod tests {
    use manxdb_lab::experiment::ClaimVerdict;
    use manxdb_lab::rack;

    use super::*;
    use crate::cli;

    const EXPERIMENTS: [&Design<Shopping>; 3] =
        [&scale::EXPERIMENT, &hotset::EXPERIMENT, &cpu::EXPERIMENT];

    /// Data in which a checkout takes so many microseconds of everything.
    fn data(design: &Design<Shopping>, micros: impl Fn(&Trial) -> f64) -> Data<Shopping> {
        let record = |trial: Trial| {
            let micros = micros(&trial);
            let outcome = Outcome {
                committed: 1_000_000,
                aborted: 0,
                seconds: micros,
                client_cpu: micros,
                server_cpu: micros,
                p50_us: micros,
                p99_us: micros,
            };
            Record { trial, outcome }
        };
        Data {
            experiment: design.name.into(),
            scale: Scale::Laptop,
            seed: 1,
            version: "test".into(),
            records: design
                .plan(Scale::Laptop, 1)
                .into_iter()
                .map(record)
                .collect(),
        }
    }

    #[test]
    fn every_claim_can_hold_and_fail() {
        let verdicts = |design: &Design<Shopping>, data: &Data<Shopping>| -> Vec<ClaimVerdict> {
            design
                .judged(data)
                .iter()
                .map(Claim::verdict)
                // What is circular, or of another load, is no result whatever was measured.
                .filter(|verdict| *verdict != ClaimVerdict::NotAResult)
                .collect()
        };
        for design in EXPERIMENTS {
            let best = data(design, |trial| match trial {
                Trial::Measured(shape) => match shape.system {
                    cli::System::Rsi | cli::System::RsiSerializable => 1.0,
                    cli::System::TwoSided => 50.0,
                    cli::System::TradSi => 100.0,
                    cli::System::RsiPublished => 1_000.0,
                },
                // As published, with 70 clients.
                Trial::Simulated(trial) => match trial.system {
                    rack::System::Rsi => 1.0 / 1.8,
                    rack::System::TwoSided if trial.clients <= 40 => 1.0 / 1.1,
                    rack::System::TwoSided => 1.0 / 0.32,
                    rack::System::TradEthernet => 1.0 / 0.032,
                    rack::System::TradIpoib => 1.0 / 0.0219,
                },
            });
            let best = verdicts(design, &best);
            assert!(
                best.iter().all(|one| *one == ClaimVerdict::Holds),
                "{best:?}"
            );
            let worst = data(design, |trial| match trial {
                Trial::Measured(shape) => match shape.system {
                    cli::System::Rsi if shape.logs > 0 => 1_000.0,
                    cli::System::Rsi | cli::System::RsiSerializable => 100.0,
                    _ => 1.0,
                },
                Trial::Simulated(_) => 2.0,
            });
            let worst = verdicts(design, &worst);
            assert!(
                worst.iter().all(|one| *one == ClaimVerdict::Fails),
                "{worst:?}"
            );
        }
    }

    #[test]
    fn figures_and_tables_have_every_system_that_ran() {
        for design in EXPERIMENTS {
            let data = data(design, |_| 1.0);
            let [svg, _, _, report] = design.pictures(&data).unwrap();
            let svg = String::from_utf8(svg.bytes).unwrap();
            let report = String::from_utf8(report.bytes).unwrap();
            let ran =
                System::everywhere().filter(|system| !system.points(&data, design.at).is_empty());
            for system in ran {
                assert!(svg.contains(system.name), "{}", system.name);
                assert!(report.contains(&format!("| {} |", system.name)));
            }
            let columns = |line: &str| line.split(',').count();
            let csv = data.to_csv();
            let names = columns(csv.lines().next().unwrap());
            assert!(csv.lines().all(|line| columns(line) == names), "{csv}");
        }
    }
}
