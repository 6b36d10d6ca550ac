//! Page by page: all systems filled alike and asked for as much, with and without notifications.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Line, Mark, Panel, Point, Scale as Along, Shape};

use super::compare::{Compared, places, ratio_claim};
use super::outcome::{PAGES, Ran};
use super::system::System;
use super::trial::{Comparison, Rate, Trial, repetitions};
use super::{Reading, details};
use crate::lab::fill::judge;
use crate::lab::rack::open_if_small;

/// Where the published figure's axis ends, in milliseconds.
const AXIS_END_MS: f64 = 35.0;
/// By how many times Noria's load is above that of `MySQL`, by its abstract.
const NORIA: f64 = 5.0;

/// The experiment.
pub static EXPERIMENT: Design<Reading> = Design {
    name: "lobsters-endpoints",
    about: "pages of a link-sharing site, kind by kind, on MariaDB's engines and on ManxDB",
    origin: "As figure 8 of K9db's evaluation (OSDI'23): nine kinds of pages, medians and 95th \
             percentiles. Its values are in plots only; what can be compared with is where its axis ends.",
    swept: "comparison (1 no notifications, 2 everybody's, 3 as published)",
    plan,
    at: |trial| trial.comparison.number(),
    label: |_, trial| trial.comparison.title().to_owned(),
    figure,
    judge: claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let probe = Trial::probe(scale);
    let seeds = (seed..).take(repetitions(scale));
    let trials = seeds.flat_map(|seed| {
        Comparison::ALL.map(|comparison| Trial {
            comparison,
            rate: match scale {
                Scale::Smoke | Scale::Laptop => Rate::Bisected(probe),
                Scale::Paper => Rate::Given(super::trial::REQUESTS),
            },
            flat_out_seconds: probe.seconds,
            ..Trial::of(scale, seed)
        })
    });
    trials.collect()
}

fn figure(_: &Design<Reading>, data: &Data<Reading>) -> Figure {
    let of_pages = Comparison::ALL.map(|comparison| pages(data, comparison));
    let mut panels: Vec<Panel> = of_pages
        .into_iter()
        .filter(|one| !one.lines.is_empty())
        .collect();
    panels.push(flat_out(data));
    Figure {
        title: "Pages of a link-sharing site".into(),
        columns: 1,
        legend_cell: panels.len(),
        panels,
        notes: details::notes(data),
    }
}

/// A bar for each page of each system: whole up to the median, light up to the 95th percentile.
fn pages(data: &Data<Reading>, comparison: Comparison) -> Panel {
    let compared = Compared::of(data, comparison);
    let line = |system: System| {
        let bar = |(x, page): (f64, &&str)| {
            let of = |time: fn(&super::outcome::Spread) -> f64| {
                compared.median(system, |ran| Some(time(ran.pages.get(*page)?)))
            };
            Some(Point {
                x,
                y: of(|spread| spread.p50)?,
                low: 0.0,
                high: of(|spread| spread.p95)?,
            })
        };
        Line {
            name: system.title().into(),
            look: system.look(Shape::Bar),
            points: places().zip(&PAGES).filter_map(bar).collect(),
        }
    };
    let lines = System::ALL.into_iter().map(line);
    let rate = compared
        .median_of(|outcome| outcome.rate)
        .unwrap_or_default();
    Panel {
        title: format!("{}, {rate:.0} pages/s", capitalised(comparison.title())),
        x_label: "page".into(),
        y_label: "time (ms)".into(),
        axes: Axes {
            x: Along::Categories(&PAGES),
            y: Along::Linear,
        },
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        marks: vec![Mark::level(AXIS_END_MS, "end of the published axis: 35 ms")],
    }
}

fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

const COMPARISONS: [&str; 3] = [
    "without notifications",
    "with notifications",
    "as published",
];

fn flat_out(data: &Data<Reading>) -> Panel {
    let line = |system: System| {
        let bar = |(x, comparison): (f64, Comparison)| {
            let compared = Compared::of(data, comparison);
            Some(Point::exact(x, compared.median(system, flat_out_rate)?))
        };
        Line {
            name: system.title().into(),
            look: system.look(Shape::Bar),
            points: places().zip(Comparison::ALL).filter_map(bar).collect(),
        }
    };
    let lines = System::ALL.into_iter().map(line);
    let with = Compared::of(data, Comparison::All);
    let mark = with.best_engine(false, flat_out_rate).map(|rate| {
        let text =
            "Noria's 5 times MySQL, by its abstract: 5 times MariaDB here, with notifications";
        Mark::level(NORIA * rate, text)
    });
    Panel {
        title: "Flat out, on eight connections".into(),
        x_label: "whose pages show notifications".into(),
        y_label: "pages/s".into(),
        axes: Axes {
            x: Along::Categories(&COMPARISONS),
            y: Along::Linear,
        },
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        marks: mark.into_iter().collect(),
    }
}

fn flat_out_rate(ran: &Ran) -> Option<f64> {
    ran.flat_out.map(|one| one.rate)
}

fn flat_out_cpu(ran: &Ran) -> Option<f64> {
    ran.flat_out.map(|one| one.cpu_us)
}

fn claims(_: &Design<Reading>, data: &Data<Reading>) -> Vec<Claim> {
    let mut claims = like_for_like(data);
    claims.extend(of_owners(data));
    claims.extend(of_views(data));
    claims.extend(published(data));
    open_if_small(data, claims)
}

/// Tables without owners, beside the better of the engines.
fn like_for_like(data: &Data<Reading>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for comparison in [Comparison::None, Comparison::All] {
        let (compared, what) = (Compared::of(data, comparison), comparison.title());
        let system = System::Manxdb;
        let says = format!("The 95th percentile of every page is at most MariaDB's, {what}.");
        claims.push(compared.pages_claim((Source::Target, &says), system));
        let says = format!("Flat out at least as many pages a second as MariaDB, {what}.");
        claims.push(ratio_claim(
            (Source::Target, &says),
            (
                compared.median(system, flat_out_rate),
                compared.best_engine(false, flat_out_rate),
            ),
            "pages/s",
            |ratio| ratio >= 1.0,
        ));
        let says = format!("A page takes at most MariaDB's CPU, flat out, {what}.");
        claims.push(ratio_claim(
            (Source::Target, &says),
            (
                compared.median(system, flat_out_cpu),
                compared.best_engine(true, flat_out_cpu),
            ),
            "µs",
            |ratio| ratio <= 1.0,
        ));
    }
    claims
}

/// What it costs that rows have owners.
fn of_owners(data: &Data<Reading>) -> Vec<Claim> {
    let compared = Compared::of(data, Comparison::None);
    let cpu = |system| compared.median(system, flat_out_cpu);
    vec![ratio_claim(
        (
            Source::Target,
            "A page takes at most 1.10 times the CPU where rows have owners, flat out, without \
             notifications.",
        ),
        (cpu(System::Annotated), cpu(System::Manxdb)),
        "µs",
        |ratio| ratio <= 1.1,
    )]
}

/// What views do.
fn of_views(data: &Data<Reading>) -> Vec<Claim> {
    let compared = Compared::of(data, Comparison::All);
    let system = System::Views;
    let rate = (
        compared.median(system, flat_out_rate),
        compared.best_engine(false, flat_out_rate),
    );
    let cpu = (
        compared.median(system, flat_out_cpu),
        compared.best_engine(true, flat_out_cpu),
    );
    let statement = |system| compared.median(system, |ran| Some(ran.notification?.p50));
    let statements = (statement(system), statement(System::Manxdb));
    vec![
        ratio_claim(
            (
                Source::Target,
                "With views at least 5 times MariaDB's pages a second, flat out, with notifications.",
            ),
            rate,
            "pages/s",
            |ratio| ratio >= NORIA,
        ),
        ratio_claim(
            (
                Source::Target,
                "With views a page takes at most 0.25 times MariaDB's CPU, flat out, with \
                 notifications.",
            ),
            cpu,
            "µs",
            |ratio| ratio <= 0.25,
        ),
        ratio_claim(
            (
                Source::Target,
                "The statement that counts notifications takes at most 0.1 times as long with views \
                 as without, at the median.",
            ),
            statements,
            "ms",
            |ratio| ratio <= 0.1,
        ),
        without_notifications(data),
    ]
}

/// What views cost pages that hardly need them.
fn without_notifications(data: &Data<Reading>) -> Claim {
    let compared = Compared::of(data, Comparison::None);
    let cpu = |system| compared.median(system, flat_out_cpu);
    ratio_claim(
        (
            Source::Target,
            "Without notifications a page takes at most 1.05 times the CPU with views, flat out.",
        ),
        (cpu(System::Views), cpu(System::Manxdb)),
        "µs",
        |ratio| ratio <= 1.05,
    )
}

/// What is said of others, on other machines.
fn published(data: &Data<Reading>) -> Vec<Claim> {
    let system = System::Manxdb;
    let as_published = Compared::of(data, Comparison::AsPublished);
    let all = Compared::of(data, Comparison::All);
    let most = PAGES.into_iter().filter_map(|page| {
        let p95 = as_published.time(system, page, |spread| spread.p95)?;
        Some((page, p95))
    });
    let most = most.max_by(|one, other| one.1.total_cmp(&other.1));
    vec![
        as_published
            .pages_claim(
                (
                    Source::Abstract,
                    "K9db: matches or exceeds the performance of existing storage systems; as published, \
                     the 95th percentile of every page is at most MariaDB's.",
                ),
                system,
            )
            .of_another_load("published of K9db, which answers notifications from views"),
        judge(
            Source::Paper,
            "K9db: the 95th percentile of every page is below 35 ms, where the published axis ends.",
            most,
            |(page, p95)| {
                let said = format!("ManxDB: at most {p95:.1} ms ({page})");
                (Measured::millis(p95, said), p95 < AXIS_END_MS)
            },
        )
        .of_another_load("published of 766 pages/s on sixteen cores, with sixteen more for clients"),
        ratio_claim(
            (
                Source::Abstract,
                "Noria: 5 times the load of a MySQL that was tuned by hand.",
            ),
            (
                all.median(system, flat_out_rate),
                all.best_engine(false, flat_out_rate),
            ),
            "pages/s",
            |ratio| ratio >= NORIA,
        )
        .of_another_load("published of Noria, which answers every query from views"),
    ]
}
