//! The figure: a timeline of each kind of kill, what copies cost, and how long locks were held.

use manxdb_lab::experiment::Design;
use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::figure::{Axes, Figure, Line, Look, Mark, Panel, Point};

use super::claims::leases;
use super::{Surviving, killed, name, quiet, sizes};
use crate::bench::recovery::Outcome;
use crate::cli::Victim;

/// Intervals of a timeline that are one point of the figure.
const BUCKET: usize = 10;

pub(super) fn figure(_: &Design<Surviving>, data: &Data<Surviving>) -> Figure {
    let victims = [Victim::Other, Victim::Leader].into_iter();
    let timelines = victims.filter_map(|victim| killed(data, victim).next().map(timeline));
    let mut panels: Vec<Panel> = timelines.collect();
    panels.push(cost(data, "Throughput", "checkouts/s", Outcome::rate));
    panels.push(cost(data, "CPU of a checkout", "CPU (µs)", Outcome::cpu_us));
    panels.push(locks(data));
    Figure {
        title: "Checkouts while a client and a memory server are killed".into(),
        columns: 2,
        legend_cell: panels.len(),
        panels,
        notes: vec![
            "Timelines are of the first repetition, 100 ms a point; dashed: a client is killed, its locks \
             are recovered, a memory server is killed."
                .into(),
            "No copy of a log: one of each row, and no leases; one: one of each; three: three of each."
                .into(),
            "Processes of one machine.".into(),
        ],
    }
}

/// What was committed, in checkouts a second, bucket by bucket.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn rates(counts: &[u64], every_ms: f64) -> Vec<Point> {
    let span = every_ms * BUCKET as f64 / 1e3;
    let buckets = counts.chunks_exact(BUCKET).enumerate();
    let point = |(number, bucket): (usize, &[u64])| {
        let rate = bucket.iter().sum::<u64>() as f64 / span;
        Point::exact((number as f64 + 0.5) * span, rate)
    };
    buckets.map(point).collect()
}

fn timeline(record: &Record<Surviving>) -> Panel {
    let (trial, outcome) = (&record.trial, &record.outcome);
    let of = |name: &str, look: Look, points: Vec<Point>| Line {
        name: name.into(),
        look: look.plain(),
        points,
    };
    let others = rates(&outcome.of_survivors(), outcome.every_ms);
    let top = others.iter().map(|point| point.y).fold(0.0, f64::max);
    let mut lines = vec![of("clients that live on", Look::of(0), others)];
    let dead = outcome.death.map(|death| usize::from(death.client));
    if let Some(counts) = dead.and_then(|dead| outcome.counts.get(dead)) {
        let points = rates(counts, outcome.every_ms);
        lines.push(of("the client that is killed", Look::of(1), points));
    }
    // What they are stands below: words beside lines so close would stand at the wrong ones.
    let mark = |at_ms: f64| {
        let at = at_ms / 1e3;
        Mark::curve(vec![(at, 0.0), (at, top)], "")
    };
    let mut marks = Vec::new();
    if let Some(death) = outcome.death {
        marks.push(mark(death.at_ms));
        marks.push(mark(death.at_ms + death.locks_ms));
    }
    if let Some(loss) = outcome.loss {
        marks.push(mark(loss.at_ms));
    }
    Panel {
        title: format!("Killed: {}", name(trial.kill_client)),
        x_label: "time (s)".into(),
        y_label: "checkouts/s".into(),
        axes: Axes::default(),
        lines,
        marks,
    }
}

fn cost(data: &Data<Surviving>, title: &str, y_label: &str, number: fn(&Outcome) -> f64) -> Panel {
    let line = |(place, row_bytes): (usize, u16)| Line {
        name: format!("no kills, rows of {row_bytes} bytes"),
        look: Look::of(2 + place),
        points: quiet(data, row_bytes)
            .iter()
            .map(|at| at.point(number))
            .collect(),
    };
    Panel {
        title: title.into(),
        x_label: super::EXPERIMENT.swept.into(),
        y_label: y_label.into(),
        axes: Axes::default(),
        lines: sizes(data).into_iter().enumerate().map(line).collect(),
        marks: Vec::new(),
    }
}

/// How long the locks of each client that was killed were in others' way.
#[allow(clippy::cast_precision_loss)] // some seeds
fn locks(data: &Data<Surviving>) -> Panel {
    let line = |(victim, look): (Victim, Look)| Line {
        name: format!("killed: {}", name(victim)),
        look,
        points: killed(data, victim)
            .map(|record| Point::exact(record.trial.seed as f64, leases(record)))
            .collect(),
    };
    let looks = [
        (Victim::Other, Look::of(4)),
        (Victim::Leader, Look::of(1).secondary()),
    ];
    let lines = looks.into_iter().map(line);
    Panel {
        title: "A dead client's locks".into(),
        x_label: "repetition".into(),
        y_label: "recovered after (leases)".into(),
        axes: Axes::default(),
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        marks: vec![Mark::level(2.0, "aim: two leases")],
    }
}
