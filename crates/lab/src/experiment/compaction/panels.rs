//! The panels of databases that share workers.

use super::{At, Data, Experiment, Record, series};
use crate::caas_many::{CaasOutcome, Who};
use crate::figure::{Axes, Figure, Line, Panel};

/// Seconds after which the others were given up: the patience of a run.
pub(super) const NEVER: f64 = 3_600.0;

/// The points of a system, by the swept parameter.
pub(super) fn points<'a>(experiment: &Experiment, data: &'a Data, who: Who) -> Vec<At<'a>> {
    let belongs = |record: &Record| record.trial.who == who;
    series(&data.records, belongs, |record| {
        experiment.at(&record.trial)
    })
}

/// Jobs of the others that were done at home in spite of a pool, in percent.
#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
pub(super) fn home_percent(outcome: &CaasOutcome) -> f64 {
    outcome.others.home as f64 * 100.0 / (outcome.others.jobs as f64).max(1.0)
}

/// One panel: a number of the outcome by system.
struct Sight {
    title: &'static str,
    y_label: &'static str,
    number: fn(&CaasOutcome) -> f64,
    /// Whether it says anything without a pool.
    is_for_local: bool,
}

const SIGHTS: [Sight; 8] = [
    Sight {
        title: "Others' stalls",
        y_label: "time, all together (s)",
        number: |outcome| outcome.others.stalled,
        is_for_local: true,
    },
    Sight {
        title: "Longest stalls",
        y_label: "time, worst other one (s)",
        number: |outcome| outcome.others.stalled_worst,
        is_for_local: true,
    },
    Sight {
        title: "Greedy share",
        y_label: "share of worker time (%)",
        number: |outcome| outcome.greedy.share * 100.0,
        is_for_local: false,
    },
    Sight {
        title: "Others' queue, median",
        y_label: "time (s)",
        number: |outcome| outcome.others.queue.p50 / 1e3,
        is_for_local: false,
    },
    Sight {
        title: "99th percentile",
        y_label: "time (s)",
        number: |outcome| outcome.others.queue.p99 / 1e3,
        is_for_local: false,
    },
    Sight {
        title: "Sent home",
        y_label: "share of others' jobs (%)",
        number: home_percent,
        is_for_local: false,
    },
    Sight {
        title: "Others' drain",
        y_label: "time after the last write (s)",
        number: |outcome| outcome.drain.unwrap_or(NEVER),
        is_for_local: true,
    },
    Sight {
        title: "Evenness of others",
        y_label: "Jain's index",
        number: |outcome| outcome.jain,
        is_for_local: true,
    },
];

fn lines(experiment: &Experiment, data: &Data, sight: &Sight) -> Vec<Line> {
    let line = |who: Who| Line {
        name: who.title().into(),
        look: who.look(),
        points: points(experiment, data, who)
            .iter()
            .map(|at| at.point(sight.number))
            .collect(),
    };
    let shown = |who: &Who| sight.is_for_local || who.policy().is_some();
    let lines = Who::ALL.into_iter().filter(shown).map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// All panels.
pub(super) fn figure(experiment: &Experiment, data: &Data) -> Figure {
    let panel = |sight: &Sight| Panel {
        title: sight.title.into(),
        x_label: experiment.swept.into(),
        y_label: sight.y_label.into(),
        axes: Axes::default(),
        lines: lines(experiment, data, sight),
        marks: Vec::new(),
    };
    Figure {
        title: title(data),
        columns: 3,
        legend_cell: 8,
        panels: SIGHTS.iter().map(panel).collect(),
        notes: notes(experiment, data),
    }
}

fn title(data: &Data) -> String {
    let Some(trial) = data.records.first().map(|record| &record.trial) else {
        return "Many databases on few workers".into();
    };
    format!(
        "{} databases, {} of them greedy, on {} workers of {} slots",
        trial.databases, trial.greedy, trial.workers, trial.slots
    )
}

fn notes(experiment: &Experiment, data: &Data) -> Vec<String> {
    let points = points(experiment, data, Who::Manxdb);
    let repetitions = points.iter().map(At::repetitions).max().unwrap_or(1);
    let mut notes = vec![
        "Others: databases that are not greedy".to_owned(),
        "Stalls: writes wait for level 0".to_owned(),
        "local: no pool".to_owned(),
    ];
    if repetitions > 1 {
        notes.push(format!("Medians of {repetitions} seeds; bars: their range"));
    }
    notes.push(format!("Simulated, scale {}", data.scale.name()));
    notes
}
