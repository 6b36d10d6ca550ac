//! Lines of figures: a mode each, and those without workers as levels.

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{At, series};
use manxdb_lab::figure::{Axes, Line, Look, Panel, Point};

use super::Filling;
use super::outcome::Outcome;
use super::trial::{Mode, Trial};

/// What a line of a figure, or a row of a table, is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct System {
    /// Who compacts.
    pub mode: Mode,
    /// Its name.
    pub name: &'static str,
    /// Its place among looks.
    pub look: usize,
    /// Without workers, and with as much CPU as the others' databases and workers together.
    pub has_all: bool,
}

impl System {
    const fn of(mode: Mode, name: &'static str, look: usize) -> Self {
        Self {
            mode,
            name,
            look,
            has_all: false,
        }
    }

    /// All that may be in a figure.
    pub const ALL: [System; 6] = [
        System::of(Mode::Manxdb, "manxdb", 0),
        System::of(Mode::CaasLevel, "caas-level (CaaS-LSM's order)", 1),
        System::of(Mode::Random, "random (Nebula-Random-Sche)", 2),
        System::of(Mode::Static, "static (Disaggre-RocksDB)", 3),
        System::of(Mode::Local, "local", 4),
        System {
            has_all: true,
            ..System::of(Mode::Local, "local, with the workers' CPU too", 4)
        },
    ];

    /// Whether a trial is one of it. A database without workers that has a whole core or more has
    /// that of workers too.
    pub fn has(&self, trial: &Trial) -> bool {
        let has_all = trial.mode == Mode::Local
            && trial.databases.iter().any(|one| one.placement.cpus >= 1.0);
        trial.mode == self.mode && has_all == self.has_all
    }

    /// Its runs, by where they stand.
    pub fn points<'a>(
        &self,
        data: &'a Data<Filling>,
        at: impl Fn(&Trial) -> f64,
    ) -> Vec<At<'a, Filling>> {
        let belongs = |record: &Record<Filling>| self.has(&record.trial);
        series(&data.records, belongs, |record| at(&record.trial))
    }
}

/// The system of a mode, those without workers with as little CPU as the others.
pub fn system(mode: Mode) -> System {
    let found = System::ALL.into_iter().find(|one| one.mode == mode);
    found.unwrap_or(System::ALL[0])
}

/// A panel with a line for each system that there are runs of.
pub fn panel(
    data: &Data<Filling>,
    at: fn(&Trial) -> f64,
    (title, x_label, y_label): (&str, &str, &str),
    number: fn(&Outcome) -> f64,
) -> Panel {
    let with_workers = |record: &&Record<Filling>| !record.trial.workers.is_empty();
    let places = data.records.iter().filter(with_workers);
    let mut places: Vec<f64> = places.map(|record| at(&record.trial)).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let lines = System::ALL.iter().map(|system| {
        let runs = system.points(data, at);
        let points = if system.mode == Mode::Local {
            level(&runs, &places, number)
        } else {
            runs.iter().map(|at| at.point(number)).collect()
        };
        let look = Look::of(system.look);
        Line {
            name: system.name.into(),
            look: if system.has_all {
                look.secondary()
            } else {
                look
            },
            points,
        }
    });
    Panel {
        title: title.into(),
        x_label: x_label.into(),
        y_label: y_label.into(),
        axes: Axes::default(),
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        marks: Vec::new(),
    }
}

/// What does not depend on workers, at every place.
fn level(runs: &[At<'_, Filling>], places: &[f64], number: fn(&Outcome) -> f64) -> Vec<Point> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let point = first.point(number);
    let places = if places.is_empty() {
        &[0.0][..]
    } else {
        places
    };
    places.iter().map(|x| Point { x: *x, ..point }).collect()
}
