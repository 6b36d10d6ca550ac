//! The figure: what each command costs, and how many are done when the disk is waited for.

use manxdb_lab::experiment::Design;
use manxdb_lab::experiment::data::Data;
use manxdb_lab::figure::{Axes, Figure, Line, Look, Panel, Scale as Along};

use super::trial::{Durability, Measure, System, Work};
use super::{Serving, points};

pub(super) fn figure(_: &Design<Serving>, data: &Data<Serving>) -> Figure {
    let cpu = |work: Work, pipeline| {
        let title = format!("{}, -P {pipeline}, async", work.title());
        let load = (work, Durability::Async, pipeline);
        panel(data, title, "CPU of a command (µs)", load, Measure::cpu_us)
    };
    let synced = |y_label, number| {
        let load = (Work::Set, Durability::Sync, 1);
        panel(data, "SET, -P 1, sync".to_owned(), y_label, load, number)
    };
    Figure {
        title: "What a Redis command costs the server".into(),
        columns: 3,
        legend_cell: 8,
        panels: vec![
            cpu(Work::Get, 1),
            cpu(Work::Get, 16),
            cpu(Work::Hset, 16),
            cpu(Work::Set, 1),
            cpu(Work::Set, 16),
            cpu(Work::Zadd, 16),
            cpu(Work::Queue, 16),
            synced("commands/s", Measure::rate),
            synced("CPU of a command (µs)", Measure::cpu_us),
        ],
        notes: vec![
            "async: --durability async, appendfsync everysec; sync: --durability sync, appendfsync \
             always."
                .into(),
            "The server and redis-benchmark share the cores of one machine; CPU is the server's alone, of \
             all its threads."
                .into(),
        ],
    }
}

fn panel(
    data: &Data<Serving>,
    title: String,
    y_label: &str,
    (work, durability, pipeline): (Work, Durability, u32),
    number: fn(&Measure) -> f64,
) -> Panel {
    let line = |(place, system): (usize, System)| Line {
        name: system.title().into(),
        look: Look::of(place),
        points: points(data, system, durability, pipeline)
            .iter()
            .map(|at| at.point(|run| run.number(work, number)))
            .collect(),
    };
    let lines = System::ALL.into_iter().enumerate().map(line);
    Panel {
        title,
        x_label: super::EXPERIMENT.swept.into(),
        y_label: y_label.into(),
        axes: Axes {
            x: Along::Log,
            ..Axes::default()
        },
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        marks: Vec::new(),
    }
}
