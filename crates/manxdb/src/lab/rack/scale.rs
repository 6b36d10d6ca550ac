//! Checkouts a second over clients: the paper's Figure 6, as far as one machine shows it.

use manxdb_lab::data::Data;
use manxdb_lab::experiment::{Claim, Design, Scale, Source};
use manxdb_lab::figure::{Axes, Figure};

use super::systems::{RATIOS, System, clients, compared, over_clients, panel};
use super::{Shopping, aborted_percent, label, open_if_small};
use crate::bench::checkout::Outcome;
use crate::cli::CheckoutShape;

/// The experiment.
pub static EXPERIMENT: Design<Shopping> = Design {
    name: "rsi-scale",
    about: "checkouts a second over clients, on one-sided memory and by two-phase commit",
    origin: "Figure 6 of Binnig et al., \"The End of Slow Networks\": eight nodes with InfiniBand \
             there, processes and shared memory of one machine here.",
    swept: "clients",
    plan,
    at: clients,
    label,
    figure,
    claims,
};

fn plan(scale: Scale, seed: u64) -> Vec<CheckoutShape> {
    let clients: &[u16] = scale.pick(&[1], &[1, 2, 4], &[1, 2, 4, 8, 16]);
    let products = scale.pick(3_000, 1_000_000, 1_000_000);
    over_clients(scale, clients, products, seed)
}

fn figure(design: &Design<Shopping>, data: &Data<Shopping>) -> Figure {
    let panel = |title, y_label, axes, number| {
        panel(data, clients, (title, design.swept, y_label), axes, number)
    };
    Figure {
        title: "Checkouts of three products out of a million".into(),
        columns: 3,
        legend_cell: 5,
        panels: vec![
            panel("Throughput", "checkouts/s", RATIOS, Outcome::rate),
            panel("Median latency of a try", "latency (µs)", RATIOS, |run| {
                run.p50_us
            }),
            panel("99th percentile of a try", "latency (µs)", RATIOS, |run| {
                run.p99_us
            }),
            panel(
                "CPU of a checkout, all processes",
                "CPU (µs)",
                RATIOS,
                Outcome::cpu_us,
            ),
            panel(
                "Tries that abort",
                "of all (%)",
                Axes::default(),
                aborted_percent,
            ),
        ],
        notes: vec![
            "Processes of one machine: servers and clients share its cores.".into(),
            "Memory is shared by processes; sockets are of the loopback interface.".into(),
        ],
    }
}

fn claims(_: &Design<Shopping>, data: &Data<Shopping>) -> Vec<Claim> {
    let compare =
        |source, says: &str, (one, other): (System, System), holds: fn(&[(f64, f64)]) -> bool| {
            let ratios = one.ratios(other, data, clients, Outcome::rate);
            compared((source, says), &ratios, "clients", holds)
        };
    let claims = vec![
        compare(
            Source::Target,
            "At least 50 times the checkouts of trad-si, nothing logged.",
            (System::RSI, System::TRAD),
            |ratios| ratios.iter().all(|(_, ratio)| *ratio >= 50.0),
        ),
        compare(
            Source::Target,
            "Logging on two servers costs at most half of the checkouts.",
            (System::LOGGED, System::RSI),
            |ratios| ratios.iter().all(|(_, ratio)| *ratio >= 0.5),
        ),
        compare(
            Source::Paper,
            "RSI: 56 times the checkouts of Trad-SI over Ethernet, at the peak of both.",
            (System::RSI, System::TRAD),
            |ratios| ratios.iter().any(|(_, ratio)| *ratio >= 56.0),
        ),
        compare(
            Source::Paper,
            "RSI: 1.6 times the checkouts of the two-sided variant, at the peak of both.",
            (System::RSI, System::TWO_SIDED),
            |ratios| ratios.iter().any(|(_, ratio)| *ratio >= 1.6),
        ),
    ];
    open_if_small(data, claims)
}
