//! What reports and figures say behind claims.

use std::fmt::Write as _;

use manxdb_lab::experiment::data::Data;
use manxdb_lab::figure::Shape;

use super::Reading;
use super::compare::{Compared, middle};
use super::outcome::{PAGES, Ran};
use super::system::System;
use super::trial::{Comparison, Rate, SHARE};

/// The marker of a system's line.
pub fn marker(system: System) -> Shape {
    match system {
        System::Innodb => Shape::Nabla,
        System::Myrocks => Shape::Square,
        System::Manxdb | System::Views => Shape::Circle,
        System::Annotated => Shape::Triangle,
        System::Sealed | System::SealedViews => Shape::Diamond,
    }
}

/// What a reader of a figure must know of the runs.
pub fn notes(data: &Data<Reading>) -> Vec<String> {
    let Some(first) = data.records.first() else {
        return Vec::new();
    };
    let trial = &first.trial;
    let mut notes = vec![
        format!(
            "Data scale {}; pages arrive for {} s, in {} turns; servers and client on one machine",
            each(data, |record| record.trial.site.to_string()),
            trial.seconds,
            trial.turns
        ),
        format!("Request scale (46 pages a minute are 1): {}", scales(data)),
        "Bars: whole up to the median, light up to the 95th percentile; boxes: quartiles of nine pages".into(),
    ];
    notes.extend(missing(data));
    notes
}

fn scales(data: &Data<Reading>) -> String {
    each(data, |record| {
        format!("{:.0}", record.outcome.request_scale())
    })
}

/// The different values of something over all records, in their order.
fn each(
    data: &Data<Reading>,
    value: impl Fn(&manxdb_lab::experiment::data::Record<Reading>) -> String,
) -> String {
    let mut values: Vec<String> = Vec::new();
    for value in data.records.iter().map(value) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.join(", ")
}

/// What did not run, and what this machine lacks for it.
fn missing(data: &Data<Reading>) -> Vec<String> {
    let mut found = Vec::new();
    for site in data.records.iter().flat_map(|record| &record.outcome.sites) {
        if let Some(what) = &site.missing {
            let line = format!("{} did not run: {what}", site.system.title());
            if !found.contains(&line) {
                found.push(line);
            }
        }
    }
    found
}

/// The part of a report behind its claims.
pub(super) fn details(data: &Data<Reading>) -> String {
    let mut text = systems(data);
    for comparison in Comparison::ALL {
        let compared = Compared::of(data, comparison);
        for site in compared.sites() {
            let _ = write!(text, "\n## Data scale {site}, {}\n\n", comparison.title());
            numbers(&mut text, &compared.at(site));
            pages(&mut text, &compared.at(site));
        }
    }
    text.push_str(&how_to_read(data));
    text
}

fn systems(data: &Data<Reading>) -> String {
    let mut text = String::from("## Systems\n\n");
    for system in System::ALL {
        let outcomes = data.records.iter().map(|record| &record.outcome);
        let mut ran = outcomes.filter_map(|outcome| outcome.site(system));
        if let Some(ran) = ran.next() {
            let _ = writeln!(text, "- {}: {}", system.title(), ran.version);
        }
    }
    for line in missing(data) {
        let _ = writeln!(text, "- {line}");
    }
    text
}

/// A number of a system: its column's name, and how many digits it is shown with.
type Column = (&'static str, usize, fn(&Ran) -> Option<f64>);

#[allow(clippy::cast_precision_loss)] // bytes and counts of one machine
const COLUMNS: [Column; 14] = [
    ("filled in (s)", 1, |ran| Some(ran.fill_seconds)),
    ("flat out (pages/s)", 0, |ran| Some(ran.flat_out?.rate)),
    ("CPU flat out (µs a page)", 0, |ran| {
        Some(ran.flat_out?.cpu_us)
    }),
    ("keeps up with (pages/s)", 0, |ran| ran.keeps_up),
    ("pages", 0, |ran| Some(ran.served as f64)),
    ("served as they arrived (%)", 1, |ran| {
        Some(100.0 * ran.kept())
    }),
    ("CPU of the server (µs a page)", 0, |ran| Some(ran.cpu_us)),
    ("of the client", 0, |ran| Some(ran.client_cpu_us)),
    ("notifications p50 (ms)", 2, |ran| {
        Some(ran.notification?.p50)
    }),
    ("resident empty (MiB)", 0, |ran| Some(mib(ran.memory.empty))),
    ("filled", 0, |ran| Some(mib(ran.memory.filled))),
    ("after the pages", 0, |ran| Some(mib(ran.memory.loaded))),
    ("files when filled (MiB)", 0, |ran| {
        Some(mib(ran.memory.disk))
    }),
    ("tables as the server says (MiB)", 1, |ran| {
        Some(mib(ran.memory.tables))
    }),
];

#[allow(clippy::cast_precision_loss)] // bytes of one machine
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// A line for each number, a column for each system.
fn numbers(text: &mut String, compared: &Compared<'_>) {
    let rate = compared
        .median_of(|outcome| outcome.rate)
        .unwrap_or_default();
    let scale = compared
        .median_of(super::Outcome::request_scale)
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "{rate:.1} pages a second arrived: request scale {scale:.0}.\n"
    );
    let systems = there(compared);
    head(text, "", &systems);
    for (name, digits, number) in COLUMNS {
        let cells = systems
            .iter()
            .map(|system| compared.median(*system, number));
        row(
            text,
            name,
            cells.map(|cell| cell.map(|value| format!("{value:.digits$}"))),
        );
    }
    let caches: [Column; 2] = [
        ("a cache of all answers (MiB)", 2, |ran| {
            some(ran.memory.answers)
        }),
        ("of those that join, group or sort", 2, |ran| {
            some(ran.memory.answers_of_work)
        }),
    ];
    for (name, digits, number) in caches {
        let cells: Vec<_> = systems
            .iter()
            .map(|system| compared.median(*system, number))
            .collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter();
            row(
                text,
                name,
                cells.map(|cell| cell.map(|value| format!("{value:.digits$}"))),
            );
        }
    }
    text.push('\n');
}

fn some(bytes: u64) -> Option<f64> {
    (bytes > 0).then(|| mib(bytes))
}

/// A line for each page, a column for each system: median, 95th percentile, how many.
fn pages(text: &mut String, compared: &Compared<'_>) {
    let systems = there(compared);
    head(text, "p50 / p95 in ms (pages)", &systems);
    for page in PAGES {
        let cell = |system: &System| {
            let spread = |number: fn(&super::outcome::Spread) -> f64| {
                compared.median(*system, |ran| Some(number(ran.pages.get(page)?)))
            };
            #[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
            let count = spread(|spread| spread.count as f64)?;
            let (p50, p95) = (spread(|spread| spread.p50)?, spread(|spread| spread.p95)?);
            Some(format!("{p50:.2} / {p95:.2} ({count:.0})"))
        };
        row(text, page, systems.iter().map(cell));
    }
}

/// Systems that ran.
fn there(compared: &Compared<'_>) -> Vec<System> {
    let all = System::ALL.into_iter();
    all.filter(|system| compared.median(*system, |_| Some(0.0)).is_some())
        .collect()
}

fn head(text: &mut String, corner: &str, systems: &[System]) {
    let titles: Vec<&str> = systems.iter().map(|system| system.title()).collect();
    let _ = writeln!(text, "| {corner} | {} |", titles.join(" | "));
    let _ = writeln!(text, "|---|{}", "---|".repeat(systems.len()));
}

fn row(text: &mut String, name: &str, cells: impl Iterator<Item = Option<String>>) {
    let cells: Vec<String> = cells.map(Option::unwrap_or_default).collect();
    let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
}

fn how_to_read(data: &Data<Reading>) -> String {
    let mut text = String::from("\n## How to read this\n\n");
    let trials = || data.records.iter().map(|record| &record.trial);
    if trials().any(|trial| !matches!(trial.rate, Rate::Given(_))) {
        let _ = writeln!(
            text,
            "- Pages arrive at {SHARE} of the rate that the slowest system keeps up with, which was found by \
             bisection: of the pages that arrive in a window at least 98 % are served by its end. All systems \
             of a run are asked for as many."
        );
    }
    let late: Vec<f64> = data
        .records
        .iter()
        .flat_map(|record| &record.outcome.sites)
        .filter_map(|site| Some(site.ran.as_ref()?.kept()))
        .collect();
    if let Some(median) = middle(late) {
        let _ = writeln!(
            text,
            "- The median system served {:.1} % of its pages as they arrived; where a system does not keep \
             up, its times say how long the run was.",
            100.0 * median
        );
    }
    text.push_str(READ_SO);
    text
}

const READ_SO: &str = "\
- A page's time runs from its arrival (a Poisson process) to its last row: waiting for one of the \
client's connections counts. Login and Logout are not shown, as in the published figures.
- Each server has a directory of its own, as much memory for what it reads from disk as the others, and \
every commit on disk before it is told (ManxDB `--durability sync`; InnoDB and MyRocks \
`flush_log_at_trx_commit = 1`, no binary log). They are filled one after the other with the same rows, \
and take turns. A server that has no turn stays up.
- The client is a process of its own on the same cores: what it takes, the server lacks. The published \
runs have sixteen cores for each.
- Notifications are two more statements on five kinds of pages; one of them joins four tables. As \
published, they are on the pages of the system with views alone: here of each of ManxDB's, which reads \
tables for them where it has no views.
- With views: that statement and the one that finds a user's most used tag are answered by materialized \
views, which begin empty and are kept up to date by each commit; their tables have one index more \
(comments by the comment that they answer).
- Sealed: rows of people are encrypted under keys of their own, in a vault beside the data directory.
- A single page that fails makes a run fail.
";
