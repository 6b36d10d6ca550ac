//! `manxdb bench olap`: joins and aggregations over nodes, in processes of this machine.
//!
//! Every node is a process, which makes its own rows and meets the others in a directory. Nodes
//! begin together when they are told to; what all have found is compared with what is known of the
//! rows.

mod node;

use std::process::ExitCode;

use manxdb_olap::memory::NodeRegion;
use manxdb_olap::workload::{Answer, Grouped, Pairs};
use manxdb_olap::{Width, aggregate, join, memory};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub use self::node::node;
use crate::bench::processes;
use crate::cli::{Algorithm, OlapRun, OlapShape};
use crate::fault::Fault;

/// Bytes of a piece that travels to a node,
const LARGE: u64 = 64 << 10;
/// and of one that travels to a partition: the least that keeps a link busy (Binnig et al., §5.2).
const SMALL: u64 = 2 << 10;
/// Bytes of all buffers of a node: what the last cache holds.
const BUFFERS: u64 = 8 << 20;

/// What a node has done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Done {
    found: u64,
    sum: u64,
    seconds: f64,
    cpu_seconds: f64,
    messages: u64,
    bytes: u64,
}

/// What came of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Nodes,
    pub nodes: u16,
    /// and rows that each has in the beginning, of all relations.
    pub rows: u64,
    /// Pairs, or groups: as many as there must be.
    pub found: u64,
    /// Of the slowest node, from when it is told to until it has found everything.
    pub seconds: f64,
    /// CPU of all nodes.
    pub cpu: f64,
    /// Messages, or operations on others' memory, of all nodes.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
impl Outcome {
    /// Nanoseconds in which a node gets a row done.
    pub fn time_ns(&self) -> f64 {
        self.seconds * 1e9 / self.rows.max(1) as f64
    }

    fn all_rows(&self) -> f64 {
        (self.rows * u64::from(self.nodes)).max(1) as f64
    }

    /// Nanoseconds of CPU of a row.
    pub fn cpu_ns(&self) -> f64 {
        self.cpu * 1e9 / self.all_rows()
    }

    /// Bytes sent of a row.
    pub fn bytes_each(&self) -> f64 {
        self.bytes as f64 / self.all_rows()
    }
}

impl OlapShape {
    fn selectivity(&self) -> f64 {
        self.selectivity.unwrap_or(1.0)
    }

    fn groups(&self) -> u32 {
        self.groups.unwrap_or(1_000)
    }

    /// Rows that each node has in the beginning.
    fn rows_each(&self) -> u64 {
        let relations = if self.algorithm.is_join() { 2 } else { 1 };
        u64::from(self.rows) * relations
    }

    fn check(&self) -> Result<Width, String> {
        let name = self.algorithm.name();
        match (self.algorithm.is_join(), self.groups, self.selectivity) {
            (true, Some(_), _) => {
                return Err(format!("--groups is for aggregations, {name} joins"));
            }
            (false, _, Some(_)) => {
                return Err(format!("--selectivity is for joins, {name} aggregates"));
            }
            _ => {}
        }
        if !(0.0..=1.0).contains(&self.selectivity()) {
            let share = self.selectivity();
            return Err(format!("--selectivity {share} is not from 0 to 1"));
        }
        let width = Width::new(usize::from(self.width));
        width.map_err(|error| format!("--width {}: {error}", self.width))
    }

    fn pairs(&self, width: Width) -> Pairs {
        Pairs {
            nodes: self.nodes,
            rows: self.rows,
            width,
            selectivity: self.selectivity(),
        }
    }

    fn grouped(&self, width: Width) -> Grouped {
        Grouped {
            nodes: self.nodes,
            rows: self.rows,
            width,
            groups: self.groups(),
            seed: self.seed,
        }
    }

    /// Partitions that a node's rows are divided into, in the end.
    fn parts(&self, width: Width) -> u32 {
        if self.algorithm.is_join() {
            join::parts(u64::from(self.rows), width)
        } else {
            aggregate::parts(u64::from(self.groups().div_ceil(u32::from(self.nodes))))
        }
    }

    /// How memory is laid out, and into how many partitions each that comes is divided; none for
    /// those that use messages.
    fn room(&self, width: Width) -> Result<Option<(NodeRegion, u32)>, String> {
        let all = u64::from(self.rows) * u64::from(self.nodes);
        let load = |width| memory::Load { rows: all, width };
        let buffers = u32::try_from(BUFFERS / SMALL).unwrap_or(u32::MAX);
        let parts = self.parts(width);
        let buffered = parts.min(buffers / u32::from(self.nodes)).max(1);
        let room = match self.algorithm {
            Algorithm::RdmaGhj => {
                let room = NodeRegion::new(self.nodes, 1, LARGE, &[load(width); 2]);
                room.map(|room| (room, parts))
            }
            Algorithm::Rrj => {
                let room = NodeRegion::new(self.nodes, buffered, SMALL, &[load(width); 2]);
                room.map(|room| (room, parts.div_ceil(buffered)))
            }
            Algorithm::RdmaAgg => {
                let partials = load(aggregate::Partial::WIDTH);
                let room = NodeRegion::new(self.nodes, buffered, SMALL, &[partials]);
                room.map(|room| (room, 1))
            }
            Algorithm::Ghj | Algorithm::GhjBloom | Algorithm::Agg => return Ok(None),
        };
        room.map(Some).map_err(|error| error.to_string())
    }
}

/// Runs nodes, and says what came of it.
///
/// # Errors
/// Sizes that cannot be, nodes that fail, a wrong answer.
pub fn run(args: &OlapRun) -> Result<ExitCode, Fault> {
    let outcome = measure(&args.shape).map_err(Fault::Other)?;
    if args.json {
        println!("{:#}", report(&args.shape, &outcome));
    } else {
        println!("{}", text(&args.shape, &outcome));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs nodes, and compares what they find with what is known.
///
/// # Errors
/// Sizes that cannot be, nodes that fail, a wrong answer.
pub fn measure(shape: &OlapShape) -> Result<Outcome, String> {
    let width = shape.check()?;
    shape.room(width)?;
    let directory = tempfile::tempdir().map_err(|error| format!("a directory: {error}"))?;
    let directory = directory.path().display().to_string();
    let said = serde_json::to_string(shape).map_err(|error| error.to_string())?;
    let mut nodes = processes::start_all("node", shape.nodes, |number| {
        let number = number.to_string();
        let words = ["bench", "olap-node", &number, "--directory", &directory];
        let words = words.into_iter().chain(["--shape", &said]);
        words.map(String::from).collect()
    })?;
    let done: Vec<Done> = processes::run_once(&mut nodes)?;
    let mut found = Answer::default();
    let mut outcome = Outcome {
        nodes: shape.nodes,
        rows: shape.rows_each(),
        ..Outcome::default()
    };
    for one in done {
        found.merge(Answer {
            found: one.found,
            sum: one.sum,
        });
        outcome.seconds = outcome.seconds.max(one.seconds);
        outcome.cpu += one.cpu_seconds;
        outcome.messages += one.messages;
        outcome.bytes += one.bytes;
    }
    outcome.found = found.found;
    let right = if shape.algorithm.is_join() {
        shape.pairs(width).answer()
    } else {
        shape.grouped(width).answer()
    };
    if found == right {
        Ok(outcome)
    } else {
        Err(format!("the answer is wrong: {found:?}, not {right:?}"))
    }
}

fn report(shape: &OlapShape, outcome: &Outcome) -> serde_json::Value {
    json!({ "shape": shape, "outcome": outcome })
}

fn text(shape: &OlapShape, outcome: &Outcome) -> String {
    let what = if shape.algorithm.is_join() {
        "pairs"
    } else {
        "groups"
    };
    format!(
        "{}, {} nodes: {:.3} s, {:.1} ns a row of a node; of a row: CPU {:.1} ns, {:.2} bytes sent; {} \
         messages; {} {what}, the answer is right",
        shape.algorithm.name(),
        shape.nodes,
        outcome.seconds,
        outcome.time_ns(),
        outcome.cpu_ns(),
        outcome.bytes_each(),
        outcome.messages,
        outcome.found,
    )
}
