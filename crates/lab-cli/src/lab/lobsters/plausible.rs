//! Which outcomes can be true, and how they are made false to test verdicts.

use std::collections::BTreeMap;

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Falsification, demand, within};

use super::Reading;
use super::outcome::{Outcome, PAGES, Ran, Spread};
use super::system::System;
use super::trial::{Rate, Trial};

/// A page asks five statements and more, one after the other, and none is answered in ten
/// microseconds.
const PAGE_FLOOR_MS: f64 = 0.05;
/// A server's CPU for as many.
const CPU_FLOOR_US: f64 = 10.0;
/// Pages below which the system's clock of CPU, of ten milliseconds, says nothing.
const CPU_SAMPLES: u64 = 100;
/// A server with less memory and fewer bytes on disk is none.
const BYTES_MIN: u64 = 1 << 20;
/// Arrivals of a Poisson process leave so many standard deviations around their mean never.
const DEVIATIONS: f64 = 6.0;
/// Pages that numbers of a run take, at the least.
const SAMPLES_MIN: u64 = 300;

/// Whether an outcome can be true.
pub(super) fn check(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    let systems: Vec<System> = outcome.sites.iter().map(|site| site.system).collect();
    demand(systems == trial.systems, || {
        "other systems ran than were to run".to_owned()
    })?;
    within("pages that arrive each second", outcome.rate, 0.01, 1e7)?;
    let mut count = 0;
    for site in &outcome.sites {
        let title = site.system.title();
        demand(site.missing.is_some() != site.ran.is_some(), || {
            format!("{title} ran and was missing, or neither")
        })?;
        if let Some(ran) = &site.ran {
            count += 1;
            let shows = trial.comparison.shows(site.system);
            demand(ran.notifications == shows, || {
                format!("{title} showed other pages")
            })?;
            of_system(trial, outcome.rate, ran).map_err(|why| format!("{title}: {why}"))?;
        }
    }
    demand(count > 0, || "no system ran".to_owned())
}

#[allow(clippy::cast_precision_loss)] // counts of a run are far below 2^53
fn of_system(trial: &Trial, rate: f64, ran: &Ran) -> Result<(), String> {
    let (least, most) = (trial.seconds * 0.99, trial.seconds * 1.01);
    within(
        "the time in which pages arrived (s)",
        ran.seconds,
        least,
        most,
    )?;
    within(
        "the time until the last was served (s)",
        ran.late_seconds,
        0.0,
        86_400.0,
    )?;
    let expected = rate * ran.seconds;
    let away = DEVIATIONS * expected.sqrt() + DEVIATIONS;
    let served = ran.served as f64;
    within(
        "pages that arrived",
        served,
        expected - away,
        expected + away,
    )?;
    let counted: u64 = ran.pages.values().map(|spread| spread.count).sum();
    demand(ran.served > 0 && counted == ran.served, || {
        format!("{} pages were served and {counted} timed", ran.served)
    })?;
    of_pages(&ran.pages)?;
    if ran.served >= CPU_SAMPLES {
        within("CPU of a page (µs)", ran.cpu_us, CPU_FLOOR_US, 1e7)?;
    }
    if let Some(flat_out) = ran.flat_out {
        within("pages a second flat out", flat_out.rate, 0.01, 1e7)?;
        let most = flat_out.rate * 1.01;
        within(
            "what it keeps up with",
            ran.keeps_up.unwrap_or(0.0),
            0.0,
            most,
        )?;
    }
    let memory = &ran.memory;
    let bytes = [memory.empty, memory.filled, memory.loaded, memory.disk];
    demand(bytes.iter().all(|bytes| *bytes >= BYTES_MIN), || {
        format!("a server takes {bytes:?} bytes of memory and disk")
    })
}

fn of_pages(pages: &BTreeMap<String, Spread>) -> Result<(), String> {
    for (page, spread) in pages
        .iter()
        .filter(|(page, _)| PAGES.contains(&page.as_str()))
    {
        let Spread { p50, p95, p99, .. } = *spread;
        within(
            &format!("the median of {page} (ms)"),
            p50,
            PAGE_FLOOR_MS,
            1e7,
        )?;
        demand(p50 <= p95 && p95 <= p99, || {
            format!("percentiles of {page} fall: {p50}, {p95}, {p99} ms")
        })?;
    }
    Ok(())
}

/// Sizes of the site that are compared are asked for as many pages.
pub(super) fn contradiction(data: &Data<Reading>) -> Option<String> {
    let mut rates: BTreeMap<String, f64> = BTreeMap::new();
    for record in &data.records {
        let Rate::OfLargest(_) = record.trial.rate else {
            continue;
        };
        let rate = record.outcome.rate;
        let first = *rates.entry(record.trial.sweep()).or_insert(rate);
        if (first - rate).abs() > 1e-6 * first {
            return Some(format!(
                "{first} and {rate} pages a second arrived at sizes of one sweep (run it without --resume)"
            ));
        }
    }
    None
}

/// Of the numbers of a run: how many pages, and how many it takes.
pub(super) fn samples(outcome: &Outcome) -> (u64, u64) {
    let ran = outcome.sites.iter().filter_map(|site| site.ran.as_ref());
    let least = ran.map(|ran| ran.served).min();
    (least.unwrap_or(0), SAMPLES_MIN)
}

/// Makes an outcome wrong.
pub(super) fn falsify(outcome: &mut Outcome, how: Falsification) {
    for site in &mut outcome.sites {
        let Some(ran) = &mut site.ran else {
            continue;
        };
        match how {
            Falsification::Zeros => *ran = Ran::default(),
            Falsification::TooFast => times(ran, 1e-4),
            Falsification::Lost => ran.served /= 100,
            // What ManxDB is compared with stays; what is compared with plain ManxDB is worse than that.
            Falsification::Worse(by) if site.system == System::Manxdb => worse(ran, by),
            Falsification::Worse(by) if site.system.is_manxdb() => worse(ran, by * by),
            Falsification::Worse(_) => {}
        }
    }
}

fn times(ran: &mut Ran, by: f64) {
    for spread in ran.pages.values_mut().chain(&mut ran.notification) {
        for time in [&mut spread.p50, &mut spread.p95, &mut spread.p99] {
            *time *= by;
        }
    }
    ran.cpu_us *= by;
    if let Some(flat_out) = &mut ran.flat_out {
        flat_out.cpu_us *= by;
        flat_out.rate /= by;
    }
}

fn worse(ran: &mut Ran, by: f64) {
    times(ran, by);
    if let Some(most) = &mut ran.keeps_up {
        *most /= by;
    }
    let memory = &mut ran.memory;
    for bytes in [&mut memory.loaded, &mut memory.filled, &mut memory.disk] {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )] // as many bytes as a falsified run has
        {
            *bytes = (*bytes as f64 * by) as u64;
        }
    }
}
