//! Experiments with joins and aggregations over nodes, in processes of this machine.
//!
//! | question | answered in |
//! |---|---|
//! | what is compared, and how its lines look | here |
//! | the experiments, their claims and figures | [`join`], [`aggregate`] |

mod aggregate;
mod join;
mod plausible;

use std::fmt::Write as _;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{
    At, Claim, Design, Experiment, ExperimentKind, Falsification, Source, series,
};
use manxdb_lab::figure::{Axes, Line, Look, Mark, Panel};
use manxdb_lab::trial_error::TrialError;

use super::rack::{compared, ratios};
use crate::bench::olap::{Outcome, measure};
use crate::cli::{Algorithm, OlapShape};

/// The experiments, in the order of the list.
pub static ALL: [&dyn Experiment; 2] = [&join::EXPERIMENT, &aggregate::EXPERIMENT];

/// Nodes, in processes.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis;

/// The published experiments' nodes.
const NODES: u16 = 4;
/// Bytes of the published experiments' rows.
const WIDTH: u16 = 8;

impl ExperimentKind for Analysis {
    type Trial = OlapShape;
    type Outcome = Outcome;

    const PART: &'static str = "rack";
    const SIMULATED: bool = false;

    fn seed(trial: &OlapShape) -> u64 {
        trial.seed
    }

    fn reseeded(trial: &OlapShape, seed: u64) -> OlapShape {
        OlapShape { seed, ..*trial }
    }

    fn run(trial: &OlapShape, progress: &mut dyn FnMut(f64)) -> Result<Outcome, TrialError> {
        let outcome = measure(trial).map_err(TrialError::Failed)?;
        progress(1.0);
        Ok(outcome)
    }

    fn columns() -> String {
        "algorithm,nodes,rows,width,selectivity,groups,seed,found,seconds,cpu_seconds,messages,bytes"
            .to_owned()
    }

    fn row(record: &Record<Self>) -> String {
        let Record { trial, outcome } = record;
        let said = |number: Option<String>| number.unwrap_or_default();
        let numbers = [
            trial.nodes.to_string(),
            trial.rows.to_string(),
            trial.width.to_string(),
            said(trial.selectivity.map(|share| share.to_string())),
            said(trial.groups.map(|count| count.to_string())),
            trial.seed.to_string(),
            outcome.found.to_string(),
            outcome.seconds.to_string(),
            outcome.cpu.to_string(),
            outcome.messages.to_string(),
            outcome.bytes.to_string(),
        ];
        format!("{},{}", trial.algorithm.name(), numbers.join(","))
    }

    fn implausible(trial: &OlapShape, outcome: &Outcome) -> Result<(), String> {
        plausible::check(trial, outcome)
    }

    fn contradiction(data: &Data<Self>) -> Option<String> {
        plausible::contradiction(data)
    }

    fn samples(outcome: &Outcome) -> (u64, u64) {
        plausible::samples(outcome)
    }

    fn system(trial: &OlapShape) -> String {
        trial.algorithm.name().to_owned()
    }

    fn falsify(_: &OlapShape, outcome: &mut Outcome, how: Falsification) {
        plausible::falsify(outcome, how);
    }

    fn details(design: &Design<Self>, data: &Data<Self>) -> String {
        let mut text = String::from(
            "## Numbers\n\nMedians of the repetitions. Time is of the slowest node, CPU of all of \
             them; a row is one that a node has in the beginning.\n\n",
        );
        let _ = writeln!(
            text,
            "| algorithm | {} | seconds | time of a row of a node (ns) | CPU of a row (ns) | bytes \
             sent a row | messages for 1,000 rows | found |\n|---|---|---|---|---|---|---|---|",
            design.swept
        );
        for algorithm in LINES {
            for at in points(design, data, algorithm) {
                let _ = writeln!(
                    text,
                    "| {} | {} | {:.3} | {:.1} | {:.1} | {:.2} | {:.2} | {:.0} |",
                    algorithm.name(),
                    at.x,
                    at.median(|run| run.seconds),
                    at.median(Outcome::time_ns),
                    at.median(Outcome::cpu_ns),
                    at.median(Outcome::bytes_each),
                    at.median(messages),
                    at.median(found),
                );
            }
        }
        text.push_str(UNLIKE);
        text
    }
}

const UNLIKE: &str = "
## How to read this

- Nodes are processes of this machine with one thread each, and share its cores; the paper's are four \
machines with eight or ten threads each. Times of a row of a node are what can be laid beside each \
other, and their ratios more than they.
- What stands for InfiniBand is memory that processes share, what stands for Ethernet or IPoIB is the \
loopback interface: both are faster than the real thing, and neither is ever full.
- Over memory that is shared a node copies what has come before it uses it (a fabric's read is a \
copy); hardware puts it where it is used.
- Rows are made before the clock starts. Every answer is checked: as many pairs or groups as there \
must be, and a sum over all of them.
";

/// What a figure may have lines of, in their order.
const LINES: [Algorithm; 6] = [
    Algorithm::Ghj,
    Algorithm::GhjBloom,
    Algorithm::RdmaGhj,
    Algorithm::Rrj,
    Algorithm::Agg,
    Algorithm::RdmaAgg,
];

/// What an algorithm is called in figures, and how it looks.
fn title(algorithm: Algorithm) -> (&'static str, Look) {
    match algorithm {
        Algorithm::Ghj => ("ghj (TCP)", Look::of(4)),
        Algorithm::GhjBloom => ("ghj with Bloom filters (TCP)", Look::of(3)),
        Algorithm::RdmaGhj => ("rdma-ghj (writes)", Look::of(1)),
        Algorithm::Rrj => ("rrj (writes)", Look::of(0)),
        Algorithm::Agg => ("agg (TCP)", Look::of(4)),
        Algorithm::RdmaAgg => ("rdma-agg (writes)", Look::of(0)),
    }
}

/// The runs of an algorithm, by where they stand.
fn points<'a>(
    design: &Design<Analysis>,
    data: &'a Data<Analysis>,
    algorithm: Algorithm,
) -> Vec<At<'a, Analysis>> {
    let belongs = |record: &Record<Analysis>| record.trial.algorithm == algorithm;
    series(&data.records, belongs, |record| design.at(&record.trial))
}

/// A panel with a line for each algorithm that there are runs of.
fn panel(
    (design, data): (&Design<Analysis>, &Data<Analysis>),
    (title_of, y_label): (&str, &str),
    axes: Axes,
    number: fn(&Outcome) -> f64,
    marks: Vec<Mark>,
) -> Panel {
    let lines = LINES.into_iter().map(|algorithm| {
        let (name, look) = title(algorithm);
        let points = points(design, data, algorithm);
        Line {
            name: name.into(),
            look,
            points: points.iter().map(|at| at.point(number)).collect(),
        }
    });
    Panel {
        title: title_of.into(),
        x_label: design.swept.into(),
        y_label: y_label.into(),
        axes,
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        marks,
    }
}

/// Messages for a thousand rows of all nodes.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn messages(run: &Outcome) -> f64 {
    run.messages as f64 * 1e3 / (run.rows.max(1) as f64 * f64::from(run.nodes.max(1)))
}

/// Pairs or groups.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn found(run: &Outcome) -> f64 {
    run.found as f64
}

/// A claim about how often the number of one goes into that of another.
fn claim(
    (design, data): (&Design<Analysis>, &Data<Analysis>),
    (source, says): (Source, &str),
    (one, other): (Algorithm, Algorithm),
    number: fn(&Outcome) -> f64,
    holds: impl Fn(&[(f64, f64)]) -> bool,
) -> Claim {
    let [one, other] = [one, other].map(|algorithm| points(design, data, algorithm));
    let found = ratios(&one, &other, number);
    compared((source, says), &found, design.swept, holds)
}

/// The ratio where the swept parameter is the least, or the most.
fn at_end(ratios: &[(f64, f64)], is_last: bool) -> f64 {
    let end = if is_last {
        ratios.last()
    } else {
        ratios.first()
    };
    end.map_or(f64::NAN, |(_, ratio)| *ratio)
}

#[cfg(test)]
mod tests {
    use manxdb_lab::experiment::{ClaimVerdict, Scale};

    use super::*;

    const EXPERIMENTS: [&Design<Analysis>; 2] = [&join::EXPERIMENT, &aggregate::EXPERIMENT];

    /// Data in which a run takes so many seconds of everything, and sends as many bytes.
    fn data(design: &Design<Analysis>, seconds: impl Fn(&OlapShape) -> u32) -> Data<Analysis> {
        let record = |trial: OlapShape| {
            let seconds = seconds(&trial);
            let outcome = Outcome {
                nodes: NODES,
                rows: 1_000,
                found: 7,
                seconds: f64::from(seconds),
                cpu: f64::from(seconds),
                messages: 10,
                bytes: u64::from(seconds),
            };
            Record { trial, outcome }
        };
        let plan = design.plan(Scale::Laptop, 1).into_iter();
        Data {
            experiment: design.name.into(),
            scale: Scale::Laptop,
            seed: 1,
            version: "test".into(),
            records: plan.map(record).collect(),
        }
    }

    fn verdicts(design: &Design<Analysis>, data: &Data<Analysis>) -> Vec<ClaimVerdict> {
        let claims = design.judged(data);
        claims.iter().map(Claim::verdict).collect()
    }

    #[test]
    fn every_claim_can_hold_and_fail() {
        for design in EXPERIMENTS {
            let best = data(design, |trial| match trial.algorithm {
                Algorithm::Ghj => 60,
                Algorithm::GhjBloom if trial.selectivity < Some(0.5) => 25,
                Algorithm::GhjBloom => 61,
                Algorithm::RdmaGhj => 40,
                Algorithm::Rrj => 20,
                Algorithm::Agg if trial.groups <= Some(16) => 10,
                Algorithm::Agg => 60,
                Algorithm::RdmaAgg => 10,
            });
            let best = verdicts(design, &best);
            assert!(
                best.iter().all(|one| *one == ClaimVerdict::Holds),
                "{best:?}"
            );
            let worst = data(design, |trial| match trial.algorithm {
                Algorithm::GhjBloom if trial.selectivity < Some(0.5) => 15,
                Algorithm::GhjBloom => 9,
                Algorithm::Ghj => 10,
                Algorithm::RdmaGhj => 20,
                Algorithm::Rrj => 30,
                Algorithm::Agg => 10,
                Algorithm::RdmaAgg => 20 + trial.groups.unwrap_or(0) / 1_000,
            });
            let worst = verdicts(design, &worst);
            assert!(
                worst.iter().all(|one| *one == ClaimVerdict::Fails),
                "{worst:?}"
            );
        }
    }

    #[test]
    fn figures_and_tables_have_every_algorithm_that_ran() {
        for design in EXPERIMENTS {
            let data = data(design, |_| 1);
            let [svg, _, _, report] = design.pictures(&data).unwrap();
            let svg = String::from_utf8(svg.bytes).unwrap();
            let report = String::from_utf8(report.bytes).unwrap();
            let ran = |one: &Algorithm| !points(design, &data, *one).is_empty();
            assert!(LINES.iter().filter(|one| ran(one)).count() >= 2);
            for algorithm in LINES.into_iter().filter(ran) {
                assert!(svg.contains(title(algorithm).0), "{}", algorithm.name());
                assert!(report.contains(&format!("| {} |", algorithm.name())));
            }
            let columns = |line: &str| line.split(',').count();
            let csv = data.to_csv();
            let names = columns(csv.lines().next().unwrap());
            assert!(csv.lines().all(|line| columns(line) == names), "{csv}");
        }
    }

    #[test]
    fn smoke_judges_nothing() {
        for design in EXPERIMENTS {
            let mut data = data(design, |_| 1);
            data.scale = Scale::Smoke;
            let judged = verdicts(design, &data);
            assert!(
                judged.iter().all(|one| *one == ClaimVerdict::Open),
                "{judged:?}"
            );
        }
    }
}
