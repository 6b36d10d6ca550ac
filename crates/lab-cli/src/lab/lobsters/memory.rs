//! Memory and disk: servers when they are filled and when pages were served, and a cache of answers
//! beside them.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Measured, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Line, Look, Panel, Point, Scale as Along, Shape};

use super::compare::{Compared, places, sites};
use super::outcome::Ran;
use super::system::System;
use super::trial::{Comparison, REQUESTS, Rate, Trial, repetitions};
use super::{Reading, details};
use crate::lab::fill::judge;
use crate::lab::rack::open_if_small;

/// The experiment.
pub static EXPERIMENT: Design<Reading> = Design {
    name: "lobsters-memory",
    about: "memory and disk of a link-sharing site's servers, and of a cache of the same answers",
    origin: "As the comparison of memory in K9db's evaluation (OSDI'23), which has K9db's views beside \
             MariaDB's tables and a memcached that holds the answers of eight queries.",
    swept: "data scale (1 is 5,797 users)",
    plan,
    at: |trial| trial.site,
    label: Design::number,
    figure,
    judge: claims,
};

/// Sizes of the site at a scale.
fn names(scale: Scale) -> &'static [&'static str] {
    scale.pick(&["0.01"], &["0.25", "0.86"], &["2.59", "17.24"])
}

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let seeds = (seed..).take(repetitions(scale));
    let trials = seeds.flat_map(|seed| {
        sites(names(scale)).map(move |site| Trial {
            site,
            comparison: Comparison::All,
            // As many pages on each machine, so that as much of the site is asked for.
            rate: Rate::Given(scale.pick(100.0, 60.0, REQUESTS)),
            turns: 1,
            answers: true,
            ..Trial::of(scale, seed)
        })
    });
    trials.collect()
}

#[allow(clippy::cast_precision_loss)] // bytes of one machine
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn loaded(ran: &Ran) -> f64 {
    mib(ran.memory.loaded)
}

/// What a server has beside what it has without tables.
fn grown(ran: &Ran) -> f64 {
    mib(ran.memory.loaded.saturating_sub(ran.memory.empty))
}

fn disk(ran: &Ran) -> f64 {
    mib(ran.memory.disk)
}

fn answers(ran: &Ran) -> f64 {
    mib(ran.memory.answers)
}

fn figure(_: &Design<Reading>, data: &Data<Reading>) -> Figure {
    let compared = Compared::of(data, Comparison::All);
    let names = names(data.scale);
    let panel = |title: &str, number: fn(&Ran) -> f64| {
        let line = |system: System| {
            let point = |(x, site): (f64, f64)| {
                let value = compared.at(site).median(system, |ran| Some(number(ran)))?;
                Some(Point::exact(x, value))
            };
            Line {
                name: system.title().into(),
                look: system.look(Shape::Bar),
                points: places().zip(sites(names)).filter_map(point).collect(),
            }
        };
        Panel {
            title: title.into(),
            x_label: "data scale".into(),
            y_label: "MiB".into(),
            axes: Axes {
                x: Along::Categories(names),
                y: Along::Linear,
            },
            lines: System::ALL
                .into_iter()
                .map(line)
                .filter(|line| !line.points.is_empty())
                .collect(),
            marks: Vec::new(),
        }
    };
    let mut resident = panel("Resident, after pages were served", loaded);
    resident.lines.push(Line {
        name: "a cache of all answers".into(),
        look: Look::of(3).shaped(Shape::Bar),
        points: places()
            .zip(sites(names))
            .filter_map(|(x, site)| Some(Point::exact(x, cache(&compared.at(site))?)))
            .collect(),
    });
    resident.lines.retain(|line| !line.points.is_empty());
    let panels = vec![
        resident,
        panel("Resident, without what an empty server has", grown),
        panel("Files of the data directory, when filled", disk),
    ];
    Figure {
        title: "Memory and disk of a link-sharing site".into(),
        columns: 2,
        legend_cell: 3,
        panels,
        notes: details::notes(data),
    }
}

/// What a cache of all answers would hold: the most of any system's clients, as pages are the same.
fn cache(compared: &Compared<'_>) -> Option<f64> {
    let all = System::ALL.into_iter();
    let sizes = all.filter_map(|system| compared.median(system, |ran| Some(answers(ran))));
    sizes.max_by(f64::total_cmp)
}

fn claims(_: &Design<Reading>, data: &Data<Reading>) -> Vec<Claim> {
    let compared = Compared::of(data, Comparison::All);
    let claims = vec![beside_a_cache(&compared), state(&compared)];
    open_if_small(data, claims)
}

/// At every size of the site.
fn beside_a_cache(compared: &Compared<'_>) -> Claim {
    let says = "After pages were served ManxDB holds at most as much memory as MariaDB's smaller engine and \
                a cache of all answers beside it.";
    let at = |site: f64| {
        let here = compared.at(site);
        let ours = here.median(System::Manxdb, |ran| Some(loaded(ran)))?;
        let (engine, cache) = (
            here.best_engine(true, |ran| Some(loaded(ran)))?,
            cache(&here)?,
        );
        Some((site, ours, engine, cache))
    };
    let all: Vec<_> = compared.sites().into_iter().filter_map(at).collect();
    let ratio = |(_, ours, engine, cache): &(f64, f64, f64, f64)| ours / (engine + cache);
    let most = all.iter().map(ratio).max_by(f64::total_cmp);
    judge(Source::Target, says, most, |most| {
        let said: Vec<String> = all
            .iter()
            .map(|(site, ours, engine, cache)| {
                format!("{ours:.0} MiB beside {engine:.0} and {cache:.1} at {site}")
            })
            .collect();
        (Measured::ratio(most, said.join(", ")), most <= 1.0)
    })
}

/// What was said of K9db has no number.
fn state(compared: &Compared<'_>) -> Claim {
    let says = "K9db: at the cost of a modest increase in state size.";
    let sites = compared.sites();
    let at = |site: &f64| {
        let here = compared.at(*site);
        let (owned, plain) = (
            here.median(System::Annotated, |ran| Some(disk(ran)))?,
            here.median(System::Manxdb, |ran| Some(disk(ran)))?,
        );
        Some(format!(
            "{owned:.0} MiB of files with owners and {plain:.0} without at {site}"
        ))
    };
    let said: Vec<String> = sites.iter().filter_map(at).collect();
    let why = format!("no number is published; {}", said.join(", "));
    Claim::open(Source::Abstract, says, why)
}
