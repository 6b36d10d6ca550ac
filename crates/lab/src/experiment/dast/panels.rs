//! The five panels that the paper's experiments share.

use super::{At, Data, Experiment, Record, series};
use crate::figure::{Axes, Figure, Line, Mark, Panel, Scale};
use crate::systems::SystemName;
use crate::trial::{Cpu, TrialOutcome};

const LATENCY: &str = "latency (ms)";

/// Published values, panel by panel.
#[derive(Default)]
pub(super) struct Marks {
    pub throughput: Vec<Mark>,
    pub local_median: Vec<Mark>,
    pub local_tail: Vec<Mark>,
    pub cross_median: Vec<Mark>,
    pub cross_tail: Vec<Mark>,
}

/// The points of a system, by the swept parameter.
pub(super) fn points<'a>(
    experiment: &Experiment,
    data: &'a Data,
    system: SystemName,
) -> Vec<At<'a>> {
    let belongs = |record: &Record| record.trial.system == system;
    series(&data.records, belongs, |record| {
        experiment.at(&record.trial)
    })
}

/// The mark of what is said to be flat: the level of our first point, which nobody published.
pub(super) fn flat(all: &[At<'_>], number: fn(&TrialOutcome) -> f64) -> Vec<Mark> {
    let first = all.first().map(|at| at.median(number));
    let level = |y| Mark::level(y, "our first point");
    first.map(level).into_iter().collect()
}

/// A number of the outcome as a line for each of some systems, whose name ends in `suffix`.
fn lines(
    experiment: &Experiment,
    data: &Data,
    systems: &[SystemName],
    suffix: &str,
    number: impl Fn(&TrialOutcome) -> f64 + Copy,
) -> Vec<Line> {
    let of_system = |system: SystemName| {
        let points = points(experiment, data, system);
        let points = points.iter().map(|at| at.point(number));
        // Where nothing was answered there is nothing to draw.
        let points: Vec<_> = points.filter(|point| point.low > 0.0).collect();
        let look = system.look();
        Line {
            name: format!("{}{suffix}", system.title()),
            look: if suffix.is_empty() {
                look
            } else {
                look.secondary()
            },
            points,
        }
    };
    let all = systems.iter().copied().map(of_system);
    all.filter(|line| !line.points.is_empty()).collect()
}

/// Median, tail and rate of all systems, five panels and the legend.
pub(super) fn five(experiment: &Experiment, data: &Data, title: &str, marks: Marks) -> Figure {
    // Latencies of one system are a hundred times those of another.
    let latencies = Axes {
        y: Scale::Log,
        ..Axes::default()
    };
    let panel = |title: &str, y_label: &str, lines, marks| Panel {
        title: title.into(),
        x_label: experiment.swept.into(),
        y_label: y_label.into(),
        axes: if y_label == LATENCY {
            latencies
        } else {
            Axes::default()
        },
        lines,
        marks,
    };
    let all = &SystemName::COMPARED;
    let line = |number: fn(&TrialOutcome) -> f64| lines(experiment, data, all, "", number);
    let tail = |p99: fn(&TrialOutcome) -> f64, p95: fn(&TrialOutcome) -> f64| {
        // The artifact's figures have the 95th for the 99th.
        let dast = &[SystemName::Dast];
        let mut both = lines(experiment, data, dast, ", 95th percentile", p95);
        both.extend(line(p99));
        both
    };
    let throughput = line(|outcome| outcome.throughput / 1_000.0);
    let local_median = line(|outcome| outcome.local.p50);
    let local_tail = tail(|outcome| outcome.local.p99, |outcome| outcome.local.p95);
    let cross_median = line(|outcome| outcome.cross_region.p50);
    let cross_tail = tail(
        |outcome| outcome.cross_region.p99,
        |outcome| outcome.cross_region.p95,
    );
    let panels = vec![
        panel(
            "Throughput",
            "1,000 transactions/s",
            throughput,
            marks.throughput,
        ),
        panel("IRT, median", LATENCY, local_median, marks.local_median),
        panel(
            "IRT, 99th percentile",
            LATENCY,
            local_tail,
            marks.local_tail,
        ),
        panel("CRT, median", LATENCY, cross_median, marks.cross_median),
        panel(
            "CRT, 99th percentile",
            LATENCY,
            cross_tail,
            marks.cross_tail,
        ),
    ];
    Figure {
        title: title.into(),
        columns: 3,
        legend_cell: 3,
        panels,
        notes: notes(experiment, data),
    }
}

/// What a reader must know of the runs.
pub(super) fn notes(experiment: &Experiment, data: &Data) -> Vec<String> {
    let Some(first) = data.records.first() else {
        return Vec::new();
    };
    let trial = &first.trial;
    let same =
        |number: fn(&Record) -> u32| data.records.iter().all(|one| number(one) == number(first));
    let mut shape = String::new();
    if same(|record| record.trial.regions) {
        shape = format!("{} regions, ", trial.regions);
    }
    if same(|record| record.trial.shards_per_region) {
        shape.push_str(&format!("{} shards a region, ", trial.shards_per_region));
    }
    let cpu = match (
        data.records
            .iter()
            .all(|one| one.trial.cpu == Cpu::Modelled),
        trial.cpu,
    ) {
        (true, _) => ", CPU model on",
        (false, Cpu::Free) if data.records.iter().all(|one| one.trial.cpu == Cpu::Free) => {
            ", message delays only"
        }
        (false, _) => "",
    };
    let repetitions = points(experiment, data, trial.system);
    let repetitions = repetitions.iter().map(At::repetitions).max().unwrap_or(1);
    let mut notes = vec![format!(
        "{shape}3 replicas a shard; round trips 5 ms and 100 ms{cpu}"
    )];
    if repetitions > 1 {
        notes.push(format!("Medians of {repetitions} seeds; bars: their range"));
    }
    notes.push("IRT: transactions of one region; CRT: of several".into());
    notes.push("Grey, dotted: published or derived".into());
    notes.push(format!("Simulated, scale {}", data.scale.name()));
    notes
}
