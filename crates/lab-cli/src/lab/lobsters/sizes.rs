//! Over sizes of the site: whether pages take longer where there is more of everything.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Line, Mark, Panel, Point, Scale as Along, Shape};

use super::compare::{Compared, middle, places, sites};
use super::outcome::PAGES;
use super::system::System;
use super::trial::{Comparison, REQUESTS, Rate, Trial, repetitions};
use super::{Reading, details};
use crate::lab::fill::judge;
use crate::lab::rack::open_if_small;

/// Where the published figure's axis ends, in milliseconds.
const AXIS_END_MS: f64 = 25.0;
/// How much longer pages may take at the largest site than at the smallest.
const LONGER_MAX: f64 = 1.3;

/// The experiment.
pub static EXPERIMENT: Design<Reading> = Design {
    name: "lobsters-scale",
    about: "the 95th percentiles of a link-sharing site's pages over its size",
    origin: "As figure 9 of K9db's evaluation (OSDI'23), which has K9db alone: a box over the 95th \
             percentiles of nine kinds of pages for each number of users. Its values are in plots only.",
    swept: "data scale (1 is 5,797 users)",
    plan,
    at: |trial| trial.site,
    label: Design::number,
    figure,
    judge: claims,
};

/// Sizes of the site at a scale; the largest are the published ones, of 10,000 to 100,000 users.
fn names(scale: Scale) -> &'static [&'static str] {
    scale.pick(
        &["0.01", "0.02"],
        &["0.17", "0.34", "0.86", "1.72"],
        &[
            "1.72", "3.44", "4.31", "5.17", "6.89", "7.76", "8.62", "10.34", "12.9", "17.24",
        ],
    )
}

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let probe = Trial::probe(scale);
    let seeds = (seed..).take(repetitions(scale));
    let trials = seeds.flat_map(|seed| {
        sites(names(scale)).map(move |site| Trial {
            site,
            rate: match scale {
                Scale::Smoke | Scale::Laptop => Rate::OfLargest(probe),
                Scale::Paper => Rate::Given(REQUESTS),
            },
            flat_out_seconds: probe.seconds,
            ..Trial::of(scale, seed)
        })
    });
    trials.collect()
}

/// The 95th percentiles of a system's pages at a size of the site, of those that came at all.
fn percentiles(compared: &Compared<'_>, system: System, site: f64) -> Vec<f64> {
    let here = compared.at(site);
    let of = |page: &str| here.median(system, |ran| Some(ran.pages.get(page)?.p95));
    PAGES.into_iter().filter_map(of).collect()
}

fn figure(_: &Design<Reading>, data: &Data<Reading>) -> Figure {
    let compared = Compared::of(data, Comparison::None);
    let names = names(data.scale);
    let boxes = System::ALL.into_iter().map(|system| {
        let points = places().zip(sites(names)).flat_map(|(x, site)| {
            let all = percentiles(&compared, system, site).into_iter();
            all.map(move |p95| Point::exact(x, p95))
        });
        Line {
            name: system.title().into(),
            look: system.look(Shape::Box),
            points: points.collect(),
        }
    });
    let cpu = System::ALL.into_iter().map(|system| {
        let point = |(x, site): (f64, f64)| {
            let cpu = compared.at(site).median(system, |ran| Some(ran.cpu_us))?;
            Some(Point::exact(x, cpu))
        };
        Line {
            name: format!("{}, CPU", system.title()),
            look: system.look(details::marker(system)),
            points: places().zip(sites(names)).filter_map(point).collect(),
        }
    });
    let panel = |title: &str, y_label: &str, lines: Vec<Line>| Panel {
        title: title.into(),
        x_label: "data scale (1 is 5,797 users)".into(),
        y_label: y_label.into(),
        axes: Axes {
            x: Along::Categories(names),
            y: Along::Linear,
        },
        lines: lines
            .into_iter()
            .filter(|line| !line.points.is_empty())
            .collect(),
        marks: Vec::new(),
    };
    let rate = compared
        .median_of(|outcome| outcome.rate)
        .unwrap_or_default();
    let title = format!("95th percentiles of nine pages, {rate:.0} pages/s");
    let mut pages = panel(&title, "time (ms)", boxes.collect());
    pages
        .marks
        .push(Mark::level(AXIS_END_MS, "end of the published axis: 25 ms"));
    let panels = vec![
        pages,
        panel("The server's CPU for a page", "CPU (µs)", cpu.collect()),
    ];
    Figure {
        title: "A link-sharing site that grows".into(),
        columns: 1,
        legend_cell: 2,
        panels,
        notes: details::notes(data),
    }
}

fn claims(_: &Design<Reading>, data: &Data<Reading>) -> Vec<Claim> {
    let compared = Compared::of(data, Comparison::None);
    let mut claims = vec![
        growth(&compared, System::Manxdb),
        growth(&compared, System::Annotated),
        growth(&compared, System::Views),
        axis(&compared),
    ];
    if compared.sites().len() < 2 {
        claims = Claim::of_one_point();
    }
    open_if_small(data, claims)
}

/// The median page, at the largest site and at the smallest.
fn growth(compared: &Compared<'_>, system: System) -> Claim {
    let says = format!(
        "{}: the 95th percentile of the median page at the largest site is at most {LONGER_MAX} times \
         that at the smallest.",
        system.title()
    );
    let sites = compared.sites();
    let at = |site: Option<&f64>| Some((*site?, middle(percentiles(compared, system, *site?))?));
    let both = at(sites.first()).zip(at(sites.last()));
    judge(Source::Target, &says, both, |(small, large)| {
        let ratio = large.1 / small.1;
        let said = format!(
            "{:.2} ms at {}, {:.2} ms at {}: {ratio:.2} times",
            small.1, small.0, large.1, large.0
        );
        (Measured::ratio(ratio, said), ratio <= LONGER_MAX)
    })
}

fn axis(compared: &Compared<'_>) -> Claim {
    let sites = compared.sites().into_iter();
    let all = sites.flat_map(|site| percentiles(compared, System::Manxdb, site));
    let most = all.max_by(f64::total_cmp);
    judge(
        Source::Paper,
        "K9db: the 95th percentile of every page is below 25 ms at every size, where the published axis \
         ends.",
        most,
        |p95| {
            let said = format!("ManxDB: at most {p95:.1} ms");
            (Measured::millis(p95, said), p95 < AXIS_END_MS)
        },
    )
    .of_another_load("published of 766 pages/s on sixteen cores, with sixteen more for clients")
}
