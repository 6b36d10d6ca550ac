//! A measured run beside a simulated one of the same parameters: one figure, the data of both,
//! and a short report.
//!
//! The simulator's CPUs take no time here, so what is left between the two is what the machine
//! adds: its scheduler, its timers, its CPU time for every message.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use manxdb_core::Nanos;
use manxdb_lab::figure::{Axes, Figure, Line, Look, Panel, Point, png};
use manxdb_lab::scenario::Scenario;
use manxdb_lab::simulate::{SimulationOutcome as Simulated, simulate};
use manxdb_sim::Link;
use manxdb_workloads::Workload;
use serde_json::{Value, json};

use super::load::{Load, Made, Purpose};
use crate::bench::measure::{Times, cpu_of};
use crate::cli::ClusterLoad;
use crate::fault::Fault;
use manxdb::cluster::{ClusterFile, dast};

/// The measured time is cut into so many slices: how they differ is the machine's noise.
const SLICES: u64 = 5;

/// What is compared, in percent.
const PERCENTS: [usize; 13] = [1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99];

/// What the report's tables show.
const SHOWN: [usize; 4] = [50, 90, 95, 99];

/// How busy the machine was.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Processes that ran or wanted to, on average over a minute.
    load: String,
    /// CPU time that the cluster's servers have had.
    servers: Duration,
}

impl Machine {
    /// As it is now.
    pub fn now(file: &ClusterFile) -> Self {
        let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = text.split_whitespace().next().unwrap_or("unknown");
        let spent = file
            .nodes
            .iter()
            .filter_map(|node| cpu_of(Some(node.process)));
        Self {
            load: load.to_owned(),
            servers: spent.sum(),
        }
    }
}

/// Latencies of a class by percentile, in milliseconds.
struct Curve {
    calls: usize,
    values: Vec<f64>,
    /// Of the slices: the lowest and the highest at each percentile.
    spread: Vec<(f64, f64)>,
}

impl Curve {
    fn new(times: &Times, slices: &[Times]) -> Self {
        let millis = |times: &Times| times.percentiles(PERCENTS).map(|it| f64::from(it) / 1e3);
        let values = millis(times).to_vec();
        let mut spread: Vec<(f64, f64)> = values.iter().map(|it| (*it, *it)).collect();
        for slice in slices.iter().filter(|slice| slice.count() > 0) {
            for (spread, value) in spread.iter_mut().zip(millis(slice)) {
                *spread = (spread.0.min(value), spread.1.max(value));
            }
        }
        Self {
            calls: times.count(),
            values,
            spread,
        }
    }

    /// Each percentage, its latency and how far that spreads.
    fn points(&self) -> impl Iterator<Item = (usize, f64, (f64, f64))> + '_ {
        let values = self.values.iter().copied().zip(self.spread.iter().copied());
        let points = PERCENTS.into_iter().zip(values);
        points.map(|(percent, (value, spread))| (percent, value, spread))
    }

    fn at(&self, percent: usize) -> (f64, (f64, f64)) {
        let place = PERCENTS.iter().position(|it| *it == percent).unwrap_or(0);
        (self.values[place], self.spread[place])
    }

    fn line(&self, name: &str, number: usize) -> Line {
        let points = self.points().map(|(percent, value, (low, high))| Point {
            x: as_number(percent),
            y: value,
            low,
            high,
        });
        Line {
            name: name.to_owned(),
            look: Look::of(number),
            points: points.collect(),
        }
    }

    fn json(&self) -> Value {
        let points = self.points().map(|(percent, value, (low, high))| {
            json!({ "percent": percent, "ms": value, "low_ms": low, "high_ms": high })
        });
        json!({ "calls": self.calls, "percentiles": points.collect::<Vec<_>>() })
    }
}

#[allow(clippy::cast_precision_loss)] // a percentage
fn as_number(percent: usize) -> f64 {
    percent as f64
}

/// A class of calls in both.
struct Pair {
    name: &'static str,
    real: Curve,
    simulated: Curve,
}

/// What the comparison is made of.
pub struct Measured<'a> {
    /// The flags.
    pub args: &'a ClusterLoad,
    /// The cluster.
    pub file: &'a ClusterFile,
    /// What was asked.
    pub workload: Workload,
    /// The answers.
    pub load: &'a Load,
    /// What was wrong with them.
    pub findings: &'a [String],
    /// The machine before the run.
    pub before: &'a Machine,
}

/// Says what keeps a run from being simulated with the same parameters.
///
/// # Errors
/// Clients that are not spread evenly.
pub fn check(args: &ClusterLoad, file: &ClusterFile) -> Result<(), Fault> {
    let shards = dast::placement(file).shards();
    if args.against_sim.is_none() || args.clients.is_multiple_of(shards) {
        return Ok(());
    }
    Err(Fault::Other(format!(
        "--clients {} cannot be spread evenly over {shards} shards, as --against-sim needs: try {}",
        args.clients,
        args.clients.div_ceil(shards) * shards
    )))
}

/// Simulates the same run and writes `comparison.svg`, `comparison.png`, `data.json` and
/// `report.md` into a directory.
///
/// # Errors
/// Files that cannot be written, or an invariant that broke in the simulator.
pub fn write(directory: &Path, measured: &Measured<'_>) -> Result<(), Fault> {
    let after = Machine::now(measured.file);
    let scenario = scenario(measured);
    let simulated = simulate(&scenario, &mut |_| {})
        .map_err(|failure| Fault::Other(format!("in the simulator: {failure}")))?;
    let pairs = [("local", true), ("cross-region", false)].map(|(name, is_local)| Pair {
        name,
        real: real(measured.load, is_local),
        simulated: of_simulator(&scenario, &simulated, is_local),
    });
    let svg = figure(measured, &pairs).svg();
    let drawing = |error: manxdb_lab::figure::FigureError| Fault::Other(error.to_string());
    let svg = svg.map_err(drawing)?;
    let picture = png(&svg).map_err(drawing)?;
    let report = report(measured, &pairs, &simulated, &after);
    let data = data(measured, &pairs, &simulated, &after);
    let io = |error| Fault::io(format!("cannot write {}", directory.display()), error);
    std::fs::create_dir_all(directory).map_err(io)?;
    std::fs::write(directory.join("comparison.svg"), svg).map_err(io)?;
    std::fs::write(directory.join("comparison.png"), picture).map_err(io)?;
    std::fs::write(directory.join("data.json"), data).map_err(io)?;
    std::fs::write(directory.join("report.md"), &report).map_err(io)?;
    println!("\n{report}");
    Ok(())
}

/// The same in virtual time.
fn scenario(measured: &Measured<'_>) -> Scenario {
    let (args, file) = (measured.args, measured.file);
    let topology = dast::placement(file);
    let delays = file.delays();
    let mut scenario = Scenario::new(topology, measured.workload);
    scenario.lan = Link::after(delays.lan);
    scenario.wan = Link::after(delays.wan).with_jitter(delays.wan_jitter);
    scenario.scale = file.tpcc_scale.scale();
    scenario.clients_per_shard = args.clients / topology.shards();
    scenario.seed = args.seed;
    scenario.warm_up = super::seconds(args.warm_up);
    scenario.measured = super::seconds(args.seconds);
    scenario.explain = false;
    scenario
}

fn real(load: &Load, is_local: bool) -> Curve {
    let (from, until) = load.measured().unwrap_or_default();
    let slice = Nanos((until.saturating_sub(from).0 / SLICES).max(1));
    let mut times = Times::default();
    let mut slices: Vec<Times> = (0..SLICES).map(|_| Times::default()).collect();
    let of_class = |made: &&Made| {
        made.purpose == Purpose::Load
            && made.is_local == is_local
            && (from..until).contains(&made.asked)
    };
    for made in load.made().iter().filter(of_class) {
        let Some((at, answer)) = &made.answered else {
            continue;
        };
        if answer.given.is_ok() {
            let latency = Duration::from_nanos(at.saturating_sub(made.asked).0);
            times.add(latency);
            let place = made.asked.saturating_sub(from).0 / slice.0;
            let place = usize::try_from(place.min(SLICES - 1)).unwrap_or(0);
            slices[place].add(latency);
        }
    }
    Curve::new(&times, &slices)
}

fn of_simulator(scenario: &Scenario, simulated: &Simulated, is_local: bool) -> Curve {
    let (from, until) = scenario.span();
    let mut times = Times::default();
    for made in &simulated.made {
        let is_of_class = made.job.crosses_regions != is_local;
        let is_ok = made
            .answered
            .as_ref()
            .is_some_and(|(_, it)| it.given.is_ok());
        if is_of_class && is_ok && (from..until).contains(&made.asked) {
            times.add(Duration::from_nanos(made.latency().unwrap_or_default().0));
        }
    }
    Curve::new(&times, &[])
}

fn figure(measured: &Measured<'_>, pairs: &[Pair]) -> Figure {
    let panels = pairs.iter().map(|pair| Panel {
        title: format!("{} calls", pair.name),
        x_label: "calls that took no longer (%)".to_owned(),
        y_label: "latency (ms)".to_owned(),
        axes: Axes::default(),
        lines: vec![
            pair.real.line("processes", 0),
            pair.simulated.line("simulator", 1),
        ],
        marks: Vec::new(),
    });
    Figure {
        title: format!("{}: processes and simulator", measured.workload.name()),
        columns: 3,
        legend_cell: 2,
        panels: panels.collect(),
        notes: vec![
            setting(measured),
            format!("Bars: the lowest and the highest of {SLICES} slices of the measured time."),
            "The simulator's CPUs take no time.".to_owned(),
        ],
    }
}

fn setting(measured: &Measured<'_>) -> String {
    let (args, file) = (measured.args, measured.file);
    format!(
        "{} regions of {} shards, {} clients, {} ms and {} ms there and back, {} s.",
        file.regions,
        file.shards_per_region,
        args.clients,
        file.distances.lan_ms,
        file.distances.wan_ms,
        args.seconds
    )
}

fn report(
    measured: &Measured<'_>,
    pairs: &[Pair],
    simulated: &Simulated,
    after: &Machine,
) -> String {
    let mut text = format!(
        "# {} on processes and in the simulator\n\n{} Seed {}; the simulator's CPUs take no \
         time.\n\n![latencies](comparison.svg)\n\n",
        measured.workload.name(),
        setting(measured),
        measured.args.seed
    );
    text.push_str("| calls | percentile | processes | of five slices | simulator | difference |\n");
    text.push_str("|---|---|---|---|---|---|\n");
    for pair in pairs {
        for percent in SHOWN {
            let (real, (low, high)) = pair.real.at(percent);
            let (simulated, _) = pair.simulated.at(percent);
            let _ = writeln!(
                text,
                "| {} | p{percent} | {real:.2} ms | {low:.2} to {high:.2} ms | {simulated:.2} ms \
                 | {:+.2} ms |",
                pair.name,
                real - simulated
            );
        }
    }
    let calls: usize = pairs.iter().map(|pair| pair.real.calls).sum();
    let in_simulator: usize = pairs.iter().map(|pair| pair.simulated.calls).sum();
    let spent = after.servers.saturating_sub(measured.before.servers);
    let _ = writeln!(
        text,
        "\n{calls} calls on processes, {in_simulator} in the simulator. The machine's load was {} \
         before and {} after; the servers took {:.1} s of CPU time, clients not counted.",
        measured.before.load,
        after.load,
        spent.as_secs_f64()
    );
    for (who, findings, is_judged) in [
        ("processes", measured.findings, measured.args.check),
        ("simulator", &simulated.findings[..], true),
    ] {
        let verdict = match (findings, is_judged) {
            ([], true) => "nothing wrong".to_owned(),
            ([], false) => "not judged (--check)".to_owned(),
            (findings, _) => findings.join("; "),
        };
        let _ = writeln!(text, "Judged, {who}: {verdict}.");
    }
    text
}

fn data(measured: &Measured<'_>, pairs: &[Pair], simulated: &Simulated, after: &Machine) -> String {
    let classes = pairs.iter().map(|pair| {
        let both = json!({ "processes": pair.real.json(), "simulator": pair.simulated.json() });
        (pair.name.to_owned(), both)
    });
    let value = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "optimized": !cfg!(debug_assertions),
        "workload": format!("{:?}", measured.workload),
        "regions": measured.file.regions,
        "shards_per_region": measured.file.shards_per_region,
        "clients": measured.args.clients,
        "lan_ms": measured.file.distances.lan_ms,
        "wan_ms": measured.file.distances.wan_ms,
        "wan_jitter_ms": measured.file.distances.wan_jitter_ms,
        "seconds": measured.args.seconds,
        "seed": measured.args.seed,
        "load_before": measured.before.load,
        "load_after": after.load,
        "server_cpu_seconds": after.servers.saturating_sub(measured.before.servers).as_secs_f64(),
        "classes": Value::Object(classes.collect()),
        "findings": { "processes": measured.findings, "simulator": simulated.findings },
    });
    format!("{value:#}\n")
}
