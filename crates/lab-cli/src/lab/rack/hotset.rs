//! Checkouts a second when all customers want the same few products.

use manxdb_lab::experiment::data::Data;
use manxdb_lab::experiment::{Claim, Design, Scale, Source};
use manxdb_lab::figure::{Axes, Figure, Scale as Along};

use super::systems::{System, compared, panel, repetitions};
use super::{Shopping, Trial, aborted_percent, label, open_if_small};
use crate::bench::checkout::Outcome;

/// The experiment.
pub static EXPERIMENT: Design<Shopping> = Design {
    name: "rsi-hotset",
    about: "checkouts a second over the number of products that customers want",
    origin: "Not in the paper, whose products are drawn from a million alike. Its timestamp service \
             decides here: what was written after the highest number below which all are done can \
             be neither read nor written.",
    swept: "products that are bought",
    plan,
    at,
    label,
    figure,
    judge: claims,
};

/// Customers.
const CLIENTS: u16 = 4;
/// Who is compared.
const SYSTEMS: [System; 4] = [
    System::RSI,
    System::SERIALIZABLE,
    System::PUBLISHED,
    System::TRAD,
];

#[allow(clippy::cast_precision_loss)] // millions
fn at(trial: &Trial) -> f64 {
    match trial {
        Trial::Measured(shape) => shape.hot.unwrap_or(shape.products) as f64,
        Trial::Simulated(_) => f64::NAN, // nobody wants what somebody else writes
    }
}

fn plan(scale: Scale, seed: u64) -> Vec<Trial> {
    let products = scale.pick(3_000, 100_000, 1_000_000);
    let hot: &[u64] = scale.pick(
        &[200],
        &[200, 2_000, 20_000, 100_000],
        &[20, 200, 2_000, 20_000, 200_000, 1_000_000],
    );
    let seeds = (seed..).take(repetitions(scale));
    let trials = seeds.flat_map(|seed| {
        hot.iter().flat_map(move |hot| {
            let of = move |system: System| system.trial(scale, CLIENTS, (products, *hot), seed);
            SYSTEMS.into_iter().filter_map(of)
        })
    });
    trials.collect()
}

fn figure(design: &Design<Shopping>, data: &Data<Shopping>) -> Figure {
    let both = Axes {
        x: Along::Log,
        y: Along::Log,
    };
    let across = Axes {
        x: Along::Log,
        ..Axes::default()
    };
    let panel = |title, y_label, axes, number| {
        panel(data, at, (title, design.swept, y_label), axes, number)
    };
    Figure {
        title: "Checkouts when customers want the same products".into(),
        columns: 2,
        legend_cell: 3,
        panels: vec![
            panel("Throughput", "checkouts/s", both, Outcome::rate),
            panel("Tries that abort", "of all (%)", across, aborted_percent),
            panel("99th percentile of a try", "latency (µs)", both, |run| {
                run.p99_us
            }),
        ],
        notes: vec![format!(
            "{CLIENTS} clients; nothing is logged; processes of one machine."
        )],
    }
}

fn claims(_: &Design<Shopping>, data: &Data<Shopping>) -> Vec<Claim> {
    let compare = |says: &str, (one, other): (System, System), holds: fn(&[(f64, f64)]) -> bool| {
        let ratios = one.ratios(other, data, at, Outcome::rate);
        compared((Source::Target, says), &ratios, "products", holds)
    };
    let claims = vec![
        compare(
            "Never fewer checkouts than trad-si.",
            (System::RSI, System::TRAD),
            |ratios| ratios.iter().all(|(_, ratio)| *ratio >= 1.0),
        ),
        compare(
            "On 200 products the published bit vector has less than a tenth of our checkouts.",
            (System::PUBLISHED, System::RSI),
            |ratios| ratios.first().is_some_and(|(_, ratio)| *ratio < 0.1),
        ),
    ];
    open_if_small(data, claims)
}
